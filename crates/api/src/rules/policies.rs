//! `ValidatingAdmissionPolicy`: rules that need more than the object itself: metadata, the person who
//! asks, or the namespace. CRD rules can't see these.
//!
//! - [`names`]: a tenant has a name to be routed by.
//! - `rights`: a field that the operator carries out with its own rights needs the same right of the
//!   person who sets it.
//! - `pod_security`: what Pod Security would refuse later is refused at once.
//! - `allowed`: what the platform team allows a namespace to use.
//!
//! All of them look only at what a request sets or changes: a tenant that was accepted once is never
//! stuck.

mod allowed;
pub mod names;
mod pod_security;
mod rights;

use serde_json::{Value, json};

pub use names::NAME_OF_POLICY;
pub use rights::{EXTERNAL_IPS, PRIVILEGED_PODS, USE};

use crate::{GROUP, VERSION};

/// A policy that is bound to every tenant.
struct Policy {
    name: &'static str,
    variables: Vec<Variable>,
    validations: Vec<Validation>,
}

/// An expression with a name. It is evaluated when it is first needed.
#[derive(Clone)]
struct Variable {
    name: String,
    expression: String,
}

/// One rule of a policy.
struct Validation {
    expression: String,
    /// The sentence, or what it is about when `sentence` can't be evaluated.
    message: String,
    /// An expression that makes the sentence.
    sentence: Option<String>,
    reason: &'static str,
}

/// The policies and their bindings, as objects to apply.
pub fn objects() -> Vec<Value> {
    let policies = [names::policy(), rights::policy(), allowed::policy()];
    policies
        .iter()
        .flat_map(|policy| [policy.object(), policy.binding()])
        .collect()
}

fn named(name: impl Into<String>, expression: String) -> Variable {
    Variable {
        name: name.into(),
        expression,
    }
}

impl Validation {
    /// A value that is wrong for everybody.
    fn new(expression: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            expression: expression.into(),
            message: message.into(),
            sentence: None,
            reason: "Invalid",
        }
    }

    /// Something that this person, or this namespace, may not do.
    fn forbidden(
        expression: impl Into<String>,
        message: impl Into<String>,
        sentence: impl Into<String>,
    ) -> Self {
        Self {
            expression: expression.into(),
            message: message.into(),
            sentence: Some(sentence.into()),
            reason: "Forbidden",
        }
    }

    fn to_json(&self) -> Value {
        let mut json = json!({ "expression": self.expression, "message": self.message });
        if let Some(sentence) = &self.sentence {
            json["messageExpression"] = sentence.clone().into();
        }
        if self.reason != "Invalid" {
            json["reason"] = self.reason.into();
        }
        json
    }
}

impl Policy {
    fn object(&self) -> Value {
        let variables: Vec<_> = self
            .variables
            .iter()
            .map(|v| json!({ "name": v.name, "expression": v.expression }))
            .collect();
        let validations: Vec<_> = self.validations.iter().map(Validation::to_json).collect();
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": { "name": self.name },
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {
                    "resourceRules": [{
                        "apiGroups": [GROUP],
                        "apiVersions": [VERSION],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": ["tenantcontrolplanes"],
                    }],
                },
                // An object that was accepted once must never be stuck: not while it is deleted, and
                // not when only a finalizer or a label changes.
                "matchConditions": [
                    {
                        "name": "not-being-deleted",
                        "expression": "!has(object.metadata.deletionTimestamp)",
                    },
                    {
                        "name": "spec-or-annotations-changed",
                        "expression": "oldObject == null || object.spec != oldObject.spec || \
                            (has(object.metadata.annotations) ? object.metadata.annotations : {}) != \
                            (has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {})",
                    },
                ],
                "variables": variables,
                "validations": validations,
            },
        })
    }

    fn binding(&self) -> Value {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": { "name": self.name },
            "spec": { "policyName": self.name, "validationActions": ["Deny"] },
        })
    }
}
