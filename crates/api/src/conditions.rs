//! Conditions: the types, the reasons, what a person does about each, and how they are merged.

mod reasons;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

pub use reasons::Reason;

/// Condition types of a `TenantControlPlane`, in the order of the steps. `Ready` is the one of a
/// `DataStore`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum ConditionType {
    /// The API server answers under its endpoint and the addons run.
    Available,
    /// Something is being changed right now.
    Progressing,
    /// The spec can be followed, seen together with the rest of the cluster.
    Accepted,
    /// The tenant's place in the datastore is there and its credentials work.
    DatastoreReady,
    /// Certificates and kubeconfigs are there and valid.
    CertificatesReady,
    /// The pods of the control plane run in the version asked for.
    ControlPlaneReady,
    /// The API server is reached from outside under its endpoint.
    EndpointReady,
    /// What belongs inside the tenant cluster is there.
    AddonsReady,
    /// The nodes allow the version asked for.
    VersionSkewSupported,
    /// A `DataStore` can be used.
    Ready,
    /// A `DataStore` may be deleted.
    DeletionAllowed,
    /// A `DataStore` keeps its tenants apart.
    TenantsIsolated,
}

impl ConditionType {
    /// Every type, in the order of the steps.
    pub const ALL: &[Self] = &[
        Self::Available,
        Self::Progressing,
        Self::Accepted,
        Self::DatastoreReady,
        Self::CertificatesReady,
        Self::ControlPlaneReady,
        Self::EndpointReady,
        Self::AddonsReady,
        Self::VersionSkewSupported,
        Self::Ready,
        Self::DeletionAllowed,
        Self::TenantsIsolated,
    ];

    /// As it is written in the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Available => "Available",
            Self::Progressing => "Progressing",
            Self::Accepted => "Accepted",
            Self::DatastoreReady => "DatastoreReady",
            Self::CertificatesReady => "CertificatesReady",
            Self::ControlPlaneReady => "ControlPlaneReady",
            Self::EndpointReady => "EndpointReady",
            Self::AddonsReady => "AddonsReady",
            Self::VersionSkewSupported => "VersionSkewSupported",
            Self::Ready => "Ready",
            Self::DeletionAllowed => "DeletionAllowed",
            Self::TenantsIsolated => "TenantsIsolated",
        }
    }

    /// What it says when it is true.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Available => "The API server answers under its endpoint and everything runs.",
            Self::Progressing => "Something is being changed right now.",
            Self::Accepted => {
                "The spec can be followed, seen together with the rest of the cluster."
            }
            Self::DatastoreReady => {
                "The tenant's place in the datastore is there and its credentials work."
            }
            Self::CertificatesReady => "Certificates and kubeconfigs are there and valid.",
            Self::ControlPlaneReady => {
                "The pods of the control plane run in the version asked for."
            }
            Self::EndpointReady => "The API server is reached from outside under its endpoint.",
            Self::AddonsReady => "What belongs inside the tenant cluster is there.",
            Self::VersionSkewSupported => "The tenant's nodes allow the version asked for.",
            Self::Ready => "The datastore can be used.",
            Self::DeletionAllowed => "No tenant uses the datastore.",
            Self::TenantsIsolated => {
                "The datastore's version has no known hole through which tenants reach each other's data."
            }
        }
    }
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It doesn't.
    False,
    /// It can't be said.
    Unknown,
}

impl ConditionStatus {
    /// As it is written in the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// What one condition should say now; the time of change is found by [`merge`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// Which condition.
    pub type_: ConditionType,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, for programs.
    pub reason: Reason,
    /// Why, for people: one or two sentences that name the object and what to do.
    pub message: String,
}

impl Finding {
    /// A condition that holds.
    pub fn yes(type_: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            type_,
            status: ConditionStatus::True,
            reason,
            message: message.into(),
        }
    }

    /// A condition that doesn't hold.
    pub fn no(type_: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            type_,
            status: ConditionStatus::False,
            reason,
            message: message.into(),
        }
    }

    /// A condition of which nothing can be said.
    pub fn unknown(type_: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            type_,
            status: ConditionStatus::Unknown,
            reason,
            message: message.into(),
        }
    }
}

/// The conditions to write: each finding once, with the old time of change where the status is still
/// the same. Conditions without a finding are left out, except those of types we don't know.
pub fn merge(
    old: &[Condition],
    findings: &[Finding],
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let foreign = old.iter().filter(|condition| {
        ConditionType::ALL
            .iter()
            .all(|ours| ours.as_str() != condition.type_)
    });
    findings
        .iter()
        .map(|finding| to_condition(old, finding, generation, now))
        .chain(foreign.cloned())
        .collect()
}

fn to_condition(
    old: &[Condition],
    finding: &Finding,
    generation: Option<i64>,
    now: Timestamp,
) -> Condition {
    let (type_, status) = (finding.type_.as_str(), finding.status.as_str());
    let since = old
        .iter()
        .find(|condition| condition.type_ == type_ && condition.status == status)
        .map_or(Time(now), |condition| {
            condition.last_transition_time.clone()
        });
    Condition {
        last_transition_time: since,
        message: truncated(&finding.message),
        observed_generation: generation,
        reason: finding.reason.as_str().to_owned(),
        status: status.to_owned(),
        type_: type_.to_owned(),
    }
}

/// The condition of a type, if it is there.
pub fn find(conditions: &[Condition], type_: ConditionType) -> Option<&Condition> {
    conditions
        .iter()
        .find(|condition| condition.type_ == type_.as_str())
}

/// Whether the condition of a type is there and true.
pub fn holds(conditions: &[Condition], type_: ConditionType) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == "True")
}

/// The API refuses messages beyond 32 KiB; people stop reading long before.
fn truncated(message: &str) -> String {
    const LIMIT: usize = 2048;
    match message.char_indices().nth(LIMIT) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn waiting(message: &str) -> Finding {
        Finding::no(ConditionType::Available, Reason::WaitingForPods, message)
    }

    #[test]
    fn the_time_of_change_stays_while_the_status_is_the_same() {
        let first = merge(&[], &[waiting("0 of 2")], Some(1), at(10));
        let second = merge(&first, &[waiting("1 of 2")], Some(2), at(20));
        assert_eq!(second[0].last_transition_time, Time(at(10)));
        assert_eq!(second[0].message, "1 of 2");
        assert_eq!(second[0].observed_generation, Some(2));
    }

    #[test]
    fn the_time_of_change_moves_with_the_status() {
        let first = merge(&[], &[waiting("")], Some(1), at(10));
        let ready = Finding::yes(ConditionType::Available, Reason::Ready, "");
        assert_eq!(
            merge(&first, &[ready], Some(1), at(20))[0].last_transition_time,
            Time(at(20))
        );
    }

    #[test]
    fn the_same_findings_change_nothing() {
        let first = merge(&[], &[waiting("x")], Some(1), at(10));
        assert_eq!(merge(&first, &[waiting("x")], Some(1), at(99)), first);
    }

    #[test]
    fn conditions_of_others_are_kept_and_stale_ones_of_ours_are_not() {
        let existing = |type_: &str| Condition {
            type_: type_.into(),
            ..merge(&[], &[waiting("")], None, at(0)).remove(0)
        };
        let (foreign, stale) = (existing("example.com/Backup"), existing("AddonsReady"));
        let merged = merge(&[foreign, stale], &[waiting("")], None, at(1));
        let types: Vec<_> = merged
            .iter()
            .map(|condition| condition.type_.as_str())
            .collect();
        assert_eq!(types, ["Available", "example.com/Backup"]);
    }

    #[test]
    fn types_are_unique() {
        let mut names: Vec<_> = ConditionType::ALL
            .iter()
            .map(|type_| type_.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ConditionType::ALL.len());
    }
}
