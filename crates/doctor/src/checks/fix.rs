//! The commands that several checks give, each made to be pasted as it is.

use crate::evidence::{Evidence, Workload};

/// The operator puts things right by itself, unless it was told not to.
pub(super) fn repaired(e: &Evidence, otherwise: impl FnOnce() -> String) -> String {
    if e.paused {
        return format!(
            "kubectl annotate tenantcontrolplane -n {} {} steward.butlerlabs.dev/paused-   # the operator then repairs this by itself",
            e.namespace(),
            e.name()
        );
    }
    otherwise()
}

/// A kubectl command against the tenant. Its kubeconfig is for its owner's eyes only.
pub(super) fn in_tenant(e: &Evidence, command: &str) -> String {
    let (namespace, name) = (e.namespace(), e.name());
    format!(
        "(umask 077; steward kubeconfig {name} -n {namespace} > {name}.conf); kubectl --kubeconfig {name}.conf {command}"
    )
}

/// What the operator says.
pub(super) fn operator_log() -> String {
    "kubectl logs -n steward-system -l app.kubernetes.io/component=controller-manager --tail=50"
        .to_owned()
}

/// What the tenant's conditions say.
pub(super) fn describe(e: &Evidence) -> String {
    format!(
        "kubectl describe tenantcontrolplane -n {} {}",
        e.namespace(),
        e.name()
    )
}

/// Brings a workload up: one that was scaled to nothing is scaled up, another looked at.
pub(super) fn start(workload: &Workload, replicas: u32) -> String {
    let Workload {
        object,
        namespace,
        desired,
        ..
    } = workload;
    if *desired == 0 && object.starts_with("deployment/") {
        return format!("kubectl scale -n {namespace} {object} --replicas={replicas}");
    }
    format!(
        "kubectl describe -n {namespace} {object}; kubectl get events -n {namespace} --sort-by=.lastTimestamp"
    )
}

/// The records that lead to the front door, for whoever runs the name server.
pub(super) fn records(e: &Evidence) -> String {
    format!(
        "steward dns {} -n {}   # the records to make",
        e.name(),
        e.namespace()
    )
}

/// Raises what a `ResourceQuota` allows to what was refused: the API server's own words, as in
/// `exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1`. Numbers with
/// units are left to a person.
pub(super) fn raise_quota(namespace: &str, refused: &str) -> Option<String> {
    let (_, told) = refused.split_once("exceeded quota: ")?;
    let (quota, told) = told.split_once(", requested: ")?;
    let (requested, told) = told.split_once(", used: ")?;
    let (used, _) = told.split_once(", limited: ")?;
    let amounts = |text: &str| -> Option<Vec<(String, u64)>> {
        let pair = |pair: &str| {
            let (what, amount) = pair.split_once('=')?;
            Some((what.to_owned(), amount.parse().ok()?))
        };
        text.split(',').map(pair).collect()
    };
    let Some((requested, used)) = amounts(requested).zip(amounts(used)) else {
        return Some(format!(
            "kubectl edit resourcequota -n {namespace} {quota}   # raise what the evidence names"
        ));
    };
    let hard: Vec<String> = requested
        .iter()
        .zip(used)
        .map(|((what, more), (_, used))| format!("\"{what}\":\"{}\"", more + used))
        .collect();
    let hard = hard.join(",");
    Some(format!(
        "kubectl patch resourcequota -n {namespace} {quota} --type merge -p '{{\"spec\":{{\"hard\":{{{hard}}}}}}}'"
    ))
}

/// Merges a piece of spec into the tenant.
pub(super) fn patch(e: &Evidence, spec: &str) -> String {
    format!(
        "kubectl patch tenantcontrolplane -n {} {} --type merge -p '{{\"spec\":{spec}}}'",
        e.namespace(),
        e.name()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_raised_by_what_was_refused() {
        let refused = "pods \"t2-x\" is forbidden: exceeded quota: small, requested: pods=1,services=2, used: pods=3,services=0, limited: pods=3,services=1";
        assert_eq!(
            raise_quota("tenants", refused).unwrap(),
            "kubectl patch resourcequota -n tenants small --type merge -p '{\"spec\":{\"hard\":{\"pods\":\"4\",\"services\":\"2\"}}}'"
        );
    }

    #[test]
    fn amounts_with_units_are_left_to_a_person() {
        let refused = "exceeded quota: small, requested: limits.memory=1Gi, used: limits.memory=512Mi, limited: limits.memory=1Gi";
        assert!(
            raise_quota("tenants", refused)
                .unwrap()
                .starts_with("kubectl edit resourcequota -n tenants small")
        );
        assert_eq!(
            raise_quota("tenants", "forbidden: violates PodSecurity"),
            None
        );
    }
}
