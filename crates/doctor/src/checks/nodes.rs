//! Are the nodes well, and does the API server reach them?

use super::inside::{addon, with};
use super::tls::APART;
use super::{Check, Verdict, fix};
use crate::evidence::{Evidence, Tunnel};
use crate::finding::Group;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "nodes",
        group: Group::Inside,
        what: "every node is ready",
        why: "pods run on nodes",
        follows: &["node-clocks"],
        judge: nodes,
    },
    Check {
        id: "konnectivity",
        group: Group::Inside,
        what: "konnectivity agents run",
        why: "exec, logs, port-forward, webhooks and aggregated APIs go through them",
        follows: &["nodes", "operator"],
        judge: konnectivity,
    },
    Check {
        id: "konnectivity-connections",
        group: Group::Inside,
        what: "every konnectivity server has every agent, and every agent every server",
        why: "an API server whose own konnectivity server lacks an agent can't reach that node: one exec or log in so many fails",
        follows: &["konnectivity", "nodes", "pods", "node-clocks"],
        judge: connections,
    },
    Check {
        id: "cloud-provider",
        group: Group::Inside,
        what: "no node waits for a cloud controller",
        why: "until one says what the node is, only pods that tolerate this run there",
        follows: &["kubernetes-endpointslice", "tcp-proxy"],
        judge: cloud,
    },
    Check {
        id: "kubelets-reached",
        group: Group::Inside,
        what: "the API server reaches every kubelet",
        why: "exec and logs fail without it, even when every pod is well",
        follows: &[
            "nodes",
            "konnectivity",
            "konnectivity-connections",
            "node-clocks",
        ],
        judge: reached,
    },
    Check {
        id: "node-clocks",
        group: Group::Inside,
        what: "the nodes' clocks and the API server's agree",
        why: "a node whose clock is off refuses good certificates and tokens, and has its own refused",
        follows: &[],
        judge: clocks,
    },
];

fn nodes(e: &Evidence) -> Verdict {
    with(e, |i| {
        if i.nodes.is_empty() {
            return Verdict::warning(
                "there is no node yet",
                format!(
                    "steward join {} -n {}   # run what it prints on a worker",
                    e.name(),
                    e.namespace()
                ),
            );
        }
        let down: Vec<&str> = i
            .nodes
            .iter()
            .filter(|n| !n.ready)
            .map(|n| n.name.as_str())
            .collect();
        match down.first() {
            None => Verdict::fine(format!("{} ready", i.nodes.len())),
            Some(first) => Verdict::problem(
                format!("not ready: {}", down.join(", ")),
                fix::in_tenant(e, &format!("describe node {first}")),
            ),
        }
    })
}

fn konnectivity(e: &Evidence) -> Verdict {
    if !e.konnectivity {
        return Verdict::Skip;
    }
    with(e, |i| {
        addon(
            e,
            &i.konnectivity,
            i.nodes.len(),
            "k8s-app=konnectivity-agent",
        )
    })
}

/// Both ends are asked: servers know how many agents they have, agents how many servers.
fn connections(e: &Evidence) -> Verdict {
    if !e.konnectivity {
        return Verdict::Skip;
    }
    with(e, |i| {
        let agents = u64::try_from(i.konnectivity.ready).unwrap_or_default();
        let servers = e.konnectivity_servers.len() as u64;
        if agents == 0 || servers == 0 {
            return Verdict::Skip;
        }
        let lacking = |ends: &[Tunnel], others: u64, what: &str| -> Vec<String> {
            let few = ends.iter().filter(|t| t.connected < others);
            few.map(|t| format!("{} has {} of {others} {what}", t.pod, t.connected))
                .collect()
        };
        let mut wrong = lacking(&e.konnectivity_servers, agents, "agents");
        wrong.extend(lacking(&i.agents, servers, "servers"));
        if wrong.is_empty() {
            return Verdict::fine(format!("{servers} servers, {agents} agents"));
        }
        Verdict::problem(
            wrong.join(", "),
            fix::in_tenant(
                e,
                "rollout restart -n kube-system daemonset/konnectivity-agent",
            ),
        )
    })
}

fn cloud(e: &Evidence) -> Verdict {
    with(e, |i| {
        let waiting: Vec<&str> = i
            .nodes
            .iter()
            .filter(|n| n.uninitialized)
            .map(|n| n.name.as_str())
            .collect();
        if i.nodes.is_empty() {
            return Verdict::Skip;
        }
        if waiting.is_empty() {
            return Verdict::fine("none does");
        }
        Verdict::warning(
            format!("{} waits for one", waiting.join(", ")),
            fix::in_tenant(e, "get pods -A -o wide")
                + "   # does the cloud controller manager run? node proxies do not wait for it",
        )
    })
}

fn reached(e: &Evidence) -> Verdict {
    with(e, |i| {
        let failed: Vec<String> = i
            .kubelets
            .iter()
            .filter_map(|k| {
                k.outcome
                    .as_ref()
                    .err()
                    .map(|why| format!("{}: {why}", k.node))
            })
            .collect();
        match (failed.is_empty(), i.kubelets.len()) {
            (true, 0) => Verdict::Skip,
            (true, count) => Verdict::fine(format!("{count} asked")),
            (false, _) if e.konnectivity => Verdict::problem(
                failed.join("; "),
                fix::in_tenant(
                    e,
                    "rollout restart -n kube-system daemonset/konnectivity-agent",
                ),
            ),
            (false, _) => Verdict::problem(
                failed.join("; "),
                fix::patch(e, "{\"addons\":{\"konnectivity\":{}}}")
                    + "   # where no route leads to the nodes",
            ),
        }
    })
}

fn clocks(e: &Evidence) -> Verdict {
    with(e, |i| {
        let known = i
            .nodes
            .iter()
            .filter_map(|n| Some((n.name.as_str(), n.clock_ahead?)));
        let wrong: Vec<String> = known
            .filter(|(_, ahead)| ahead.abs() > APART)
            .map(|(name, ahead)| {
                let word = if ahead > 0 { "ahead" } else { "behind" };
                format!("{name} is {} s {word}", ahead.abs())
            })
            .collect();
        if i.nodes.is_empty() {
            Verdict::Skip
        } else if wrong.is_empty() {
            Verdict::fine("they agree")
        } else {
            Verdict::problem(
                wrong.join(", "),
                "timedatectl set-ntp true   # on that node",
            )
        }
    })
}
