//! Rules of `spec.controlPlane.egress`, and the policy that asks who may open a control plane's egress.
//!
//! Owns: the permission `use` on the resource `egress`. The resource has no objects. It is not a verb
//! on `tenantcontrolplanes`, because whoever has every verb on the tenants of one namespace must not
//! have this one. Refuses: deciding which addresses are fine; whoever has the permission decides.

use serde_json::{Value, json};

use super::Rule;
use super::expressions::all;
use crate::{GROUP, VERSION};

/// Name of the policy and of its binding.
pub const NAME_OF_POLICY: &str = "egress.tenantcontrolplane.steward.butlerlabs.dev";

/// The resource whose `use` is asked for.
pub const RESOURCE: &str = "egress";

const AT: &str = "spec.controlPlane.egress";

pub(super) fn rules() -> Vec<Rule> {
    let tunnel = |field: &'static str, path: &'static str| {
        let egress = format!("self.controlPlane.egress.{field}");
        Rule::new(
            "spec",
            format!(
                "!has(self.controlPlane.egress) || !has({egress}) || {egress} != 'Tunnel' || \
                 (has(self.addons) && has(self.addons.konnectivity))"
            ),
            format!(
                "controlPlane.egress.{field}: Tunnel leads through konnectivity, which is not asked \
                 for; set addons.konnectivity, or write Closed"
            ),
        )
        .field(path)
    };
    vec![
        tunnel("cluster", ".controlPlane.egress.cluster"),
        tunnel("controlPlane", ".controlPlane.egress.controlPlane"),
        Rule::new(
            AT,
            // Bits beyond the prefix are a condition: comparing ranges costs too much in 1.31.
            all("allow", "x", "isCIDR(x.cidr)"),
            "egress.allow[].cidr: each must be a CIDR; write address ranges such as 203.0.113.0/24, \
             or 203.0.113.7/32 for one address",
        )
        .field(".allow"),
    ]
}

/// The policy and its binding, as objects to apply.
pub fn objects() -> Vec<Value> {
    vec![policy(), binding()]
}

fn policy() -> Value {
    let opened = |owner: &str| {
        let egress = format!("{owner}.spec.controlPlane.egress");
        let direct =
            |field: &str| format!("(has({egress}.{field}) && {egress}.{field} == 'Direct')");
        format!(
            "has({egress}) && ({} || {} || (has({egress}.allow) && {egress}.allow.size() > 0))",
            direct("cluster"),
            direct("controlPlane"),
        )
    };
    let changed = format!(
        "oldObject == null || !({}) || object.spec.controlPlane.egress != \
         oldObject.spec.controlPlane.egress",
        opened("oldObject")
    );
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
            // What was allowed once stays as it is: the object must never be stuck.
            "matchConditions": [
                {
                    "name": "not-being-deleted",
                    "expression": "!has(object.metadata.deletionTimestamp)",
                },
                { "name": "egress-is-opened", "expression": opened("object") },
                { "name": "egress-changed", "expression": changed },
            ],
            "validations": [{
                "expression": format!(
                    "authorizer.group('{GROUP}').resource('{RESOURCE}')\
                     .namespace(object.metadata.namespace).check('use').allowed()"
                ),
                "message": "spec.controlPlane.egress: Direct and allow lead from the control plane \
                            into the network of this cluster, and you may not open that; leave them \
                            out, or ask the administrators of this cluster for the permission to use \
                            the resource egress of the group steward.butlerlabs.dev",
                "reason": "Forbidden",
            }],
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
