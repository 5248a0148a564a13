//! Memory: a fresh process at rest, with few and with many idle connections, and
//! after they closed. Every connection has carried a frame; some are asked again.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

use super::Scene;
use crate::{
    cli::Test,
    load::{Mode, connections::keep},
    protocol::Request,
    results::Metric,
    targets::{FRONT_DOORS, Kind, NODE_PROXIES, Proxy, Target},
};

/// Idle connections that are asked whether they still live.
const PROBES: usize = 200;
/// How long memory may take to come back after the connections closed.
const RETURN: Duration = Duration::from_secs(1);

/// What was seen of one proxy, in KiB.
struct Memory {
    rest: u64,
    few: u64,
    many: u64,
    closed: u64,
    descriptors: usize,
}

/// Measures every proxy once, twins and variants left out.
pub(crate) fn run(scene: &mut Scene) {
    if !scene.begins(Test::Idle, "memory at rest and per idle connection") {
        return;
    }
    let proxies: Vec<Proxy> = FRONT_DOORS
        .into_iter()
        .chain(NODE_PROXIES)
        .filter(|proxy| scene.targets.iter().any(|target| target.name == proxy.name))
        .filter(|proxy| !proxy.name.contains("-again") && !proxy.name.contains("-splice"))
        .collect();
    for proxy in proxies {
        let Some(mut target) = scene.fresh(Test::Idle, &proxy) else {
            continue;
        };
        let counts = match proxy.kind {
            Kind::Front => scene.effort.idle_front,
            Kind::Node => scene.effort.idle_node,
        };
        let seen = measure(scene, &mut target, counts);
        if let Some(memory) = scene.or_remark(Test::Idle, proxy.name, seen) {
            add(scene, proxy.name, counts, &memory);
        }
    }
}

fn measure(scene: &Scene, target: &mut Target, [few, many]: [usize; 2]) -> Result<Memory> {
    let mode = match target.kind {
        // A front door can't tell, and the ends are done sooner.
        Kind::Front => Mode::Raw,
        Kind::Node => Mode::Tls,
    };
    let rest = target.process.rss_kib();
    let at_rest = target.process.descriptors();
    let mut connections = keep(&scene.dialer, target, mode, few).context("opening a few")?;
    let with_few = settled(target);
    connections.extend(keep(&scene.dialer, target, mode, many - few).context("opening many")?);
    let with_many = settled(target);
    let descriptors = target.process.descriptors().saturating_sub(at_rest);
    let frame = Request::echo_frame(64);
    let step = (connections.len() / PROBES).max(1);
    for connection in connections.iter_mut().step_by(step) {
        connection
            .echo(&frame)
            .context("an idle connection does not answer any more")?;
    }
    drop(connections);
    let begun = Instant::now();
    let mut closed = target.process.rss_kib();
    while begun.elapsed() < RETURN {
        thread::sleep(Duration::from_millis(50));
        closed = closed.min(target.process.rss_kib());
    }
    Ok(Memory {
        rest,
        few: with_few,
        many: with_many,
        closed,
        descriptors,
    })
}

/// The memory once it stopped changing.
fn settled(target: &Target) -> u64 {
    let mut last = target.process.rss_kib();
    for _ in 0..10 {
        thread::sleep(Duration::from_millis(30));
        let now = target.process.rss_kib();
        if now.abs_diff(last) < 16 {
            return now;
        }
        last = now;
    }
    last
}

#[expect(clippy::cast_precision_loss, reason = "kibibytes of a process")]
fn add(scene: &mut Scene, name: &str, [few, many]: [usize; 2], memory: &Memory) {
    let per = |with: u64, count: usize| (with as f64 - memory.rest as f64) / count as f64;
    let results = &mut scene.results;
    results.add_one(
        Test::Idle,
        name,
        Metric::AtRest,
        memory.rest as f64 / 1024.0,
    );
    results.add_one(Test::Idle, name, Metric::FewIdle, per(memory.few, few));
    results.add_one(Test::Idle, name, Metric::ManyIdle, per(memory.many, many));
    results.add_one(
        Test::Idle,
        name,
        Metric::AfterClose,
        memory.closed as f64 / 1024.0,
    );
    results.add_one(
        Test::Idle,
        name,
        Metric::Descriptors,
        memory.descriptors as f64 / many as f64,
    );
}
