//! The tests: each drives a load through proxies and adds facts. What they share
//! is the scene, with the proxies that run all the time.

pub(crate) mod cpu;
pub(crate) mod idle;
pub(crate) mod latency;
pub(crate) mod path;
pub(crate) mod routes;
pub(crate) mod syscalls;

use std::time::Duration;

use anyhow::Result;

use crate::{
    cli::{ProxyArguments, Test},
    load::Dialer,
    process::Process,
    results::Results,
    rotation::Rhythm,
    stats::Spread,
    targets::{Kind, Proxy, Stage, Target},
};

/// How much of everything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Windows and rounds of the CPU tests.
    pub(crate) rhythm: Rhythm,
    /// Connections measured one by one, per proxy and round.
    pub(crate) latencies: usize,
    /// Idle connections: few and many, for front doors and for node proxies.
    pub(crate) idle_front: [usize; 2],
    /// As before.
    pub(crate) idle_node: [usize; 2],
    /// Routes in a large table.
    pub(crate) routes: usize,
    /// Changes made to it.
    pub(crate) changes: usize,
    /// How much load is offered while system calls are counted.
    pub(crate) traced: Duration,
}

/// What a test works with.
#[derive(Debug)]
pub(crate) struct Scene {
    /// What was asked for.
    pub(crate) arguments: ProxyArguments,
    /// How much of it.
    pub(crate) effort: Effort,
    /// Starts proxies.
    pub(crate) stage: Stage,
    /// Opens connections.
    pub(crate) dialer: Dialer,
    /// Behind all proxies.
    pub(crate) backend: Process,
    /// Proxies that run during the whole run.
    pub(crate) targets: Vec<Target>,
    /// What was found out.
    pub(crate) results: Results,
}

impl Effort {
    /// A handful of everything.
    pub(crate) fn smoke() -> Self {
        Self {
            rhythm: Rhythm {
                window: Duration::from_millis(50),
                rounds: 1,
                repetitions: 1,
                spare: 0,
            },
            latencies: 3,
            idle_front: [10, 20],
            idle_node: [10, 20],
            routes: 100,
            changes: 2,
            traced: Duration::from_millis(100),
        }
    }

    /// Under a minute.
    pub(crate) fn quick() -> Self {
        Self {
            rhythm: Rhythm {
                window: Duration::from_millis(200),
                rounds: 3,
                repetitions: 1,
                spare: 0,
            },
            latencies: 10,
            idle_front: [500, 2000],
            idle_node: [200, 800],
            routes: 100_000,
            changes: 3,
            traced: Duration::from_millis(300),
        }
    }

    /// As designed.
    pub(crate) fn full() -> Self {
        Self {
            rhythm: Rhythm {
                window: Duration::from_millis(300),
                rounds: 8,
                repetitions: 3,
                spare: 1,
            },
            latencies: 40,
            idle_front: [1000, 9000],
            idle_node: [1000, 4000],
            routes: 100_000,
            changes: 9,
            traced: Duration::from_secs(1),
        }
    }
}

impl Scene {
    /// Whether a test was asked for; says that it begins.
    pub(crate) fn begins(&self, test: Test, what: &str) -> bool {
        let wanted = self.arguments.wants(test);
        if wanted {
            eprintln!("{what}");
        }
        wanted
    }

    /// Running proxies of a kind, without those whose names are given.
    pub(crate) fn running(&self, kind: Kind, without: &[&str]) -> Vec<&Target> {
        self.targets
            .iter()
            .filter(|target| target.kind == kind && !without.contains(&target.name))
            .collect()
    }

    /// Starts another copy of a proxy, or remarks why it can't be measured.
    pub(crate) fn fresh(&mut self, test: Test, proxy: &Proxy) -> Option<Target> {
        let routes = crate::targets::Route::standard();
        let started = self.stage.start(proxy, &routes, &self.dialer);
        self.or_remark(test, proxy.name, started)
    }

    /// Unwraps, or remarks on the failure and goes on without.
    pub(crate) fn or_remark<T>(&mut self, test: Test, name: &str, outcome: Result<T>) -> Option<T> {
        outcome
            .inspect_err(|error| {
                self.results
                    .remarks
                    .push((test, format!("{name}: not measured: {error:#}")));
            })
            .ok()
    }
}

/// Median and quartiles in µs.
pub(crate) fn micros(times: impl IntoIterator<Item = Duration>) -> Option<Spread> {
    Spread::of(times.into_iter().map(|time| time.as_secs_f64() * 1e6))
}
