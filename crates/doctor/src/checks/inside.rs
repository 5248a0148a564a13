//! Is what nodes and pods need there, inside the tenant?

use super::names::{name, namespace};
use super::{Check, Verdict, seen};
use crate::evidence::{Addon, Evidence, Inside};
use crate::finding::{Group, Severity};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "kubeadm-objects",
        group: Group::Inside,
        what: "everything kubeadm join reads is there",
        why: "kubeadm join waits silently, for ever, for what is missing",
        judge: kubeadm,
    },
    Check {
        id: "kubernetes-endpointslice",
        group: Group::Inside,
        what: "the kubernetes EndpointSlice names the node proxies' address",
        why: "pods reach the API server through this address only",
        judge: slice,
    },
    Check {
        id: "tcp-proxy",
        group: Group::Inside,
        what: "a node proxy runs on every node",
        why: "pods on a node without one can't reach kubernetes.default.svc",
        judge: tcp_proxy,
    },
    Check {
        id: "konnectivity",
        group: Group::Inside,
        what: "konnectivity agents run",
        why: "exec, logs, port-forward, webhooks and aggregated APIs go through them",
        judge: konnectivity,
    },
    Check {
        id: "kube-proxy-server",
        group: Group::Inside,
        what: "kube-proxy is told the present endpoint",
        why: "with an old address Services stop changing on every node",
        judge: kube_proxy,
    },
    Check {
        id: "coredns",
        group: Group::Inside,
        what: "CoreDNS runs",
        why: "pods find Services by name through it",
        judge: coredns,
    },
    Check {
        id: "nodes",
        group: Group::Inside,
        what: "every node is ready",
        why: "pods run on nodes",
        judge: nodes,
    },
];

fn with(e: &Evidence, judge: impl FnOnce(&Inside) -> Verdict) -> Verdict {
    if e.ready.is_err() {
        return Verdict::Skip;
    }
    match seen(&e.inside, || {
        format!(
            "steward kubeconfig {} -n {} > t.conf; kubectl --kubeconfig t.conf get pods -A",
            name(e),
            namespace(e)
        )
    }) {
        Ok(found) => judge(found),
        Err(verdict) => verdict,
    }
}

fn operator_log() -> String {
    "kubectl logs -n steward-system -l app.kubernetes.io/component=controller-manager --tail=50"
        .to_owned()
}

fn kubeadm(e: &Evidence) -> Verdict {
    with(e, |i| {
        if i.missing_kubeadm.is_empty() {
            return Verdict::Fine("all there".to_owned());
        }
        Verdict::Wrong(
            Severity::Problem,
            format!("missing: {}", i.missing_kubeadm.join(", ")),
            operator_log(),
        )
    })
}

fn slice(e: &Evidence) -> Verdict {
    let Some(address) = &e.tcp_proxy else {
        return Verdict::Skip;
    };
    with(e, |i| match &i.slice {
        Some(slice) if slice.addresses == [address.clone()] => {
            Verdict::Fine(format!("{address}:{}", slice.port.unwrap_or_default()))
        }
        Some(slice) => Verdict::Wrong(
            Severity::Problem,
            format!("it names {}, not {address}", slice.addresses.join(", ")),
            format!(
                "steward kubeconfig {} -n {} > t.conf; kubectl --kubeconfig t.conf delete endpointslice kubernetes   # written anew at once",
                name(e),
                namespace(e)
            ),
        ),
        None => Verdict::Wrong(
            Severity::Problem,
            "it is missing".to_owned(),
            operator_log(),
        ),
    })
}

fn addon(found: &Addon, what: &str, nodes: usize) -> Verdict {
    if nodes == 0 {
        return Verdict::Skip;
    }
    let fix = format!("kubectl --kubeconfig t.conf describe pods -n kube-system -l {what}");
    if !found.exists {
        Verdict::Wrong(
            Severity::Problem,
            "its workload is missing".to_owned(),
            operator_log(),
        )
    } else if found.ready < found.desired || found.desired == 0 {
        Verdict::Wrong(
            Severity::Problem,
            format!("{} of {} ready", found.ready, found.desired),
            fix,
        )
    } else {
        Verdict::Fine(format!("{} of {} ready", found.ready, found.desired))
    }
}

fn tcp_proxy(e: &Evidence) -> Verdict {
    if e.tcp_proxy.is_none() {
        return Verdict::Skip;
    }
    with(e, |i| {
        addon(&i.tcp_proxy, "app=steward-tcp-proxy", i.nodes.len())
    })
}

fn konnectivity(e: &Evidence) -> Verdict {
    if !e.konnectivity {
        return Verdict::Skip;
    }
    with(e, |i| {
        addon(&i.konnectivity, "k8s-app=konnectivity-agent", i.nodes.len())
    })
}

fn coredns(e: &Evidence) -> Verdict {
    with(e, |i| {
        if i.coredns.exists {
            addon(&i.coredns, "k8s-app=kube-dns", i.nodes.len())
        } else {
            Verdict::Skip
        }
    })
}

fn kube_proxy(e: &Evidence) -> Verdict {
    with(e, |i| {
        let (Some(server), Some(endpoint)) = (&i.kube_proxy_server, &e.endpoint) else {
            return Verdict::Skip;
        };
        if server.trim_start_matches("https://") == endpoint {
            return Verdict::Fine(server.clone());
        }
        Verdict::Wrong(
            Severity::Problem,
            format!("{server}, but the endpoint is https://{endpoint}"),
            operator_log(),
        )
    })
}

fn nodes(e: &Evidence) -> Verdict {
    with(e, |i| {
        if i.nodes.is_empty() {
            return Verdict::Wrong(
                Severity::Warning,
                "there is no node yet".to_owned(),
                format!(
                    "steward join {} -n {}   # run what it prints on a worker",
                    name(e),
                    namespace(e)
                ),
            );
        }
        let down: Vec<&str> = i
            .nodes
            .iter()
            .filter(|n| !n.2)
            .map(|n| n.0.as_str())
            .collect();
        if down.is_empty() {
            Verdict::Fine(format!("{} ready", i.nodes.len()))
        } else {
            Verdict::Wrong(
                Severity::Problem,
                format!("not ready: {}", down.join(", ")),
                format!("kubectl --kubeconfig t.conf describe node {}", down[0]),
            )
        }
    })
}
