//! What is refused at `kubectl apply`, as data: where, when, and the sentence the user reads.
//!
//! Each message names the field, what is wrong and what to write instead. Rules need nothing but
//! the object itself; what depends on other objects is a condition, found by `steward-plan`.
//! [`policies`] holds the few that need metadata, which CRD rules can't see.

mod addons;
mod datastore;
pub mod egress;
mod exposure;
mod expressions;
mod kubernetes;
mod network;
mod pods;
pub mod policies;
pub mod status;
mod tenant;

use serde_json::{Value, json};

pub use kubernetes::{NEWEST_MINOR, OLDEST_MINOR};

/// One rule of a CRD.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Path of the schema that carries it, as `spec.networkProfile` or `spec.list[]`.
    pub at: &'static str,
    /// Field below `at` that the error points to, as `.port`.
    pub field: Option<&'static str>,
    /// Common Expression Language; true means accepted.
    pub expression: String,
    /// The sentence.
    pub message: String,
    /// Kind of error.
    pub reason: Reason,
    /// Looked at only when the object is created.
    pub at_creation: bool,
}

/// Kinds of errors that the API server tells apart. It also knows duplicates, but leaves out the
/// message for those.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Reason {
    /// The value is wrong.
    #[default]
    FieldValueInvalid,
    /// It may not be set, or not now.
    FieldValueForbidden,
    /// It is missing.
    FieldValueRequired,
}

/// Every rule of `TenantControlPlane`.
pub fn tenant() -> Vec<Rule> {
    [
        tenant::rules(),
        kubernetes::rules(),
        network::rules(),
        exposure::rules(),
        pods::rules(),
        addons::rules(),
        egress::rules(),
    ]
    .concat()
}

/// Every admission policy and binding, as objects to apply.
pub fn admission_policies() -> Vec<Value> {
    [policies::objects(), egress::objects(), status::objects()].concat()
}

/// Every rule of `DataStore`.
pub fn data_store() -> Vec<Rule> {
    datastore::rules()
}

impl Rule {
    fn new(at: &'static str, expression: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            at,
            field: None,
            expression: expression.into(),
            message: message.into(),
            reason: Reason::default(),
            at_creation: false,
        }
    }

    fn field(self, field: &'static str) -> Self {
        Self {
            field: Some(field),
            ..self
        }
    }

    /// For what can't change later, such as the name: an object from before the rule must not be
    /// stuck because of it.
    fn at_creation(self) -> Self {
        Self {
            at_creation: true,
            ..self
        }
    }

    fn forbidden(self) -> Self {
        Self {
            reason: Reason::FieldValueForbidden,
            ..self
        }
    }

    fn required(self) -> Self {
        Self {
            reason: Reason::FieldValueRequired,
            ..self
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        let expression = if self.at_creation {
            format!("oldSelf.hasValue() || ({})", self.expression)
        } else {
            self.expression.clone()
        };
        let mut json = json!({
            "rule": expression,
            "message": self.message,
            "reason": format!("{:?}", self.reason),
        });
        if self.at_creation {
            json["optionalOldSelf"] = true.into();
        }
        if let Some(field) = self.field {
            json["fieldPath"] = field.into();
        }
        json
    }
}
