//! Latency of one connection at a time: from connect to the first byte back,
//! against the same without a proxy.

use std::{io, time::Duration};

use anyhow::Result;
use rand::seq::SliceRandom as _;

use super::{Scene, micros};
use crate::{
    cli::Test,
    load::{Mode, connections::one_by_one},
    results::Metric,
};

/// No proxy at all.
const DIRECT: &str = "direct";

/// Takes turns with everybody, direct connections among them.
pub(crate) fn run(scene: &mut Scene) -> Result<()> {
    if !scene.begins(Test::Latency, "added latency, one connection at a time") {
        return Ok(());
    }
    let skip = [
        "haproxy-splice",
        "haproxy-splice-again",
        "haproxy-splice-1m",
    ];
    let targets: Vec<_> = scene
        .targets
        .iter()
        .filter(|target| !skip.contains(&target.name))
        .collect();
    let mut names = vec![DIRECT];
    names.extend(targets.iter().map(|target| target.name));
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); names.len()];
    let mut order: Vec<usize> = (0..names.len()).collect();
    for round in 0..=scene.effort.rhythm.rounds {
        order.shuffle(&mut rand::rng());
        for &number in &order {
            let batch: io::Result<_> = one_by_one(scene.effort.latencies, || match number {
                0 => scene.dialer.open_direct(),
                number => scene.dialer.open(targets[number - 1], Mode::Tls),
            });
            if round > 0 {
                times[number].extend(batch?);
            }
        }
    }
    let direct = micros(times[0].iter().copied());
    for (name, times) in names.iter().zip(&times) {
        let spread = micros(times.iter().copied());
        scene.results.add(Test::Latency, name, Metric::P50, spread);
        if let (Some(spread), Some(direct)) = (spread, direct) {
            let added = spread.middle - direct.middle;
            scene
                .results
                .add_one(Test::Latency, name, Metric::AddedP50, added);
        }
    }
    Ok(())
}
