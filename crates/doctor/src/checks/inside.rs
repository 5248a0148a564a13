//! Is what pods need there, inside the tenant?

use super::{Check, Verdict, fix, seen};
use crate::evidence::{Addon, Evidence, Inside};
use crate::finding::{Act, Group, Remedy, Side};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "inside",
        group: Group::Inside,
        what: "the objects inside the tenant can be read",
        why: "what can't be read can't be judged",
        follows: &["apiserver-ready", "datastore"],
        judge: readable,
    },
    Check {
        id: "kubeadm-objects",
        group: Group::Inside,
        what: "everything kubeadm join reads is there",
        why: "kubeadm join waits silently, for ever, for what is missing",
        follows: &["operator"],
        judge: kubeadm,
    },
    Check {
        id: "kubernetes-endpointslice",
        group: Group::Inside,
        what: "the kubernetes EndpointSlice names the node proxies' address, and nobody else's",
        why: "pods reach the API server through this address only",
        follows: &["endpoint-reconciler", "operator"],
        judge: slice,
    },
    Check {
        id: "tcp-proxy",
        group: Group::Inside,
        what: "a node proxy runs on every node",
        why: "pods on a node without one can't reach kubernetes.default.svc",
        follows: &["nodes", "operator"],
        judge: tcp_proxy,
    },
    Check {
        id: "kube-proxy-server",
        group: Group::Inside,
        what: "kube-proxy is told the present endpoint",
        why: "with an old address Services stop changing on every node",
        follows: &[],
        judge: kube_proxy,
    },
    Check {
        id: "coredns",
        group: Group::Inside,
        what: "CoreDNS runs",
        why: "pods find Services by name through it",
        follows: &[
            "nodes",
            "tcp-proxy",
            "kubernetes-endpointslice",
            "endpoint-reconciler",
            "kube-proxy-server",
        ],
        judge: coredns,
    },
    Check {
        id: "endpoint-told",
        group: Group::Inside,
        what: "kubeconfig and kubeadm's objects name the present endpoint",
        why: "nodes and people go where these lead; after a change of hostname an old one leads nowhere",
        follows: &["operator"],
        judge: told,
    },
    Check {
        id: "tcp-proxy-trust",
        group: Group::Inside,
        what: "node proxies verify the API server by the tenant's CA",
        why: "unverified, somebody on the way could read the pods' tokens; wrongly verified, nothing passes",
        follows: &["operator"],
        judge: trust,
    },
    Check {
        id: "inside-leftovers",
        group: Group::Inside,
        what: "no objects of addons that are switched off are left",
        why: "what nobody looks after goes on working on old news",
        follows: &["operator"],
        judge: leftovers,
    },
    Check {
        id: "extensions",
        group: Group::Inside,
        what: "webhooks and aggregated APIs have somebody behind them",
        why: "a webhook that nobody answers stops every write it watches; an API without a server makes deletion of namespaces hang",
        follows: &[
            "nodes",
            "konnectivity",
            "konnectivity-connections",
            "kubelets-reached",
            "coredns",
        ],
        judge: extensions,
    },
];

pub(super) fn with(e: &Evidence, judge: impl FnOnce(&Inside) -> Verdict) -> Verdict {
    match &e.inside {
        Ok(found) => judge(found),
        Err(_) => Verdict::Skip,
    }
}

fn readable(e: &Evidence) -> Verdict {
    if e.ready.is_err() {
        return Verdict::Skip;
    }
    match seen(&e.inside, || fix::in_tenant(e, "get pods -A")) {
        Ok(found) => Verdict::fine(&found.version),
        Err(verdict) => verdict,
    }
}

fn kubeadm(e: &Evidence) -> Verdict {
    with(e, |i| {
        if i.missing_kubeadm.is_empty() {
            return Verdict::fine("all there");
        }
        Verdict::problem(
            format!("missing: {}", i.missing_kubeadm.join(", ")),
            fix::repaired(e, fix::operator_log),
        )
    })
}

fn slice(e: &Evidence) -> Verdict {
    let Some(address) = &e.tcp_proxy else {
        return Verdict::Skip;
    };
    with(e, |i| {
        let Some(slice) = &i.slice else {
            return Verdict::problem("it is missing", fix::repaired(e, fix::operator_log));
        };
        if !i.other_slices.is_empty() {
            let names = i.other_slices.join(" ");
            return Verdict::problem(
                format!("{names} also speaks for the kubernetes Service"),
                fix::in_tenant(e, &format!("delete endpointslice -n default {names}")),
            );
        }
        if slice.addresses == [address.clone()] {
            return Verdict::fine(format!("{address}:{}", slice.port.unwrap_or_default()));
        }
        let anew = || {
            fix::in_tenant(
                e,
                "delete endpointslice -n default kubernetes   # the operator writes it anew",
            )
        };
        Verdict::problem(
            format!("it names {}, not {address}", slice.addresses.join(", ")),
            fix::repaired(e, anew),
        )
        .safely(
            e,
            Remedy {
                side: Side::Tenant,
                api_version: "discovery.k8s.io/v1",
                kind: "EndpointSlice",
                namespace: "default".to_owned(),
                name: "kubernetes".to_owned(),
                act: Act::Delete,
            },
        )
    })
}

/// Judges an addon's pods, on a tenant that has nodes to run them.
pub(super) fn addon(e: &Evidence, found: &Addon, nodes: usize, selector: &str) -> Verdict {
    if nodes == 0 {
        return Verdict::Skip;
    }
    let describe = || fix::in_tenant(e, &format!("describe pods -n kube-system -l {selector}"));
    if !found.exists {
        return Verdict::problem(
            "its workload is missing",
            fix::repaired(e, fix::operator_log),
        );
    }
    if !found.missing_on.is_empty() {
        return Verdict::problem(
            format!("none is ready on {}", found.missing_on.join(", ")),
            fix::repaired(e, describe),
        );
    }
    let seen = format!("{} of {} ready", found.ready, found.desired);
    if found.ready < found.desired || found.desired == 0 {
        return Verdict::problem(seen, fix::repaired(e, describe));
    }
    Verdict::Fine(seen)
}

fn tcp_proxy(e: &Evidence) -> Verdict {
    if e.tcp_proxy.is_none() {
        return Verdict::Skip;
    }
    with(e, |i| {
        addon(e, &i.tcp_proxy, i.nodes.len(), "app=steward-tcp-proxy")
    })
}

fn coredns(e: &Evidence) -> Verdict {
    with(e, |i| {
        if i.coredns.exists {
            addon(e, &i.coredns, i.nodes.len(), "k8s-app=kube-dns")
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
            return Verdict::fine(server);
        }
        let anew = || {
            fix::in_tenant(
                e,
                &format!(
                    "delete configmap -n kube-system kube-proxy; kubectl --kubeconfig {}.conf rollout restart -n kube-system daemonset/kube-proxy",
                    e.name()
                ),
            )
        };
        Verdict::problem(
            format!("{server}, but the endpoint is https://{endpoint}"),
            fix::repaired(e, anew),
        )
    })
}

fn told(e: &Evidence) -> Verdict {
    let Some(endpoint) = &e.endpoint else {
        return Verdict::Skip;
    };
    let admin = e
        .admin_endpoint
        .iter()
        .map(|found| ("the administrator's kubeconfig", found));
    let inside = e.inside.iter().flat_map(|i| &i.told);
    let all = admin.chain(inside.map(|t| (t.place.as_str(), &t.endpoint)));
    let mut count = 0;
    let old: Vec<String> = all
        .inspect(|_| count += 1)
        .filter(|(_, found)| *found != endpoint)
        .map(|(place, found)| format!("{place} says {found}"))
        .collect();
    if count == 0 {
        return Verdict::Skip;
    }
    if old.is_empty() {
        return Verdict::fine(format!("{count} places say {endpoint}"));
    }
    Verdict::problem(
        format!("{}, but the endpoint is {endpoint}", old.join(", ")),
        fix::repaired(e, fix::operator_log),
    )
}

fn trust(e: &Evidence) -> Verdict {
    if e.tcp_proxy.is_none() {
        return Verdict::Skip;
    }
    with(e, |i| match &i.proxy_trust {
        _ if !i.tcp_proxy.exists => Verdict::Skip,
        None => Verdict::fine("they do"),
        Some(wrong) => Verdict::problem(wrong, fix::repaired(e, fix::operator_log)),
    })
}

fn leftovers(e: &Evidence) -> Verdict {
    with(e, |i| {
        if i.leftovers.is_empty() {
            return Verdict::fine("none");
        }
        let remove = || {
            fix::in_tenant(
                e,
                &format!("delete -n kube-system {}", i.leftovers.join(" ")),
            )
        };
        Verdict::problem(
            format!("{} is left", i.leftovers.join(", ")),
            fix::repaired(e, remove),
        )
    })
}

fn extensions(e: &Evidence) -> Verdict {
    with(e, |i| match i.orphaned.first() {
        None => Verdict::fine("they have"),
        Some(_) => Verdict::warning(
            i.orphaned.join("; "),
            fix::in_tenant(
                e,
                "get apiservices,validatingwebhookconfigurations,mutatingwebhookconfigurations",
            ),
        ),
    })
}
