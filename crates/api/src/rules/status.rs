//! The policy that asks who may report the status of a tenant.
//!
//! Owns: the permission `report` on the resource `statuses`, in the whole cluster. What the operator once decided about
//! a tenant is in its status: which endpoint is kept, what an earlier version allowed it. A user with every right on
//! the tenants of a namespace, `tenantcontrolplanes/status` among them, must not decide that.

use serde_json::{Value, json};

use crate::{GROUP, VERSION};

/// Name of the policy and of its binding.
pub const NAME_OF_POLICY: &str = "status.tenantcontrolplane.steward.butlerlabs.dev";

/// The resource whose `report` is asked for. It has no objects.
pub const RESOURCE: &str = "statuses";

/// The verb that is asked for.
pub const VERB: &str = "report";

/// The policy and its binding, as objects to apply.
pub fn objects() -> Vec<Value> {
    vec![
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
                        "operations": ["UPDATE"],
                        "resources": ["tenantcontrolplanes/status"],
                    }],
                },
                "validations": [{
                    // Without a namespace: a right in one namespace is not enough.
                    "expression": format!(
                        "authorizer.group('{GROUP}').resource('{RESOURCE}').check('{VERB}').allowed()"
                    ),
                    "message": "status: what is in it is decided by the operator, and you may not \
                                report it; change spec, or ask the administrators of this cluster for \
                                the permission to report the resource statuses of the group \
                                steward.butlerlabs.dev",
                    "reason": "Forbidden",
                }],
            },
        }),
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": { "name": NAME_OF_POLICY },
            "spec": { "policyName": NAME_OF_POLICY, "validationActions": ["Deny"] },
        }),
    ]
}
