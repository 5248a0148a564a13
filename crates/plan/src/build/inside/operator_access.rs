//! What the operator may do inside a tenant: a `ClusterRole` that lists it, and its binding.
//!
//! Refuses: `system:masters`, which no `ClusterRole` limits and nobody can take away. The right to grant rights is
//! listed too, because the operator writes the roles of kubelets and add-ons.

use std::collections::BTreeMap;

use k8s_openapi::api::rbac::v1::PolicyRule;

use super::{
    KINDS,
    rbac::{binding, cluster_role, rule, user},
};
use crate::object::{Kind, Object};

/// CN of the operator's certificate in every tenant.
pub const USER: &str = "steward-operator";

/// Name of the `ClusterRole` and of its binding.
const ROLE: &str = "steward:operator";

/// The `ClusterRole` and its binding.
pub fn objects() -> [Object; 2] {
    [cluster_role(ROLE, rules()), binding(ROLE, ROLE, user(USER))]
}

/// Every kind that is written inside, what has to be granted besides, and what is read.
fn rules() -> Vec<PolicyRule> {
    const WRITE: &[&str] = &[
        "get", "list", "watch", "create", "update", "patch", "delete",
    ];
    let policies = [
        Kind::ValidatingAdmissionPolicy,
        Kind::ValidatingAdmissionPolicyBinding,
    ];
    let mut written: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for kind in KINDS.iter().chain(&policies) {
        let (group, _, _, plural) = kind.names();
        written.entry(group).or_default().push(plural);
    }
    let mut rules: Vec<PolicyRule> = written
        .iter()
        .map(|(group, plurals)| rule(&[group], plurals, WRITE, &[]))
        .collect();
    rules.extend([
        rule(
            &["rbac.authorization.k8s.io"],
            &["roles", "clusterroles"],
            &["bind", "escalate"],
            &[],
        ),
        // The API server asks for it before it lets an EndpointSlice name any address.
        rule(
            &["discovery.k8s.io"],
            &["endpointslices/restricted"],
            &["create"],
            &[],
        ),
        rule(&[""], &["endpoints/restricted"], &["create"], &[]),
        rule(
            &[""],
            &["nodes", "pods", "namespaces"],
            &["get", "list", "watch"],
            &[],
        ),
        PolicyRule {
            non_resource_urls: Some(vec!["/version".into(), "/readyz".into(), "/livez".into()]),
            verbs: vec!["get".into()],
            ..PolicyRule::default()
        },
    ]);
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_that_may_be_removed_inside_is_listed() {
        let rules = rules();
        for kind in KINDS {
            let (group, _, _, plural) = kind.names();
            let granted = rules.iter().any(|rule| {
                rule.api_groups.as_deref() == Some(&[group.to_owned()])
                    && rule.resources.iter().flatten().any(|one| one == plural)
                    && rule.verbs.iter().any(|verb| verb == "delete")
            });
            assert!(granted, "{kind:?}");
        }
    }

    #[test]
    fn nothing_is_granted_by_a_wildcard() {
        for rule in rules() {
            let groups = rule.api_groups.unwrap_or_default();
            let resources = rule.resources.unwrap_or_default();
            let all = groups.iter().chain(&resources).chain(&rule.verbs);
            assert!(all.into_iter().all(|word| !word.contains('*')));
        }
    }
}
