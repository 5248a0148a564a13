//! `ValidatingAdmissionPolicy`: rules that need metadata beyond the name, which CRD rules can't see.

use serde_json::{Value, json};

use super::expressions::NAME;
use crate::metadata::annotations::{INGRESS_DOMAIN, KAMAJI_INGRESS_DOMAIN};
use crate::{GROUP, VERSION};

/// Name of the policy and of its binding.
pub const NAME_OF_POLICY: &str = "tenantcontrolplane.steward.butlerlabs.dev";

/// One rule of the policy.
struct Validation {
    expression: String,
    message: &'static str,
}

/// The policy and its binding, as objects to apply.
pub fn objects() -> Vec<Value> {
    vec![policy(), binding()]
}

fn policy() -> Value {
    let validations: Vec<_> = validations()
        .into_iter()
        .map(|validation| {
            json!({ "expression": validation.expression, "message": validation.message })
        })
        .collect();
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": NAME_OF_POLICY },
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
            "variables": variables(),
            "validations": validations,
        },
    })
}

fn binding() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": NAME_OF_POLICY },
        "spec": { "policyName": NAME_OF_POLICY, "validationActions": ["Deny"] },
    })
}

fn variables() -> Value {
    let named = |name: &str, expression: String| json!({ "name": name, "expression": expression });
    let own = |mode: &str, field: &str| {
        format!(
            "has(object.spec.controlPlane.{mode}) && has(object.spec.controlPlane.{mode}.{field}) ? \
             object.spec.controlPlane.{mode}.{field} : "
        )
    };
    let annotation =
        |key: &str| format!("'{key}' in variables.annotations ? variables.annotations['{key}'] : ");
    json!([
        named(
            "annotations",
            "has(object.metadata.annotations) ? object.metadata.annotations : {}".into(),
        ),
        named(
            "shared",
            "has(object.spec.controlPlane.ingress) || has(object.spec.controlPlane.gateway)".into(),
        ),
        named(
            "hostname",
            format!("{}({}'')", own("ingress", "hostname"), own("gateway", "hostname")),
        ),
        named(
            "domain",
            format!(
                "{}({}({}({}'')))",
                own("ingress", "domain"),
                own("gateway", "domain"),
                annotation(INGRESS_DOMAIN),
                annotation(KAMAJI_INGRESS_DOMAIN),
            ),
        ),
        named(
            "label",
            "object.metadata.namespace + '-' + (has(object.metadata.name) ? object.metadata.name : '')"
                .into(),
        ),
    ])
}

fn validations() -> Vec<Validation> {
    vec![
        Validation {
            expression: "!variables.shared || variables.hostname != '' || variables.domain != ''"
                .into(),
            message: "spec.controlPlane: ingress and gateway need a name to route by, and there is \
                      neither a hostname nor a domain; write hostname, or domain, or the annotation \
                      steward.butlerlabs.dev/ingress.domain",
        },
        Validation {
            expression: format!(
                "!variables.shared || variables.domain == '' || (variables.domain.matches('^{NAME}$') \
                 && !isIP(variables.domain))"
            ),
            message: "metadata.annotations: the ingress domain must be a lower-case DNS domain \
                      without wildcard, scheme or port; write example.com to get \
                      <namespace>-<name>.k8s.example.com",
        },
        Validation {
            expression:
                "!variables.shared || variables.hostname != '' || variables.domain == '' || \
                         (variables.label.size() <= 63 && \
                         variables.label.size() + variables.domain.size() <= 239)"
                    .into(),
            message: "metadata.name: <namespace>-<name> is the first part of the hostname that is made \
                      from the domain, and longer than 63 characters, or the whole is longer than 253; \
                      choose a shorter name, or write hostname",
        },
        Validation {
            expression: "object.metadata.namespace != 'default' || \
                         !has(object.metadata.name) || object.metadata.name != 'kubernetes'"
                .into(),
            message: "metadata.name: the Service kubernetes in namespace default is this cluster's own; \
                      choose another name or namespace",
        },
    ]
}
