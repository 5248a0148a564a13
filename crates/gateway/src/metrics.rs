//! What the gateway counts, and how it is shown.
//!
//! Series are bounded: the first so many routes with traffic have their own, all
//! others share one. What happens before a route is known is counted by outcome,
//! from a fixed list.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use steward_wire::{
    Snapshot,
    metrics::{Kind, Text, write_engine},
};

use crate::{route::Denied, shares::Shares};

/// The counters of one route, or of all that share them.
#[derive(Debug, Default)]
pub struct RouteCounters {
    pub(crate) connections: AtomicU64,
    pub(crate) live: AtomicU64,
    pub(crate) to_server: AtomicU64,
    pub(crate) to_client: AtomicU64,
    pub(crate) backend_failures: AtomicU64,
    pub(crate) no_backend: AtomicU64,
    pub(crate) denied_source: AtomicU64,
    pub(crate) denied_connections: AtomicU64,
    pub(crate) denied_rate: AtomicU64,
    pub(crate) denied_share: AtomicU64,
    pub(crate) denied_full: AtomicU64,
}

/// All counters of the gateway.
#[derive(Debug)]
pub struct Metrics {
    /// Routes with series of their own, at most `most`.
    series: Mutex<BTreeMap<Box<str>, Arc<RouteCounters>>>,
    most: usize,
    other: Arc<RouteCounters>,
    outcomes: [AtomicU64; OUTCOMES.len()],
    pub(crate) routes: AtomicU64,
    pub(crate) reloads: AtomicU64,
    pub(crate) reload_failures: AtomicU64,
    /// One if the routes in use are those in the file.
    pub(crate) file_good: AtomicU64,
}

/// How a handshake can come out. The first is the good one, the last is for what
/// is not in the list.
const OUTCOMES: [&str; 22] = [
    "routed",
    "unrecognized_name",
    "missing_name",
    "malformed_hello",
    "not_tls",
    "proxy_header",
    "source_denied",
    "too_many_connections",
    "too_many_handshakes",
    "route_share",
    "source_share",
    "source_handshakes",
    "full",
    "no_backend",
    "no_descriptors",
    "hello_timeout",
    "hello_too_long",
    "client_gone",
    "client_failed",
    "evicted",
    "cut",
    "other",
];

impl Metrics {
    /// Nothing counted yet; at most `most` routes get series of their own.
    pub fn new(most: usize) -> Self {
        Self {
            series: Mutex::default(),
            most,
            other: Arc::default(),
            outcomes: std::array::from_fn(|_| AtomicU64::new(0)),
            routes: AtomicU64::new(0),
            reloads: AtomicU64::new(0),
            reload_failures: AtomicU64::new(0),
            file_good: AtomicU64::new(1),
        }
    }

    /// The counters for a route: its own while there is room.
    pub(crate) fn route(&self, host: &str) -> Arc<RouteCounters> {
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counters) = series.get(host) {
            return Arc::clone(counters);
        }
        if series.len() >= self.most {
            // Room is made by routes that went away: nobody else holds theirs.
            series.retain(|_, counters| Arc::strong_count(counters) > 1);
            if series.len() >= self.most {
                return Arc::clone(&self.other);
            }
        }
        let counters = Arc::<RouteCounters>::default();
        series.insert(host.into(), Arc::clone(&counters));
        counters
    }

    pub(crate) fn routed(&self) {
        self.outcomes[0].fetch_add(1, Relaxed);
    }

    /// A connection ended before it reached a backend.
    pub(crate) fn not_routed(&self, outcome: &str) {
        let place = OUTCOMES.iter().position(|known| *known == outcome);
        self.outcomes[place.unwrap_or(OUTCOMES.len() - 1)].fetch_add(1, Relaxed);
    }

    /// The page for Prometheus, with series by route only if `by_route`.
    pub fn render(&self, engine: &Snapshot, shares: &Shares, by_route: bool) -> String {
        let mut text = Text::new();
        write_engine(&mut text, "steward_gateway", engine);
        let name = "steward_gateway_handshakes_total";
        text.family(
            name,
            Kind::Counter,
            "Connections by how their handshake came out.",
        );
        for (outcome, count) in OUTCOMES.iter().zip(&self.outcomes) {
            text.sample(name, &[("outcome", outcome)], count.load(Relaxed));
        }
        let rows: [(&str, Kind, &str, &AtomicU64); 4] = [
            ("routes", Kind::Gauge, "Routes in the table.", &self.routes),
            (
                "reloads_total",
                Kind::Counter,
                "Times the routes file was read.",
                &self.reloads,
            ),
            (
                "reload_failures_total",
                Kind::Counter,
                "Times the routes file could not be used; the routes before it stay.",
                &self.reload_failures,
            ),
            (
                "routes_file_good",
                Kind::Gauge,
                "Whether the routes in use are those in the file.",
                &self.file_good,
            ),
        ];
        for (name, kind, help, value) in rows {
            text.single(
                &format!("steward_gateway_{name}"),
                kind,
                help,
                value.load(Relaxed),
            );
        }
        render_shares(&mut text, shares);
        if by_route {
            self.render_routes(&mut text);
        }
        text.finish()
    }

    fn render_routes(&self, text: &mut Text) {
        let mut rows: Vec<(String, Arc<RouteCounters>)> = self
            .series
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .map(|(host, counters)| (host.to_string(), Arc::clone(counters)))
            .collect();
        rows.push(("(other)".into(), Arc::clone(&self.other)));
        for (name, kind, help, samples) in FAMILIES {
            let name = format!("steward_gateway_route_{name}");
            text.family(&name, *kind, help);
            for (host, counters) in &rows {
                for (labels, value) in *samples {
                    let mut all = vec![("route", host.as_str())];
                    all.extend_from_slice(labels);
                    text.sample(&name, &all, value(counters).load(Relaxed));
                }
            }
        }
    }
}

fn render_shares(text: &mut Text, shares: &Shares) {
    let crowd = shares.sources().crowd();
    for (name, help, value) in [
        (
            "connection_limit",
            "Connections with a route that the gateway takes at a time.",
            u64::from(shares.limits().connections),
        ),
        (
            "routed_connections",
            "Connections that have a route, which count against the limit.",
            u64::from(shares.routed()),
        ),
        (
            "sources",
            "Source addresses (IPv6: networks of 64 bits) with a connection.",
            crowd.sources,
        ),
        (
            "busiest_source_connections",
            "Connections of the source that has the most.",
            crowd.busiest,
        ),
    ] {
        text.single(&format!("steward_gateway_{name}"), Kind::Gauge, help, value);
    }
}

type Sample = (
    &'static [(&'static str, &'static str)],
    fn(&RouteCounters) -> &AtomicU64,
);

/// The metrics of a route: name, kind, help, and samples with their labels.
const FAMILIES: &[(&str, Kind, &str, &[Sample])] = &[
    (
        "connections_total",
        Kind::Counter,
        "Connections that a route let in.",
        &[(&[], |counters| &counters.connections)],
    ),
    (
        "connections",
        Kind::Gauge,
        "Connections of a route open now.",
        &[(&[], |counters| &counters.live)],
    ),
    (
        "bytes_total",
        Kind::Counter,
        "Payload bytes of a route, by direction.",
        &[
            (&[("direction", "to_server")], |counters| {
                &counters.to_server
            }),
            (&[("direction", "to_client")], |counters| {
                &counters.to_client
            }),
        ],
    ),
    (
        "refused_total",
        Kind::Counter,
        "Connections that a route did not let in or had no backend for.",
        &[
            (&[("reason", "source_denied")], |counters| {
                &counters.denied_source
            }),
            (&[("reason", "too_many_connections")], |counters| {
                &counters.denied_connections
            }),
            (&[("reason", "too_many_handshakes")], |counters| {
                &counters.denied_rate
            }),
            (&[("reason", "route_share")], |counters| {
                &counters.denied_share
            }),
            (&[("reason", "full")], |counters| &counters.denied_full),
            (&[("reason", "no_backend")], |counters| &counters.no_backend),
        ],
    ),
    (
        "backend_failures_total",
        Kind::Counter,
        "Times a backend of a route did not answer.",
        &[(&[], |counters| &counters.backend_failures)],
    ),
];

impl RouteCounters {
    pub(crate) fn denied(&self, denied: Denied) {
        let counter = match denied {
            Denied::Source => &self.denied_source,
            Denied::Connections => &self.denied_connections,
            Denied::Rate => &self.denied_rate,
            Denied::Share => &self.denied_share,
            Denied::Full => &self.denied_full,
        };
        counter.fetch_add(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shares::Limits;

    #[test]
    fn series_are_bounded_and_room_is_made_by_routes_that_went_away() {
        let metrics = Metrics::new(2);
        let first = metrics.route("a");
        let second = metrics.route("b");
        metrics.route("c").connections.fetch_add(5, Relaxed);
        assert!(Arc::ptr_eq(&metrics.route("c"), &metrics.other));
        assert!(Arc::ptr_eq(&metrics.route("a"), &first));
        drop(second);
        assert!(!Arc::ptr_eq(&metrics.route("c"), &metrics.other));
        let page = metrics.render(&Snapshot::default(), &Shares::new(Limits::none()), true);
        assert!(page.contains("steward_gateway_route_connections_total{route=\"(other)\"} 5\n"));
        assert!(
            page.contains("{route=\"a\",direction=\"to_server\"} 0\n"),
            "{page}"
        );
    }

    #[test]
    fn an_unknown_outcome_is_counted_as_other() {
        let metrics = Metrics::new(0);
        metrics.routed();
        metrics.not_routed("hello_timeout");
        metrics.not_routed("something new");
        let page = metrics.render(&Snapshot::default(), &Shares::new(Limits::none()), true);
        for line in [
            "\"routed\"} 1",
            "\"hello_timeout\"} 1",
            "\"other\"} 1",
            "\"cut\"} 0",
        ] {
            assert!(page.contains(line), "{line} in {page}");
        }
    }
}
