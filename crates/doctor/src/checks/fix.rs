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

/// Merges a piece of spec into the tenant.
pub(super) fn patch(e: &Evidence, spec: &str) -> String {
    format!(
        "kubectl patch tenantcontrolplane -n {} {} --type merge -p '{{\"spec\":{spec}}}'",
        e.namespace(),
        e.name()
    )
}
