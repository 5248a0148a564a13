//! What the gate counts, beside what the engine does.
//!
//! Labels are our own constants, so the number of series is fixed by this program.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use steward_wire::{
    CountersHandle, End,
    identity::Counts,
    metrics::{Kind, Text, write_engine},
};

use crate::gate::Destination;

/// Counters of one gate.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    routed: [AtomicU64; Destination::ALL.len()],
    /// By the constant word of how they ended; taken once per connection.
    ended: Mutex<BTreeMap<&'static str, u64>>,
}

impl Metrics {
    pub(crate) fn routed(&self, destination: Destination) {
        if let Some(counter) = self.routed.get(destination as usize) {
            counter.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn ended(&self, end: &End) {
        self.turned_away(end.label());
    }

    pub(crate) fn turned_away(&self, reason: &'static str) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        *ended.entry(reason).or_default() += 1;
    }

    /// The page.
    pub(crate) fn page(&self, engine: &CountersHandle, files: &Counts) -> String {
        let mut text = Text::new();
        write_engine(&mut text, "steward_gate", &engine.snapshot());
        let name = "steward_gate_routed_total";
        text.family(name, Kind::Counter, "Connections by where they were sent.");
        for (destination, counter) in Destination::ALL.iter().zip(&self.routed) {
            text.sample(
                name,
                &[("destination", destination.label())],
                counter.load(Relaxed),
            );
        }
        let name = "steward_gate_ended_total";
        text.family(name, Kind::Counter, "Connections by how they ended.");
        for (end, count) in &*self.ended.lock().unwrap_or_else(PoisonError::into_inner) {
            text.sample(name, &[("end", end)], *count);
        }
        text.single(
            "steward_gate_certificate_reloads_total",
            Kind::Counter,
            "Changed certificates that were taken over.",
            files.reloads(),
        );
        text.single(
            "steward_gate_certificate_reload_failures_total",
            Kind::Counter,
            "Changed certificates that could not be used; the old one stayed.",
            files.failures(),
        );
        text.finish()
    }
}
