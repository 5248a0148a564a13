//! Does the operator run, do the control plane's pods, and does the API server answer?

use super::{Check, Verdict, fix, seen};
use crate::evidence::Evidence;
use crate::finding::Group;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "operator",
        group: Group::ControlPlane,
        what: "the operator runs",
        why: "without it nothing is made, repaired or renewed",
        follows: &[],
        judge: operator,
    },
    Check {
        id: "quota",
        group: Group::ControlPlane,
        what: "the namespace admits the control plane's pods",
        why: "a quota or policy that refuses them leaves the tenant without pods",
        follows: &[],
        judge: quota,
    },
    Check {
        id: "images",
        group: Group::ControlPlane,
        what: "every image of the control plane can be had",
        why: "a version without an image never starts",
        follows: &[],
        judge: images,
    },
    Check {
        id: "pods",
        group: Group::ControlPlane,
        what: "every pod of the control plane is ready",
        why: "with none the tenant is down, with too few it is one failure away from it",
        follows: &[
            "keys",
            "datastore",
            "datastore-credentials",
            "datastore-space",
            "quota",
            "images",
            "hostname-unique",
            "spec-accepted",
        ],
        judge: pods,
    },
    Check {
        id: "service-endpoints",
        group: Group::ControlPlane,
        what: "the tenant's Service has addresses behind it",
        why: "the front door sends connections to these addresses",
        follows: &[
            "datastore",
            "datastore-credentials",
            "quota",
            "images",
            "pods",
            "hostname-unique",
            "spec-accepted",
            "operator",
        ],
        judge: endpoints,
    },
    Check {
        id: "admin-credentials",
        group: Group::ControlPlane,
        what: "the administrator's kubeconfig is accepted",
        why: "nobody can manage the tenant with credentials that it refuses",
        follows: &["keys", "tls-passthrough", "dns-address", "clock"],
        judge: admitted,
    },
    Check {
        id: "apiserver-ready",
        group: Group::ControlPlane,
        what: "the API server says it is ready",
        why: "it is the tenant",
        follows: &[
            "keys",
            "hostname-unique",
            "dns-address",
            "tls-passthrough",
            "tls-names",
            "tls-expiry",
            "datastore",
            "datastore-credentials",
            "quota",
            "images",
            "pods",
            "service-endpoints",
            "admin-credentials",
        ],
        judge: ready,
    },
    Check {
        id: "endpoint-reconciler",
        group: Group::ControlPlane,
        what: "the API servers leave the kubernetes endpoints to the operator",
        why: "an API server that writes its own address behind a front door cuts the pods off; those that share an address take it away from each other",
        follows: &[],
        judge: reconciler,
    },
    Check {
        id: "operator-says",
        group: Group::ControlPlane,
        what: "the operator has nothing to complain about",
        why: "it sees the tenant from inside the management cluster, and says what it waits for",
        follows: &[
            "keys",
            "hostname-unique",
            "spec-accepted",
            "dns-resolves",
            "dns-address",
            "front-door-class",
            "front-door-object",
            "front-door-runs",
            "front-door-accepted",
            "front-door-passthrough",
            "front-door-leftovers",
            "tcp-connect",
            "tls-answers",
            "tls-passthrough",
            "tls-names",
            "tls-expiry",
            "datastore",
            "datastore-credentials",
            "operator",
            "quota",
            "images",
            "pods",
            "service-endpoints",
            "admin-credentials",
            "apiserver-ready",
            "endpoint-reconciler",
            "version-skew",
            "kubeadm-objects",
            "kubernetes-endpointslice",
            "tcp-proxy",
            "kube-proxy-server",
            "coredns",
            "nodes",
            "konnectivity",
            "kubelets-reached",
            "deleting",
            "datastore-latency",
            "datastore-space",
            "endpoint-told",
            "tcp-proxy-trust",
            "inside-leftovers",
            "konnectivity-connections",
            "node-clocks",
        ],
        judge: says,
    },
    Check {
        id: "version-skew",
        group: Group::ControlPlane,
        what: "the nodes' versions fit the version asked for",
        why: "kubelets more than three minors behind, or ahead, are not supported",
        follows: &[],
        judge: skew,
    },
];

fn operator(e: &Evidence) -> Verdict {
    match seen(&e.operator, || "steward install".to_owned()) {
        Err(verdict) => verdict,
        Ok(w) if w.ready == 0 => Verdict::problem(
            format!(
                "{} in {}: 0 of {} pods ready",
                w.object, w.namespace, w.desired
            ),
            fix::start(w, 1),
        ),
        Ok(w) => Verdict::fine(format!("{} of {} pods ready", w.ready, w.desired)),
    }
}

fn quota(e: &Evidence) -> Verdict {
    let Some(refused) = &e.refused_pods else {
        return Verdict::fine("it does");
    };
    let namespace = e.namespace();
    let fix = fix::raise_quota(namespace, refused).unwrap_or_else(|| {
        format!("kubectl get events -n {namespace} --field-selector reason=FailedCreate")
    });
    Verdict::problem(refused, fix)
}

fn images(e: &Evidence) -> Verdict {
    if e.missing_images.is_empty() {
        return Verdict::fine("all there");
    }
    let seen = e.missing_images.join("; ");
    let fix = match &e.installed_version {
        Some(version) => {
            fix::patch(
                e,
                &format!("{{\"kubernetes\":{{\"version\":\"{version}\"}}}}"),
            ) + "   # the version that runs"
        }
        None => format!(
            "kubectl edit tenantcontrolplane -n {} {}   # spec.kubernetes.version, or registrySettings",
            e.namespace(),
            e.name()
        ),
    };
    Verdict::problem(seen, fix)
}

fn pods(e: &Evidence) -> Verdict {
    let describe = || {
        format!(
            "kubectl describe pods -n {} -l steward.butlerlabs.dev/name={}",
            e.namespace(),
            e.name()
        )
    };
    match seen(&e.unready_pods, describe) {
        Err(verdict) => verdict,
        // While others serve, a pod that is not ready yet is a rollout more often than a fault.
        Ok(unready)
            if !unready.is_empty() && e.service_endpoints.as_ref().is_ok_and(|n| *n > 0) =>
        {
            Verdict::warning(unready.join("; "), describe())
        }
        Ok(unready) if !unready.is_empty() => Verdict::problem(unready.join("; "), describe()),
        Ok(_) => match condition(e, "ControlPlaneReady") {
            Some(what) => Verdict::problem(what, describe()),
            None => Verdict::fine("all ready"),
        },
    }
}

/// What a condition that does not hold says.
fn condition(e: &Evidence, kind: &str) -> Option<String> {
    // A paused tenant's conditions are old news.
    let found = e
        .conditions
        .iter()
        .find(|c| c.kind == kind && c.status == "False" && !e.paused)?;
    Some(format!("{}: {}", found.reason, found.message))
}

fn endpoints(e: &Evidence) -> Verdict {
    let look = || {
        let (namespace, name) = (e.namespace(), e.name());
        format!("kubectl get endpointslices -n {namespace} -l kubernetes.io/service-name={name}")
    };
    match seen(&e.service_endpoints, look) {
        Err(verdict) => verdict,
        Ok(0) => Verdict::problem("none", look()),
        Ok(count) => Verdict::fine(format!("{count}")),
    }
}

fn admitted(e: &Evidence) -> Verdict {
    match e.admitted {
        None => Verdict::Skip,
        Some(true) => Verdict::fine("it is"),
        Some(false) => {
            let anew = || {
                let (namespace, name) = (e.namespace(), e.name());
                format!(
                    "kubectl delete secret -n {namespace} {name}-admin-kubeconfig   # the operator writes it anew"
                )
            };
            Verdict::problem("401 Unauthorized", fix::repaired(e, anew))
        }
    }
}

fn ready(e: &Evidence) -> Verdict {
    let nowhere = e.tcp.is_err() || e.certificate.is_err();
    if e.admitted == Some(false) || (nowhere && !e.past_the_door) {
        return Verdict::Skip;
    }
    let logs = || {
        format!(
            "kubectl logs -n {} deployment/{} -c kube-apiserver --tail=50",
            e.namespace(),
            e.name()
        )
    };
    match seen(&e.ready, logs) {
        Ok(()) if e.past_the_door => Verdict::fine("ready, asked past the front door"),
        Ok(()) => Verdict::fine("ready"),
        Err(verdict) => verdict,
    }
}

fn reconciler(e: &Evidence) -> Verdict {
    match e.reconciler_off {
        Err(_) => Verdict::Skip,
        Ok(true) => Verdict::fine("--endpoint-reconciler-type=none"),
        Ok(false) => Verdict::problem(
            "--endpoint-reconciler-type=none is missing from kube-apiserver's arguments",
            fix::repaired(e, fix::operator_log),
        ),
    }
}

fn skew(e: &Evidence) -> Verdict {
    if let Some(what) = condition(e, "VersionSkewSupported") {
        return Verdict::problem(what, fix::describe(e));
    }
    let Ok(inside) = &e.inside else {
        return Verdict::fine("they fit, the operator says");
    };
    let Some(server) = minor(&inside.version) else {
        return Verdict::Skip;
    };
    let misfit = inside
        .nodes
        .iter()
        .find(|n| minor(&n.version).is_some_and(|node| node > server || server - node > OLDEST));
    match misfit {
        None => Verdict::fine("they fit"),
        Some(n) => Verdict::problem(
            format!(
                "{} runs {}, the API server {}",
                n.name, n.version, inside.version
            ),
            format!(
                "apt-get install kubelet='{}*' && systemctl restart kubelet   # on {}, or as its system has it",
                inside.version.trim_start_matches('v'),
                n.name
            ),
        ),
    }
}

/// How many minor versions a kubelet may be behind.
const OLDEST: u32 = 3;

fn minor(version: &str) -> Option<u32> {
    version.split('.').nth(1)?.parse().ok()
}

/// Conditions that no other check speaks of in its own words.
fn says(e: &Evidence) -> Verdict {
    let kinds = [
        "CertificatesReady",
        "EndpointReady",
        "AddonsReady",
        "Available",
    ];
    match kinds
        .iter()
        .find_map(|kind| Some((kind, condition(e, kind)?)))
    {
        Some((kind, what)) => Verdict::problem(format!("{kind}: {what}"), fix::describe(e)),
        None => Verdict::fine("it has not"),
    }
}
