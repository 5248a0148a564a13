//! How the tenant's own pods find the API server, and the order of steps when that
//! changes: nothing that pods still use goes before its replacement works.

use std::net::IpAddr;

use serde_json::Value;
use steward_api::{
    conditions::{ConditionType, Reason},
    tenant_control_plane::TcpProxyMode,
};

use crate::{
    build::inside::{Endpoints, SYSTEM, tcp_proxy_keys},
    names::{API_SERVER_PORT, TCP_PROXY_PORT, TERMINATE_PORT},
    object::{Kind, ObjectKey},
    observed::{Inside, Observed, Rollout},
    outcome::Wait,
    validate::{NodeProxy, Validated, wait},
    way::{Ways, rolled_out},
};

/// How pods find the API server now.
pub(crate) struct Inner {
    /// Whether the `kubernetes` endpoints are ours and not the API server's.
    pub(crate) own_endpoints: bool,
    /// What they say; `None` leaves them as they are.
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

/// What the running API servers were told about the endpoints.
fn told(tenant: &Validated, observed: &Observed) -> Option<bool> {
    let args = container(tenant, observed, "kube-apiserver")?["args"].as_array()?;
    Some(
        args.iter()
            .any(|arg| arg == "--endpoint-reconciler-type=none"),
    )
}

/// Whether the running API servers leave it to us where pods find them.
pub(crate) fn announces_nothing(tenant: &Validated, observed: &Observed) -> bool {
    told(tenant, observed) == Some(true)
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

/// Whether every node's kube-proxy follows the endpoints.
fn kube_proxies_listen(observed: &Observed) -> bool {
    let Inside::Reachable { workloads, .. } = &observed.inside else {
        return false;
    };
    let key = ObjectKey::new(Kind::DaemonSet, SYSTEM, "kube-proxy");
    workloads.get(&key).is_none_or(Rollout::done)
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
/// there before goes. A tenant that never had anything else starts with ours at once.
fn with_proxy(tenant: &Validated, proxy: &NodeProxy, observed: &Observed, ways: &Ways) -> Inner {
    let ours = told(tenant, observed).is_none_or(|ours| ours);
    let other = unwanted(tenant, observed);
    let switch = !ours || !other.is_empty();
    let go = !switch || ready(observed, proxy.mode);
    let mut waits = Vec::new();
    if !go {
        let message = "pods keep their way to the API server until the proxy runs where it has to";
        waits.push(wait(
            ConditionType::AddonsReady,
            Reason::Reconciling,
            message,
        ));
    }
    let endpoints = match proxy.mode {
        // The API servers still say where they are, unless that was ours to say before.
        _ if !go && !ours => published(tenant, ways),
        _ if !go => None,
        TcpProxyMode::EndToEnd => Some(Endpoints {
            addresses: vec![proxy.address],
            port: TCP_PROXY_PORT,
        }),
        TcpProxyMode::Terminate => terminating(observed),
    };
    Inner {
        own_endpoints: ours || go,
        endpoints,
        keep: if go { Vec::new() } else { keys(&other) },
        gate: true,
        waits,
    }
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

/// The API servers' own endpoints first; then the proxy goes.
fn without_proxy(tenant: &Validated, observed: &Observed, ways: &Ways) -> Inner {
    let way = &ways.active;
    let announceable = way.ip().is_some() && way.port == API_SERVER_PORT && !way.by_name();
    let advertised = tenant.network.advertise.is_some();
    let own_endpoints = !(announceable || advertised && way.port == API_SERVER_PORT);
    let leaving = unwanted(tenant, observed);
    // A node whose kube-proxy is being replaced does not hear of new endpoints, and goes on
    // sending pods to the proxy.
    let settled = told(tenant, observed) == Some(own_endpoints)
        && rolled_out(tenant, observed)
        && kube_proxies_listen(observed);
    let keep = !leaving.is_empty() && (ways.moving() || !settled);
    let mut waits = Vec::new();
    if way.by_name() {
        waits.push(wait(
            ConditionType::AddonsReady,
            Reason::NotRequested,
            "pods inside the tenant can't reach the API server through kubernetes.default.svc: \
             set spec.addons.tcpProxy",
        ));
    }
    let endpoints = if keep && !own_endpoints {
        handed_over(tenant, ways)
    } else {
        published(tenant, ways)
    };
    if own_endpoints && endpoints.is_none() && !way.by_name() {
        let message = format!(
            "pods inside the tenant can't reach the API server through kubernetes.default.svc, \
             because {} is a name: set spec.networkProfile.advertiseAddress or spec.addons.tcpProxy",
            way.host
        );
        waits.push(wait(
            ConditionType::AddonsReady,
            Reason::NotRequested,
            message,
        ));
    }
    Inner {
        own_endpoints,
        endpoints,
        keep: if keep { keys(&leaving) } else { Vec::new() },
        // As long as a proxy is there, whether wanted or not.
        gate: tenant.has_gate() || ways.by_name() || !leaving.is_empty(),
        waits,
    }
}

/// Endpoints as the API servers will write them. They write the address and leave the port as
/// they find it, which was the proxy's: so it is ours to put right before they take over.
fn handed_over(tenant: &Validated, ways: &Ways) -> Option<Endpoints> {
    let address = tenant.network.advertise.or_else(|| ways.active.ip())?;
    Some(Endpoints {
        addresses: vec![address],
        port: API_SERVER_PORT,
    })
}

/// Endpoints that we publish in the API server's stead: an address and port that it
/// can't announce itself, because it listens on another port than clients use.
fn published(tenant: &Validated, ways: &Ways) -> Option<Endpoints> {
    let way = &ways.active;
    let address: IpAddr = tenant.network.advertise.or_else(|| way.ip())?;
    (!way.by_name() && way.port != API_SERVER_PORT).then(|| Endpoints {
        addresses: vec![address],
        port: way.port,
    })
}
