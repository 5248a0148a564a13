//! Writes that the tenant refuses: `spec.writePermissions` as an admission policy inside it.
//!
//! A policy needs nobody to answer, so that a tenant is as limited with the operator gone as with it
//! there. Refuses: standing in the way of what keeps a cluster alive (kube-system, the nodes' leases,
//! status, who-may-do-what questions), of `system:masters`, who must be able to clean up, and of the operator.

use serde_json::{Value, json};
use steward_api::tenant_control_plane::WritePermissions;

use super::{cluster_wide, make, operator_access::USER};
use crate::{
    object::{Kind, Object},
    validate::Validated,
};

/// Name of the policy and of its binding.
pub(crate) const NAME: &str = "steward-write-permissions";

/// Policy and binding, while anything is refused.
pub(super) fn objects(tenant: &Validated) -> Vec<Object> {
    let limits = tenant.spec.write_permissions.unwrap_or_default();
    if !limits.limited() || !tenant.version.has_admission_policies() {
        return Vec::new();
    }
    let because = "spec.writePermissions limits what may be written";
    let body = json!({"metadata": cluster_wide(NAME), "spec": policy(limits)});
    let binding = json!({
        "metadata": cluster_wide(NAME),
        "spec": {"policyName": NAME, "validationActions": ["Deny"]},
    });
    vec![
        make(Kind::ValidatingAdmissionPolicy, because, &body),
        make(Kind::ValidatingAdmissionPolicyBinding, because, &binding),
    ]
}

fn policy(limits: WritePermissions) -> Value {
    let operations: Vec<&str> = [
        (limits.block_creation, "CREATE"),
        (limits.block_update, "UPDATE"),
        (limits.block_deletion, "DELETE"),
    ]
    .into_iter()
    .filter_map(|(blocked, operation)| blocked.then_some(operation))
    .collect();
    let rule = |groups: &[&str], operations: &[&str], resources: &[&str]| {
        json!({
            "apiGroups": groups,
            "apiVersions": ["*"],
            "operations": operations,
            "resources": resources,
            "scope": "*",
        })
    };
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            "namespaceSelector": {"matchExpressions": [{
                "key": "kubernetes.io/metadata.name",
                "operator": "NotIn",
                "values": ["kube-node-lease", "kube-system"],
            }]},
            // No other subresource: nodes go on telling how they and their pods are.
            "resourceRules": [rule(&["*"], &operations, &["*", "*/scale"])],
            // Questions that are asked by creating an object, which nobody keeps.
            "excludeResourceRules": [rule(
                &["authentication.k8s.io", "authorization.k8s.io"],
                &["*"],
                &["*"],
            )],
        },
        "matchConditions": [
            {
                "name": "not-a-master",
                "expression": "!('system:masters' in request.userInfo.groups)",
            },
            {
                "name": "not-the-operator",
                "expression": format!("request.userInfo.username != '{USER}'"),
            },
        ],
        "validations": [{
            "expression": "false",
            "message": limits.refusal(),
            "reason": "Forbidden",
        }],
    })
}
