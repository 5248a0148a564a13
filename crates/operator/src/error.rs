//! What can go wrong while acting, and what that means for the next step.
//!
//! Owns: the error type of everything that reads or writes, and its classification, which drives
//! retry, condition and metric. Refuses: string matching. Errors of `kube` are shown with their own
//! text only, since they already repeat their causes.

use std::time::Duration;

use steward_api::conditions::Reason;

use crate::{datastore, events::clip, tenant::limits::TooMuch};

/// What an error asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Goes away by itself: try again, later and later.
    Transient,
    /// Something else must happen first; a watch will tell.
    Waiting,
    /// A person must change something.
    Invalid,
    /// We are wrong.
    Bug,
}

impl Class {
    /// The word used in metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Waiting => "waiting",
            Self::Invalid => "invalid",
            Self::Bug => "bug",
        }
    }
}

/// An operation that failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reading from the management cluster.
    #[error("reading {what}: {error}")]
    Read {
        /// What was read.
        what: String,
        /// The client's error.
        error: kube::Error,
    },
    /// Writing to the management cluster.
    #[error("writing {what} ({because}): {error}")]
    Write {
        /// Kind and name.
        what: String,
        /// Why it was to be written.
        because: String,
        /// The client's error.
        error: kube::Error,
    },
    /// Writing would have changed what belongs to somebody else.
    #[error("{what} {why}")]
    NotOurs {
        /// Kind and name.
        what: String,
        /// Whose it is, and what to do.
        why: String,
    },
    /// Talking to a tenant's API server.
    #[error("tenant API server at {endpoint}: {what}: {error}")]
    Tenant {
        /// Where it was dialled.
        endpoint: String,
        /// What was tried.
        what: String,
        /// The client's error.
        error: kube::Error,
    },
    /// A tenant's API server can't be dialled yet.
    #[error("tenant API server: {reason}")]
    TenantAccess {
        /// Why not.
        reason: String,
    },
    /// There is more inside a tenant than should be.
    #[error("inside the tenant: {reason}")]
    TooMuchInside {
        /// What, and what to do.
        reason: String,
    },
    /// Talking to a datastore.
    #[error(transparent)]
    Datastore(#[from] datastore::Error),
    /// An object without what every stored object has.
    #[error("{what} has no {field}; it can't have come from an API server")]
    Incomplete {
        /// Kind and name.
        what: String,
        /// The missing field.
        field: &'static str,
    },
    /// An object of ours could not be written as JSON.
    #[error("encoding {what}: {source}")]
    Encode {
        /// Kind and name.
        what: String,
        /// The encoder's error.
        source: serde_json::Error,
    },
    /// A plan could not be made.
    #[error("planning: {0}")]
    Plan(#[from] steward_plan::Error),
    /// A managed datastore could not be planned.
    #[error("planning: {0}")]
    PlanStore(steward_plan::datastore::Error),
    /// The reconcile took too long.
    #[error(
        "gave up after {after:?}; the API server, the datastore or the tenant is slow, it is tried again"
    )]
    Timeout {
        /// The limit.
        after: Duration,
    },
}

impl Error {
    /// What this error asks for.
    pub fn class(&self) -> Class {
        match self {
            Self::Read { error, .. } | Self::Write { error, .. } => kube_class(error),
            Self::Tenant { .. } | Self::Timeout { .. } => Class::Transient,
            Self::TenantAccess { .. } => Class::Waiting,
            Self::TooMuchInside { .. } | Self::NotOurs { .. } => Class::Invalid,
            Self::Datastore(error) => error.class(),
            Self::Incomplete { .. } | Self::Encode { .. } | Self::Plan(_) | Self::PlanStore(_) => {
                Class::Bug
            }
        }
    }

    /// Why a tenant can't be looked at, in a word and in words of a length that fits into a condition: a tenant's
    /// API server may answer with a whole page.
    pub fn unreached(&self, endpoint: &str) -> (Reason, String) {
        const LONGEST: usize = 2048;
        let too_much = match self {
            Self::TooMuchInside { .. } => true,
            Self::Read { error, .. } | Self::Write { error, .. } => TooMuch::of(error).is_some(),
            _ => false,
        };
        let (reason, sentence) = if too_much {
            (Reason::TooMuchInside, self.to_string())
        } else {
            (Reason::TenantUnreachable, format!("{endpoint}: {self}"))
        };
        (reason, clip(&sentence, LONGEST))
    }

    /// True when the object changed under us, so that looking again at once is right.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Read { error, .. } | Self::Write { error, .. }
            if matches!(error, kube::Error::Api(status) if status.is_conflict()))
    }

    /// True when the API server does not know us, or does not let us.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Read { error, .. } | Self::Write { error, .. }
            if matches!(error, kube::Error::Api(status) if matches!(status.code, 401 | 403)))
    }

    /// True when the API server refused because the namespace is going away.
    pub fn namespace_is_terminating(&self) -> bool {
        matches!(self, Self::Write { error: kube::Error::Api(status), .. }
            if status.details.as_ref().is_some_and(|details| details
                .causes
                .iter()
                .any(|cause| cause.reason == "NamespaceTerminating")))
    }
}

fn kube_class(error: &kube::Error) -> Class {
    match error {
        // 403 covers missing RBAC and exhausted quotas, both for a person; 422 is refused content.
        kube::Error::Api(status) if matches!(status.code, 400 | 403 | 405 | 415 | 422) => {
            Class::Invalid
        }
        kube::Error::SerdeError(_) | kube::Error::BuildRequest(_) => Class::Bug,
        _ => Class::Transient,
    }
}
