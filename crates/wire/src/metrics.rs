//! Metrics in the Prometheus text format, and the engine's own.
//!
//! Writes only; who counts what, and how many series that makes, is up to the
//! callers.

use std::fmt::Write;

use crate::counters::Snapshot;

/// A page of metrics under construction.
#[derive(Debug, Default)]
pub struct Text(String);

/// What a metric's value means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
}

impl Text {
    /// An empty page.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a metric; its samples follow.
    pub fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        // Writing to a String can't fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// One value of the metric started last.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: u64) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            self.0.push(if index == 0 { '{' } else { ',' });
            self.0.push_str(label);
            self.0.push_str("=\"");
            for character in text.chars() {
                match character {
                    '\\' => self.0.push_str("\\\\"),
                    '"' => self.0.push_str("\\\""),
                    '\n' => self.0.push_str("\\n"),
                    other => self.0.push(other),
                }
            }
            self.0.push('"');
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    /// A metric with one value and no labels.
    pub fn single(&mut self, name: &str, kind: Kind, help: &str, value: u64) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    /// The page.
    pub fn finish(self) -> String {
        self.0
    }
}

/// Writes the engine's counters under `prefix` (such as `steward_gateway`).
pub fn write_engine(text: &mut Text, prefix: &str, snapshot: &Snapshot) {
    let rows: [(&str, Kind, &str, u64); 12] = [
        (
            "accepted_total",
            Kind::Counter,
            "Connections accepted.",
            snapshot.accepted,
        ),
        (
            "established_total",
            Kind::Counter,
            "Connections that reached a server.",
            snapshot.established,
        ),
        (
            "connections",
            Kind::Gauge,
            "Connections open now.",
            snapshot.live,
        ),
        (
            "spliced_bytes_total",
            Kind::Counter,
            "Payload bytes spliced rather than copied.",
            snapshot.spliced,
        ),
        (
            "dial_failures_total",
            Kind::Counter,
            "Server addresses that did not answer.",
            snapshot.dial_failures,
        ),
        (
            "accept_pauses_total",
            Kind::Counter,
            "Times accepting paused because descriptors ran out.",
            snapshot.accept_pauses,
        ),
        (
            "evicted_total",
            Kind::Counter,
            "Unfinished handshakes dropped to make room.",
            snapshot.evicted,
        ),
        (
            "half_closed_timeouts_total",
            Kind::Counter,
            "Connections ended because one side had finished and the other said nothing more.",
            snapshot.half_closed,
        ),
        (
            "lingers_cut_total",
            Kind::Counter,
            "Refused clients closed before they were seen to have read why.",
            snapshot.lingers_cut,
        ),
        (
            "buffered_bytes",
            Kind::Gauge,
            "Bytes held for connections, in the kernel too, where there is a limit on them.",
            snapshot.buffered,
        ),
        (
            "shed_total",
            Kind::Counter,
            "Connections reset because too many bytes were held.",
            snapshot.shed,
        ),
        (
            "restarts_in_place_total",
            Kind::Counter,
            "Processes that died and were replaced without closing the listeners.",
            snapshot.restarts,
        ),
    ];
    for (name, kind, help, value) in rows {
        text.single(&format!("{prefix}_{name}"), kind, help, value);
    }
    let name = format!("{prefix}_bytes_total");
    text.family(&name, Kind::Counter, "Payload bytes, by direction.");
    text.sample(&name, &[("direction", "to_server")], snapshot.to_server);
    text.sample(&name, &[("direction", "to_client")], snapshot.to_client);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let mut text = Text::new();
        text.family("x", Kind::Gauge, "An x.");
        text.sample("x", &[("a", "q\"\\\n"), ("b", "plain")], 7);
        assert_eq!(
            text.finish(),
            "# HELP x An x.\n# TYPE x gauge\nx{a=\"q\\\"\\\\\\n\",b=\"plain\"} 7\n"
        );
    }
}
