//! CPU per connection, per round trip and per GB, in interleaved windows.

use anyhow::{Context as _, Result};

use super::Scene;
use crate::{
    cli::Test,
    load::{Mode, Window, bulk::Bulk, connections, round_trips::RoundTrips},
    results::Metric,
    rotation::{self, Invalid, Rhythm, Round, Rules, Yardstick},
    stats::Spread,
    targets::{Kind, Target},
};

/// About a third of what the slowest front door can do on two cores.
const FRONT_CONNECTIONS: f64 = 600.0;
/// Likewise for a proxy that ends TLS twice.
const NODE_CONNECTIONS: f64 = 400.0;
/// Round trips per second.
const ROUND_TRIPS: f64 = 8000.0;
const NODE_ROUND_TRIPS: f64 = 5000.0;
/// What two copies of one proxy may differ by: fixed rates, and bulk.
const TWINS_AT_RATE: f64 = 0.03;
const TWINS_IN_BULK: f64 = 0.10;

/// One CPU test.
#[derive(Clone, Copy)]
struct Plan {
    test: Test,
    kind: Kind,
    /// Proxies that add nothing to this test.
    without: &'static [&'static str],
    rules: Rules,
    /// From CPU seconds per operation to what is printed.
    scale: f64,
}

/// Only bulk is worth splicing.
const SPLICERS: [&str; 3] = [
    "haproxy-splice",
    "haproxy-splice-again",
    "haproxy-splice-1m",
];
/// What HAProxy decides by itself is not its best for bulk.
const NON_SPLICERS: [&str; 2] = ["haproxy", "haproxy-again"];

/// At a fixed rate the ends' work is the same for all, and so a yardstick.
const AT_RATE: Rules = Rules {
    yardstick: Yardstick::Ends,
    twin_slack: TWINS_AT_RATE,
};
const IN_BULK: Rules = Rules {
    yardstick: Yardstick::Nothing,
    twin_slack: TWINS_IN_BULK,
};

/// Runs those of the CPU tests that were asked for.
pub(crate) fn run(scene: &mut Scene) -> Result<()> {
    let conn = Plan {
        test: Test::Conn,
        kind: Kind::Front,
        without: &SPLICERS,
        rules: AT_RATE,
        scale: 1e6,
    };
    let rt = Plan {
        test: Test::Rt,
        ..conn
    };
    let bulk = Plan {
        test: Test::Bulk,
        without: &NON_SPLICERS,
        rules: IN_BULK,
        scale: 1.0,
        ..conn
    };
    let bulk_tls = Plan {
        test: Test::BulkTls,
        ..bulk
    };
    let client = Rules {
        yardstick: Yardstick::Client,
        ..AT_RATE
    };
    let node_conn = Plan {
        test: Test::NodeConn,
        kind: Kind::Node,
        without: &[],
        rules: client,
        ..conn
    };
    let node_rt = Plan {
        test: Test::NodeRt,
        rules: AT_RATE,
        ..node_conn
    };
    if scene.begins(Test::Conn, "front doors: CPU per TLS connection") {
        conn.connections(scene, FRONT_CONNECTIONS)?;
    }
    if scene.begins(Test::Rt, "front doors: CPU per round trip") {
        rt.round_trips(scene, Mode::Raw, ROUND_TRIPS)?;
    }
    if scene.begins(Test::Bulk, "front doors: CPU per GB of plain bytes") {
        bulk.bulk(scene, Mode::Raw)?;
    }
    if scene.begins(Test::BulkTls, "front doors: CPU per GB of TLS records") {
        bulk_tls.bulk(scene, Mode::Tls)?;
    }
    if scene.begins(Test::NodeConn, "node proxies: CPU per TLS connection") {
        node_conn.connections(scene, NODE_CONNECTIONS)?;
    }
    if scene.begins(Test::NodeRt, "node proxies: CPU per round trip") {
        node_rt.round_trips(scene, Mode::Tls, NODE_ROUND_TRIPS)?;
    }
    Ok(())
}

impl Plan {
    fn connections(&self, scene: &mut Scene, rate: f64) -> Result<()> {
        let length = scene.effort.rhythm.window;
        let nothing = |_: &Scene, _: &Target| Ok(());
        self.run(scene, nothing, |scene, target, ()| {
            connections::at_rate(&scene.dialer, target, rate, length)
        })
    }

    fn round_trips(&self, scene: &mut Scene, mode: Mode, rate: f64) -> Result<()> {
        let length = scene.effort.rhythm.window;
        let open =
            |scene: &Scene, target: &Target| Ok(RoundTrips::open(&scene.dialer, target, mode)?);
        self.run(scene, open, |_, _, lanes| lanes.at_rate(rate, length))
    }

    fn bulk(&self, scene: &mut Scene, mode: Mode) -> Result<()> {
        let length = scene.effort.rhythm.window;
        let open = |scene: &Scene, target: &Target| Ok(Bulk::open(&scene.dialer, target, mode)?);
        self.run(scene, open, |_, _, bulk| bulk.for_a_while(length))
    }

    /// Bulk keeps both cores busy all the time; fewer repetitions say as much.
    fn rhythm(&self, scene: &Scene) -> Rhythm {
        let rhythm = scene.effort.rhythm;
        let fewer = matches!(self.test, Test::Bulk | Test::BulkTls | Test::NodeRt);
        let repetitions = rhythm.repetitions.saturating_sub(usize::from(fewer)).max(1);
        Rhythm {
            repetitions,
            ..rhythm
        }
    }

    /// Repeats rounds until enough of them count, then adds the facts.
    fn run<S>(
        &self,
        scene: &mut Scene,
        open: impl Fn(&Scene, &Target) -> Result<S>,
        work: impl Fn(&Scene, &Target, &mut S) -> Window,
    ) -> Result<()> {
        let (rounds, refused, names) = {
            let targets = scene.running(self.kind, self.without);
            let names: Vec<&'static str> = targets.iter().map(|target| target.name).collect();
            let twins = names.get(1).is_some_and(|name| name.ends_with("-again"));
            let (rounds, refused) = rotation::repeat(self.rhythm(scene), || {
                let mut states = targets
                    .iter()
                    .map(|target| {
                        open(scene, target)
                            .with_context(|| format!("opening through {}", target.name))
                    })
                    .collect::<Result<Vec<_>>>()?;
                let rounds =
                    rotation::rounds(scene.effort.rhythm.rounds, targets.len(), |number| {
                        let (target, state) = (targets[number], &mut states[number]);
                        rotation::measure(target, &scene.backend, || work(scene, target, state))
                    });
                Ok(match rotation::judge(&rounds, twins, self.rules) {
                    Ok(()) => Ok(rounds),
                    Err(invalid) => Err((invalid, rounds)),
                })
            })?;
            (rounds, refused, names)
        };
        self.remark(scene, &rounds, refused, &names);
        self.add(scene, &rounds, &names);
        Ok(())
    }

    fn remark(
        &self,
        scene: &mut Scene,
        rounds: &[Round],
        refused: Option<Invalid>,
        names: &[&str],
    ) {
        if let Some(why) = refused {
            scene
                .results
                .remarks
                .push((self.test, format!("noisy: {why}")));
        }
        for (number, name) in names.iter().enumerate() {
            let errors: u64 = samples(rounds, number)
                .map(|sample| sample.window.errors)
                .sum();
            if errors > 0 {
                scene
                    .results
                    .remarks
                    .push((self.test, format!("{name}: {errors} operations failed")));
            }
        }
    }

    fn add(&self, scene: &mut Scene, rounds: &[Round], names: &[&str]) {
        let has_beside = |name: &str| {
            scene
                .targets
                .iter()
                .any(|target| target.name == name && !target.beside.is_empty())
        };
        let with_gate: Vec<bool> = names.iter().map(|name| has_beside(name)).collect();
        // Without the reference there is nothing to compare with.
        let compared = names
            .first()
            .is_some_and(|name| name.starts_with("haproxy"));
        for (number, name) in names.iter().enumerate() {
            let ratio =
                |pair: fn(&rotation::Sample, &rotation::Sample, Rules) -> f64| {
                    Spread::of(rounds.iter().filter(|_| compared).filter_map(|round| {
                        Some(pair(round.get(number)?, round.first()?, self.rules))
                    }))
                };
            let per = Spread::of(samples(rounds, number).map(rotation::Sample::per_operation));
            let all = Spread::of(
                samples(rounds, number).map(rotation::Sample::per_operation_with_beside),
            );
            let rate = Spread::of(
                samples(rounds, number)
                    .map(|sample| sample.window.done / sample.window.took.as_secs_f64()),
            );
            let results = &mut scene.results;
            results.add(
                self.test,
                name,
                Metric::Cpu,
                per.map(|spread| spread.scaled(self.scale)),
            );
            results.add(
                self.test,
                name,
                Metric::Ratio,
                ratio(rotation::Sample::ratio),
            );
            if with_gate[number] {
                results.add(
                    self.test,
                    name,
                    Metric::CpuWithGate,
                    all.map(|spread| spread.scaled(self.scale)),
                );
                results.add(
                    self.test,
                    name,
                    Metric::RatioWithGate,
                    ratio(rotation::Sample::ratio_with_beside),
                );
            }
            results.add(self.test, name, Metric::Rate, rate);
        }
    }
}

fn samples(rounds: &[Round], number: usize) -> impl Iterator<Item = &rotation::Sample> {
    rounds.iter().filter_map(move |round| round.get(number))
}
