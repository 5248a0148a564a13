//! The goals, as data, and whether a run met them.

use crate::{
    cli::Test,
    results::{Metric, Results},
};

/// What noise may add to a ratio measured at a fixed rate, and to one of bulk.
const RATE_SLACK: f64 = 1.03;
const BULK_SLACK: f64 = 1.10;
/// Counts and memory repeat closely; they get what rounding takes.
const NO_SLACK: f64 = 1.005;

/// One goal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal {
    /// What it says.
    pub(crate) text: &'static str,
    /// Where it is measured.
    pub(crate) test: Test,
    /// Whose number it is about.
    pub(crate) name: &'static str,
    /// Which number.
    pub(crate) metric: Metric,
    /// At most this.
    pub(crate) limit: f64,
    slack: f64,
}

/// How a goal stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// At or below the limit.
    Met(f64),
    /// Above by no more than noise.
    WithinNoise(f64),
    /// Above.
    Missed(f64),
    /// Not measured in this run.
    NotRun,
}

const fn goal(
    words: &'static str,
    about: (Test, &'static str, Metric),
    limit: f64,
    slack: f64,
) -> Goal {
    let (test, name, metric) = about;
    Goal {
        text: words,
        test,
        name,
        metric,
        limit,
        slack,
    }
}

const GATEWAY: &str = "steward-gateway";
const TERMINATE: &str = "steward-terminate";
const END_TO_END: &str = "steward-end-to-end";
/// The route table as the Kubernetes side changes it.
pub(crate) const LIBRARY: &str = "steward-gateway, library";

/// All goals, front doors first.
pub(crate) const GOALS: [Goal; 18] = [
    goal(
        "front door: CPU per TLS connection, vs HAProxy",
        (Test::Conn, GATEWAY, Metric::Ratio),
        0.70,
        RATE_SLACK,
    ),
    goal(
        "front door: CPU per 1 KiB round trip, vs HAProxy",
        (Test::Rt, GATEWAY, Metric::Ratio),
        0.80,
        RATE_SLACK,
    ),
    goal(
        "front door: CPU per GB, vs HAProxy splicing",
        (Test::Bulk, GATEWAY, Metric::Ratio),
        0.65,
        BULK_SLACK,
    ),
    goal(
        "front door: CPU per GB of TLS records, vs HAProxy splicing",
        (Test::BulkTls, GATEWAY, Metric::Ratio),
        0.65,
        BULK_SLACK,
    ),
    goal(
        "front door: idle connection, KiB of user space",
        (Test::Idle, GATEWAY, Metric::ManyIdle),
        0.5,
        NO_SLACK,
    ),
    goal(
        "front door: one route of 100 000 visible, ms",
        (Test::Routes, LIBRARY, Metric::Visible),
        5.0,
        NO_SLACK,
    ),
    goal(
        "front door: system calls per connection",
        (Test::Syscalls, GATEWAY, Metric::CallsPerConnection),
        27.0,
        NO_SLACK,
    ),
    goal(
        "front door: system calls per round trip",
        (Test::Syscalls, GATEWAY, Metric::CallsPerRoundTrip),
        5.1,
        NO_SLACK,
    ),
    goal(
        "node: CPU per connection, Terminate, vs HAProxy",
        (Test::NodeConn, TERMINATE, Metric::Ratio),
        0.35,
        RATE_SLACK,
    ),
    goal(
        "node: CPU per connection, EndToEnd, node alone",
        (Test::NodeConn, END_TO_END, Metric::Ratio),
        0.30,
        RATE_SLACK,
    ),
    goal(
        "node: CPU per connection, EndToEnd, node and gate",
        (Test::NodeConn, END_TO_END, Metric::RatioWithGate),
        0.60,
        RATE_SLACK,
    ),
    goal(
        "node: idle connection, Terminate, KiB",
        (Test::Idle, TERMINATE, Metric::ManyIdle),
        16.0,
        NO_SLACK,
    ),
    goal(
        "node: idle connection, EndToEnd, KiB",
        (Test::Idle, END_TO_END, Metric::ManyIdle),
        16.0,
        NO_SLACK,
    ),
    goal(
        "node: added p50 latency, Terminate, µs",
        (Test::Latency, TERMINATE, Metric::AddedP50),
        300.0,
        BULK_SLACK,
    ),
    goal(
        "node: added p50 latency, EndToEnd, µs",
        (Test::Latency, END_TO_END, Metric::AddedP50),
        400.0,
        BULK_SLACK,
    ),
    goal(
        "node: process at rest, Terminate, MiB",
        (Test::Idle, TERMINATE, Metric::AtRest),
        6.0,
        NO_SLACK,
    ),
    goal(
        "node: process at rest, EndToEnd, MiB",
        (Test::Idle, END_TO_END, Metric::AtRest),
        6.0,
        NO_SLACK,
    ),
    goal(
        "front door: process at rest, MiB",
        (Test::Idle, GATEWAY, Metric::AtRest),
        6.0,
        NO_SLACK,
    ),
];

impl Goal {
    /// How it stands after a run.
    pub(crate) fn judge(&self, results: &Results) -> Verdict {
        match results
            .find(self.test, self.name, self.metric)
            .map(|spread| spread.middle)
        {
            None => Verdict::NotRun,
            Some(value) if value <= self.limit => Verdict::Met(value),
            Some(value) if value <= self.limit * self.slack => Verdict::WithinNoise(value),
            Some(value) => Verdict::Missed(value),
        }
    }
}

impl Verdict {
    /// The number, if there is one.
    pub(crate) fn value(self) -> Option<f64> {
        match self {
            Self::Met(value) | Self::WithinNoise(value) | Self::Missed(value) => Some(value),
            Self::NotRun => None,
        }
    }

    /// As a word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Met(_) => "met",
            Self::WithinNoise(_) => "met within noise",
            Self::Missed(_) => "missed",
            Self::NotRun => "not run",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    fn with(value: f64) -> Results {
        let mut results = Results::new(Machine::read());
        results.add_one(Test::Conn, GATEWAY, Metric::Ratio, value);
        results
    }

    #[test]
    fn a_goal_is_met_missed_or_not_run() {
        let goal = GOALS[0];
        assert_eq!(goal.judge(&with(0.69)), Verdict::Met(0.69));
        assert_eq!(goal.judge(&with(0.71)), Verdict::WithinNoise(0.71));
        assert_eq!(goal.judge(&with(0.75)), Verdict::Missed(0.75));
        assert_eq!(goal.judge(&Results::new(Machine::read())), Verdict::NotRun);
    }
}
