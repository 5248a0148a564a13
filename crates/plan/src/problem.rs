//! What is wrong with a tenant, as sentences that say what to do.

use steward_api::conditions::{ConditionType, Reason};

/// One thing that keeps a tenant from being planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Which condition tells of it.
    pub condition: ConditionType,
    /// What kind of trouble it is.
    pub reason: Reason,
    /// The field at fault (`spec.controlPlane.ingress.hostname`), or the object.
    pub field: String,
    /// What is wrong and what to do, as a sentence.
    pub message: String,
}

impl Problem {
    /// The spec can't be followed.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(ConditionType::Accepted, Reason::Invalid, field, message)
    }

    /// Any trouble.
    pub fn new(
        condition: ConditionType,
        reason: Reason,
        field: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            condition,
            reason,
            field: field.into(),
            message: message.into(),
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}
