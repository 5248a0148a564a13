//! What a run found out: facts, each about one proxy in one test. Rendering and
//! judging them is somebody else's.

use crate::{cli::Test, machine::Machine, stats::Spread};

/// What a number says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metric {
    /// Proxy CPU per operation in µs, or per GB in s.
    Cpu,
    /// The same with the gate behind it.
    CpuWithGate,
    /// Cost against the reference's.
    Ratio,
    /// The same with the gate behind it.
    RatioWithGate,
    /// Operations (or GB) per second.
    Rate,
    /// Median latency, µs.
    P50,
    /// Median latency above a direct connection's, µs.
    AddedP50,
    /// Median latency of a round trip on an open connection, µs.
    TripP50,
    /// The same above a direct connection's, µs.
    AddedTripP50,
    /// CPU of the front door per connection, µs.
    FrontDoorCpu,
    /// CPU of the gate per connection, µs.
    GateCpu,
    /// CPU of the node proxy per connection, µs.
    NodeProxyCpu,
    /// CPU of the front door per round trip, µs.
    FrontDoorTripCpu,
    /// CPU of the gate per round trip, µs.
    GateTripCpu,
    /// CPU of the node proxy per round trip, µs.
    NodeProxyTripCpu,
    /// Memory of a fresh process, MiB.
    AtRest,
    /// Memory per idle connection with few of them, KiB.
    FewIdle,
    /// Memory per idle connection with many of them, KiB.
    ManyIdle,
    /// Memory after all of them closed, MiB.
    AfterClose,
    /// Descriptors per idle connection.
    Descriptors,
    /// Until a change is visible to the next connection, ms.
    Visible,
    /// CPU for a change, ms.
    ChangeCpu,
    /// System calls per connection.
    CallsPerConnection,
    /// System calls per round trip.
    CallsPerRoundTrip,
}

/// One number.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    /// Where it comes from.
    pub(crate) test: Test,
    /// Whose it is.
    pub(crate) name: String,
    /// What it says.
    pub(crate) metric: Metric,
    /// How much.
    pub(crate) value: Spread,
}

/// All of them.
#[derive(Clone, Debug)]
pub(crate) struct Results {
    /// On what.
    pub(crate) machine: Machine,
    /// Programs and their versions.
    pub(crate) versions: Vec<(String, String)>,
    /// Proxies that were not measured, and why.
    pub(crate) missing: Vec<(String, String)>,
    /// The facts.
    pub(crate) facts: Vec<Fact>,
    /// Remarks on a test, such as that it is noisy.
    pub(crate) remarks: Vec<(Test, String)>,
}

impl Metric {
    /// As the head of a column.
    pub(crate) fn title(self, test: Test) -> &'static str {
        match self {
            Self::Cpu if matches!(test, Test::Bulk | Test::BulkTls) => "CPU s/GB",
            Self::Cpu => "CPU µs",
            Self::CpuWithGate => "with gate, µs",
            Self::Ratio => "ratio (quartiles)",
            Self::RatioWithGate => "ratio with gate",
            Self::Rate if matches!(test, Test::Bulk | Test::BulkTls) => "GB/s",
            Self::Rate => "per second",
            Self::P50 => "p50 µs",
            Self::AddedP50 => "added µs",
            Self::TripP50 => "round trip p50 µs",
            Self::AddedTripP50 => "added to it µs",
            Self::FrontDoorCpu => "front door CPU µs",
            Self::GateCpu => "gate CPU µs",
            Self::NodeProxyCpu => "node proxy CPU µs",
            Self::FrontDoorTripCpu => "front door, round trip",
            Self::GateTripCpu => "gate, round trip",
            Self::NodeProxyTripCpu => "node proxy, round trip",
            Self::AtRest => "at rest MiB",
            Self::FewIdle => "KiB/conn, few",
            Self::ManyIdle => "KiB/conn, many",
            Self::AfterClose => "after close MiB",
            Self::Descriptors => "fds/conn",
            Self::Visible => "visible after ms",
            Self::ChangeCpu => "CPU ms",
            Self::CallsPerConnection => "calls/connection",
            Self::CallsPerRoundTrip => "calls/round trip",
        }
    }

    /// Whether its quartiles are worth printing.
    pub(crate) fn has_spread(self) -> bool {
        matches!(self, Self::Ratio | Self::RatioWithGate)
    }
}

impl Results {
    /// Nothing yet.
    pub(crate) fn new(machine: Machine) -> Self {
        Self {
            machine,
            versions: vec![],
            missing: vec![],
            facts: vec![],
            remarks: vec![],
        }
    }

    /// Adds a number with its spread, if there is one.
    pub(crate) fn add(&mut self, test: Test, name: &str, metric: Metric, value: Option<Spread>) {
        if let Some(value) = value {
            self.facts.push(Fact {
                test,
                name: name.to_owned(),
                metric,
                value,
            });
        }
    }

    /// Adds a single number.
    pub(crate) fn add_one(&mut self, test: Test, name: &str, metric: Metric, value: f64) {
        self.add(test, name, metric, Spread::of([value]));
    }

    /// Looks a number up.
    pub(crate) fn find(&self, test: Test, name: &str, metric: Metric) -> Option<Spread> {
        let same = |fact: &&Fact| fact.test == test && fact.name == name && fact.metric == metric;
        self.facts.iter().find(same).map(|fact| fact.value)
    }

    /// Proxies of a test, in the order in which they were measured.
    pub(crate) fn names(&self, test: Test) -> Vec<&str> {
        let mut names = Vec::new();
        for fact in self.facts.iter().filter(|fact| fact.test == test) {
            if !names.contains(&fact.name.as_str()) {
                names.push(fact.name.as_str());
            }
        }
        names
    }

    /// Metrics of a test, in the order in which they were added.
    pub(crate) fn metrics(&self, test: Test) -> Vec<Metric> {
        let mut metrics = Vec::new();
        for fact in self.facts.iter().filter(|fact| fact.test == test) {
            if !metrics.contains(&fact.metric) {
                metrics.push(fact.metric);
            }
        }
        metrics
    }
}
