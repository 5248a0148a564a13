//! What the proxy counts, beside what the engine does.
//!
//! Labels are our own constants, so the number of series is fixed by this program.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use steward_wire::{
    CountersHandle, End,
    dial::{Resolution, Upstream},
    identity::Counts,
    metrics::{Kind, Text, write_engine},
};

use crate::health::{Health, Verdict};

/// Counters of one proxy.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// By the constant word of how they ended; taken once per connection.
    ended: Mutex<BTreeMap<&'static str, u64>>,
}

/// Where the rest of the numbers comes from.
pub(crate) struct Sources<'a> {
    pub(crate) engine: &'a CountersHandle,
    pub(crate) files: &'a Counts,
    pub(crate) health: &'a Health,
    pub(crate) upstream: &'a Upstream,
}

impl Metrics {
    pub(crate) fn ended(&self, end: &End) {
        self.turned_away(end.label());
    }

    pub(crate) fn turned_away(&self, reason: &'static str) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        *ended.entry(reason).or_default() += 1;
    }

    /// The page.
    pub(crate) fn page(&self, from: &Sources<'_>) -> String {
        let mut text = Text::new();
        write_engine(&mut text, "steward_tcp_proxy", &from.engine.snapshot());
        let name = "steward_tcp_proxy_ended_total";
        text.family(name, Kind::Counter, "Connections by how they ended.");
        for (end, count) in &*self.ended.lock().unwrap_or_else(PoisonError::into_inner) {
            text.sample(name, &[("end", end)], *count);
        }
        upstream(&mut text, from);
        text.single(
            "steward_tcp_proxy_certificate_reloads_total",
            Kind::Counter,
            "Changed certificates and CAs that were taken over.",
            from.files.reloads(),
        );
        text.single(
            "steward_tcp_proxy_certificate_reload_failures_total",
            Kind::Counter,
            "Changed certificates and CAs that could not be used; the old ones stayed.",
            from.files.failures(),
        );
        text.finish()
    }
}

fn upstream(text: &mut Text, from: &Sources<'_>) {
    text.single(
        "steward_tcp_proxy_upstream_up",
        Kind::Gauge,
        "Whether the API server answered recently, all the way.",
        u64::from(from.health.verdict() == Verdict::Up),
    );
    text.single(
        "steward_tcp_proxy_upstream_resolved",
        Kind::Gauge,
        "Whether the upstream's name resolved when last asked for.",
        u64::from(from.upstream.resolution() == Resolution::Known),
    );
    text.single(
        "steward_tcp_proxy_upstream_addresses",
        Kind::Gauge,
        "Addresses known for the upstream.",
        u64::try_from(from.upstream.addresses().len()).unwrap_or(u64::MAX),
    );
    let (probes, failures) = from.health.probes();
    text.single(
        "steward_tcp_proxy_probes_total",
        Kind::Counter,
        "Probes of the whole way to the API server.",
        probes,
    );
    text.single(
        "steward_tcp_proxy_probe_failures_total",
        Kind::Counter,
        "Probes that failed.",
        failures,
    );
}
