//! How the tenant's own pods find the API server, and the order of steps when that
//! changes: nothing that pods still use goes before its replacement works.
//!
//! Where the `kubernetes` Service leads is always ours to write, never the API servers':
//! those that share an address take it away from each other whenever one starts or stops
//! (docs/adr/0005-own-endpoints.md).

use std::net::IpAddr;

use serde_json::Value;
use steward_api::{
    conditions::{ConditionType, Reason},
    tenant_control_plane::TcpProxyMode,
};

use crate::{
    build::inside::{SYSTEM, tcp_proxy_keys},
    names::{TCP_PROXY_PORT, TERMINATE_PORT},
    object::{Kind, ObjectKey},
    observed::{Endpoints, Inside, Observed, Rollout},
    outcome::Wait,
    validate::{NodeProxy, Validated, wait},
    way::Ways,
};

/// How pods find the API server now.
pub(crate) struct Inner {
    /// What the `kubernetes` endpoints say; `None` leaves them as they are.
    pub(crate) endpoints: Option<Endpoints>,
    /// What of a proxy on the nodes stays although it isn't wanted: pods still go through it.
    pub(crate) keep: Vec<ObjectKey>,
    /// Whether the gate is in the pods.
    pub(crate) gate: bool,
    /// What is waited for.
    pub(crate) waits: Vec<Wait>,
}

/// Whether the node proxy opens TLS itself.
pub(crate) fn terminates(tenant: &Validated) -> bool {
    tenant
        .node_proxy
        .as_ref()
        .is_some_and(|proxy| proxy.mode == TcpProxyMode::Terminate)
}

/// Whether a pod of the control plane answers.
pub(crate) fn serving(tenant: &Validated, observed: &Observed) -> bool {
    deployment(tenant, observed)
        .and_then(|live| live.pointer("/status/readyReplicas")?.as_i64())
        .is_some_and(|ready| ready > 0)
}

fn deployment<'a>(tenant: &Validated, observed: &'a Observed) -> Option<&'a Value> {
    observed.live.get(
        Kind::Deployment,
        &tenant.names.namespace,
        &tenant.names.tenant,
    )
}

fn container<'a>(tenant: &Validated, observed: &'a Observed, name: &str) -> Option<&'a Value> {
    let all = deployment(tenant, observed)?.pointer("/spec/template/spec/containers")?;
    all.as_array()?.iter().find(|c| c["name"] == name)
}

/// The proxy of a mode on the tenant's nodes, if it is there.
fn on_nodes(observed: &Observed, mode: TcpProxyMode) -> Option<&Rollout> {
    let Inside::Reachable { workloads, .. } = &observed.inside else {
        return None;
    };
    let kind = match mode {
        TcpProxyMode::EndToEnd => Kind::DaemonSet,
        TcpProxyMode::Terminate => Kind::Deployment,
    };
    workloads.get(&ObjectKey::new(kind, SYSTEM, "steward-tcp-proxy"))
}

/// Where pods are sent now.
fn current(observed: &Observed) -> Option<&Endpoints> {
    match &observed.inside {
        Inside::Reachable { endpoints, .. } => endpoints.as_ref(),
        Inside::NotTried | Inside::Unreachable { .. } => None,
    }
}

/// Whether every node's kube-proxy is there to follow the endpoints: one that is about to be
/// replaced, because it dials the API server elsewhere, would not hear of a change.
fn kube_proxies_listen(observed: &Observed, ways: &Ways) -> bool {
    let Inside::Reachable { workloads, .. } = &observed.inside else {
        return false;
    };
    let key = ObjectKey::new(Kind::DaemonSet, SYSTEM, "kube-proxy");
    let here = ways.active.authority();
    workloads.get(&key).is_none_or(|rollout| {
        rollout.done() && rollout.endpoint.as_ref().is_none_or(|there| *there == here)
    })
}

/// Whether pods were sent to `target` before, and every node has heard of it.
fn followed(observed: &Observed, ways: &Ways, target: Option<&Endpoints>) -> bool {
    target.is_some() && current(observed) == target && kube_proxies_listen(observed, ways)
}

/// Whether pods can go through the proxy of a mode: on every node, or on any.
fn ready(observed: &Observed, mode: TcpProxyMode) -> bool {
    let Inside::Reachable { nodes, proxies, .. } = &observed.inside else {
        return false;
    };
    match (mode, on_nodes(observed, mode)) {
        (TcpProxyMode::EndToEnd, Some(rollout)) => rollout.done(),
        (TcpProxyMode::EndToEnd, None) => nodes.is_empty(),
        (TcpProxyMode::Terminate, Some(rollout)) => rollout.current && !proxies.is_empty(),
        (TcpProxyMode::Terminate, None) => false,
    }
}

/// The modes of proxies that are there and not wanted. Without a look inside, any may be
/// there if there is a gate for it.
fn unwanted(tenant: &Validated, observed: &Observed) -> Vec<TcpProxyMode> {
    let wanted = tenant.node_proxy.as_ref().map(|proxy| proxy.mode);
    let there = |mode| match &observed.inside {
        Inside::Reachable { .. } => on_nodes(observed, mode).is_some(),
        Inside::NotTried | Inside::Unreachable { .. } => {
            container(tenant, observed, "steward-gate").is_some()
        }
    };
    [TcpProxyMode::EndToEnd, TcpProxyMode::Terminate]
        .into_iter()
        .filter(|mode| Some(*mode) != wanted && there(*mode))
        .collect()
}

fn keys(modes: &[TcpProxyMode]) -> Vec<ObjectKey> {
    modes
        .iter()
        .flat_map(|mode| tcp_proxy_keys(*mode))
        .collect()
}

/// How pods find the API server, given what runs now.
pub(crate) fn inner(tenant: &Validated, observed: &Observed, ways: &Ways) -> Inner {
    match &tenant.node_proxy {
        Some(proxy) => with_proxy(tenant, proxy, observed, ways),
        None => without_proxy(tenant, observed, ways),
    }
}

/// The proxy first, where it has to be; then the endpoints that lead to it; then what was
/// there before goes. A tenant that never had anything else starts with the proxy at once.
fn with_proxy(tenant: &Validated, proxy: &NodeProxy, observed: &Observed, ways: &Ways) -> Inner {
    let target = match proxy.mode {
        TcpProxyMode::EndToEnd => Some(Endpoints {
            addresses: vec![proxy.address],
            port: TCP_PROXY_PORT,
        }),
        TcpProxyMode::Terminate => terminating(observed),
    };
    let other = unwanted(tenant, observed);
    let elsewhere = !other.is_empty() || direct(tenant, observed, ways);
    let go = current(observed) == target.as_ref() || !elsewhere || ready(observed, proxy.mode);
    let keep = if go && followed(observed, ways, target.as_ref()) {
        Vec::new()
    } else {
        keys(&other)
    };
    let mut waits = Vec::new();
    if !go || !keep.is_empty() {
        let message = "pods keep their way to the API server until the proxy runs where it has to, \
                       and every kube-proxy has heard of it";
        waits.push(wait(
            ConditionType::AddonsReady,
            Reason::Reconciling,
            message,
        ));
    }
    Inner {
        endpoints: target.filter(|_| go),
        keep,
        gate: true,
        waits,
    }
}

/// Whether pods are sent to an address of the tenant's own, past any proxy.
fn direct(tenant: &Validated, observed: &Observed, ways: &Ways) -> bool {
    let own = |address: &IpAddr| {
        tenant.network.advertise.as_ref() == Some(address)
            || ways
                .all()
                .any(|way| !way.by_name() && way.ip().as_ref() == Some(address))
    };
    current(observed).is_some_and(|now| now.addresses.iter().any(own))
}

/// Nodes on which the proxy that opens TLS runs.
fn terminating(observed: &Observed) -> Option<Endpoints> {
    let Inside::Reachable { proxies, .. } = &observed.inside else {
        return None;
    };
    (!proxies.is_empty()).then(|| Endpoints {
        addresses: proxies.clone(),
        port: TERMINATE_PORT,
    })
}

/// The tenant's own address first; then the proxy goes.
fn without_proxy(tenant: &Validated, observed: &Observed, ways: &Ways) -> Inner {
    let way = &ways.active;
    let endpoints = published(tenant, ways);
    let leaving = unwanted(tenant, observed);
    let keep = ways.moving() || !followed(observed, ways, endpoints.as_ref());
    let mut waits = Vec::new();
    let mut tell = |message: String| {
        let reason = Reason::NotRequested;
        waits.push(wait(ConditionType::AddonsReady, reason, message));
    };
    if way.by_name() {
        tell(
            "pods inside the tenant can't reach the API server through kubernetes.default.svc: \
             set spec.addons.tcpProxy"
                .to_owned(),
        );
    } else if endpoints.is_none() {
        tell(format!(
            "pods inside the tenant can't reach the API server through kubernetes.default.svc, \
             because {} is a name: set spec.networkProfile.advertiseAddress or spec.addons.tcpProxy",
            way.host
        ));
    }
    Inner {
        endpoints,
        keep: if keep { keys(&leaving) } else { Vec::new() },
        // As long as a proxy is there, whether wanted or not.
        gate: tenant.has_gate() || ways.by_name() || !leaving.is_empty(),
        waits,
    }
}

/// The address and port that clients use, where that is no name.
fn published(tenant: &Validated, ways: &Ways) -> Option<Endpoints> {
    let way = &ways.active;
    let address: IpAddr = tenant.network.advertise.or_else(|| way.ip())?;
    (!way.by_name()).then(|| Endpoints {
        addresses: vec![address],
        port: way.port,
    })
}
