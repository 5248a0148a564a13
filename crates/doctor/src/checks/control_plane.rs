//! Do the control plane's pods run, and does its datastore answer?

use super::names::{name, namespace};
use super::{Check, Verdict, seen};
use crate::evidence::Evidence;
use crate::finding::{Group, Severity};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "datastore",
        group: Group::ControlPlane,
        what: "the datastore is ready",
        why: "an API server without its datastore answers nothing",
        judge: datastore,
    },
    Check {
        id: "pods",
        group: Group::ControlPlane,
        what: "every pod of the control plane is ready",
        why: "with none the tenant is down, with too few it is one failure away from it",
        judge: pods,
    },
    Check {
        id: "service-endpoints",
        group: Group::ControlPlane,
        what: "the tenant's Service has addresses behind it",
        why: "the front door sends connections to these addresses",
        judge: endpoints,
    },
    Check {
        id: "apiserver-ready",
        group: Group::ControlPlane,
        what: "the API server says it is ready",
        why: "it is the tenant",
        judge: ready,
    },
    Check {
        id: "endpoint-reconciler",
        group: Group::ControlPlane,
        what: "the API server leaves the kubernetes endpoints to the operator",
        why: "with tcpProxy on, an API server that writes its own address there cuts the pods off",
        judge: reconciler,
    },
    Check {
        id: "version-skew",
        group: Group::ControlPlane,
        what: "the nodes' versions fit the version asked for",
        why: "kubelets more than three minors behind, or ahead, are not supported",
        judge: skew,
    },
];

fn datastore(e: &Evidence) -> Verdict {
    let fix = || "kubectl get datastores; kubectl describe datastore".to_owned();
    match seen(&e.datastore, fix) {
        Err(verdict) => verdict,
        Ok((datastore, conditions)) => match conditions.iter().find(|c| c.kind == "Ready") {
            Some(c) if c.status != "True" => Verdict::Wrong(
                Severity::Problem,
                format!("{datastore}: {}", c.message),
                format!("kubectl describe datastore {datastore}"),
            ),
            _ => tenant_condition(e, "DatastoreReady", || format!("{datastore} is ready")),
        },
    }
}

fn tenant_condition(e: &Evidence, kind: &str, fine: impl FnOnce() -> String) -> Verdict {
    match e
        .conditions
        .iter()
        .find(|c| c.kind == kind && c.status == "False")
    {
        Some(c) => Verdict::Wrong(
            Severity::Problem,
            format!("{}: {}", c.reason, c.message),
            format!(
                "kubectl describe tenantcontrolplane -n {} {}",
                namespace(e),
                name(e)
            ),
        ),
        None => Verdict::Fine(fine()),
    }
}

fn pods(e: &Evidence) -> Verdict {
    let describe = || {
        format!(
            "kubectl describe pods -n {} -l steward.butlerlabs.dev/name={}",
            namespace(e),
            name(e)
        )
    };
    match seen(&e.unready_pods, describe) {
        Err(verdict) => verdict,
        Ok(unready) if unready.is_empty() => {
            tenant_condition(e, "ControlPlaneReady", || "all ready".to_owned())
        }
        Ok(unready) => Verdict::Wrong(Severity::Problem, unready.join("; "), describe()),
    }
}

fn endpoints(e: &Evidence) -> Verdict {
    let fix = || {
        format!(
            "kubectl get endpointslices -n {} -l kubernetes.io/service-name={}",
            namespace(e),
            name(e)
        )
    };
    match seen(&e.service_endpoints, fix) {
        Err(verdict) => verdict,
        Ok(0) => Verdict::Wrong(Severity::Problem, "none".to_owned(), fix()),
        Ok(count) => Verdict::Fine(format!("{count}")),
    }
}

fn ready(e: &Evidence) -> Verdict {
    if e.tcp.is_err() || e.certificate.is_err() {
        return Verdict::Skip;
    }
    let logs = || {
        format!(
            "kubectl logs -n {} deployment/{} -c kube-apiserver --tail=50",
            namespace(e),
            name(e)
        )
    };
    match seen(&e.ready, logs) {
        Ok(()) => Verdict::Fine("ready".to_owned()),
        Err(verdict) => verdict,
    }
}

fn reconciler(e: &Evidence) -> Verdict {
    if e.tcp_proxy.is_none() {
        return Verdict::Skip;
    }
    match e.reconciler_off {
        Err(_) => Verdict::Skip,
        Ok(true) => Verdict::Fine("--endpoint-reconciler-type=none".to_owned()),
        Ok(false) => Verdict::Wrong(
            Severity::Problem,
            "--endpoint-reconciler-type=none is missing".to_owned(),
            format!(
                "kubectl delete deployment -n {} {}   # the operator writes it anew",
                namespace(e),
                name(e)
            ),
        ),
    }
}

fn skew(e: &Evidence) -> Verdict {
    tenant_condition(e, "VersionSkewSupported", || "they fit".to_owned())
}
