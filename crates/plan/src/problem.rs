//! What is wrong with a tenant, as sentences that say what to do.

use crate::condition::ConditionType;

/// One thing that keeps a tenant from being planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What kind of trouble: decides reason and retry.
    pub kind: ProblemKind,
    /// The field at fault (`spec.controlPlane.ingress.hostname`), or the object.
    pub field: String,
    /// What is wrong and what to do, as a sentence.
    pub message: String,
}

/// Kinds of trouble. The name is the condition's `reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProblemKind {
    /// The spec can't be right: wait for a change of it.
    InvalidSpec,
    /// Another tenant has the hostname: wait for either to change.
    HostnameConflict,
    /// The DataStore doesn't exist: wait for it.
    DatastoreMissing,
    /// The DataStore can't be used now.
    DatastoreNotReady,
    /// What the mode needs is not installed (Gateway API, Traefik's kinds).
    PlatformMissing,
    /// A Secret of ours, or one the user brought, can't be used.
    SecretUnusable,
    /// Kubelets are too old for the wanted version.
    KubeletSkew,
}

impl ProblemKind {
    /// Which condition tells of it.
    pub const fn condition(self) -> ConditionType {
        match self {
            Self::InvalidSpec => ConditionType::Progressing,
            Self::HostnameConflict | Self::PlatformMissing => ConditionType::EndpointReady,
            Self::DatastoreMissing | Self::DatastoreNotReady => ConditionType::DatastoreReady,
            Self::SecretUnusable => ConditionType::CertificatesReady,
            Self::KubeletSkew => ConditionType::ControlPlaneReady,
        }
    }

    /// The condition's reason.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::InvalidSpec => "InvalidSpec",
            Self::HostnameConflict => "HostnameConflict",
            Self::DatastoreMissing => "DatastoreMissing",
            Self::DatastoreNotReady => "DatastoreNotReady",
            Self::PlatformMissing => "PlatformMissing",
            Self::SecretUnusable => "SecretUnusable",
            Self::KubeletSkew => "KubeletSkew",
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}
