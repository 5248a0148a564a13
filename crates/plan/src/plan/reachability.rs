//! How the tenant's own pods find the API server, and the order of steps when that
//! changes: nothing that pods still use goes before its replacement works.

use std::net::IpAddr;

use serde_json::Value;
use steward_api::{
    conditions::{ConditionType, Reason},
    tenant_control_plane::TcpProxyMode,
};

use crate::{
    build::inside::{Endpoints, SYSTEM},
    names::{API_SERVER_PORT, TCP_PROXY_PORT},
    object::{Kind, ObjectKey},
    observed::{Inside, Observed},
    outcome::Wait,
    validate::{NodeProxy, Validated, wait},
    way::Ways,
};

/// How pods find the API server now.
pub(crate) struct Inner {
    /// Whether the `kubernetes` endpoints are ours and not the API server's.
    pub(crate) own_endpoints: bool,
    /// What they say; `None` leaves them as they are.
    pub(crate) endpoints: Option<Endpoints>,
    /// Whether the proxy is on the nodes.
    pub(crate) proxy: bool,
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

/// Whether all pods are of the newest template.
fn rolled_out(tenant: &Validated, observed: &Observed) -> bool {
    let Some(live) = deployment(tenant, observed) else {
        return false;
    };
    let count = |path: &str| live.pointer(path).and_then(Value::as_i64).unwrap_or(0);
    let wanted = count("/spec/replicas");
    count("/status/observedGeneration") >= count("/metadata/generation")
        && count("/status/updatedReplicas") >= wanted
        && count("/status/replicas") == wanted
        && count("/status/readyReplicas") >= wanted
}

/// What the running API servers were told about the endpoints.
fn told(tenant: &Validated, observed: &Observed) -> Option<bool> {
    let containers = deployment(tenant, observed)?.pointer("/spec/template/spec/containers")?;
    let server = containers
        .as_array()?
        .iter()
        .find(|c| c["name"] == "kube-apiserver")?;
    let args = server["args"].as_array()?;
    Some(
        args.iter()
            .any(|arg| arg == "--endpoint-reconciler-type=none"),
    )
}

/// The state of the proxy on the nodes.
enum OnNodes {
    Unknown,
    Absent,
    Partly,
    Everywhere,
}

fn on_nodes(observed: &Observed) -> OnNodes {
    let Inside::Reachable {
        nodes, workloads, ..
    } = &observed.inside
    else {
        return OnNodes::Unknown;
    };
    let find = |kind| workloads.get(&ObjectKey::new(kind, SYSTEM, "steward-tcp-proxy"));
    match find(Kind::DaemonSet).or_else(|| find(Kind::Deployment)) {
        None if nodes.is_empty() => OnNodes::Everywhere,
        None => OnNodes::Absent,
        Some(rollout) if rollout.done() => OnNodes::Everywhere,
        Some(_) => OnNodes::Partly,
    }
}

/// How pods find the API server, given what runs now.
pub(crate) fn inner(tenant: &Validated, observed: &Observed, ways: &Ways) -> Inner {
    match &tenant.node_proxy {
        Some(proxy) => with_proxy(tenant, proxy, observed, ways),
        None => without_proxy(tenant, observed, ways),
    }
}

/// The proxy first, everywhere; then the endpoints that lead to it. A tenant whose API
/// servers never published endpoints of their own starts with ours at once.
fn with_proxy(tenant: &Validated, proxy: &NodeProxy, observed: &Observed, ways: &Ways) -> Inner {
    let fresh = told(tenant, observed).is_none_or(|ours| ours);
    let ready = matches!(on_nodes(observed), OnNodes::Everywhere);
    let mut waits = Vec::new();
    if !fresh && !ready {
        let message = "pods keep their way to the API server until the proxy runs on every node";
        waits.push(wait(
            ConditionType::AddonsReady,
            Reason::Reconciling,
            message,
        ));
    }
    let endpoints = match proxy.mode {
        TcpProxyMode::EndToEnd => Some(Endpoints {
            addresses: vec![proxy.address],
            port: TCP_PROXY_PORT,
        }),
        TcpProxyMode::Terminate => terminating(observed),
    };
    let mut inner = Inner {
        own_endpoints: fresh || ready,
        endpoints,
        proxy: true,
        gate: tenant.has_gate(),
        waits,
    };
    if !inner.own_endpoints {
        // The API servers still say where they are, unless that was ours to say before.
        inner.endpoints = published(tenant, ways);
    }
    inner
}

/// Nodes on which the proxy that opens TLS runs.
fn terminating(observed: &Observed) -> Option<Endpoints> {
    let Inside::Reachable { proxies, .. } = &observed.inside else {
        return None;
    };
    (!proxies.is_empty()).then(|| Endpoints {
        addresses: proxies.clone(),
        port: TCP_PROXY_PORT,
    })
}

/// The API servers' own endpoints first; then the proxy goes.
fn without_proxy(tenant: &Validated, observed: &Observed, ways: &Ways) -> Inner {
    let way = &ways.active;
    let announceable = way.ip().is_some() && way.port == API_SERVER_PORT && !way.by_name();
    let advertised = tenant.network.advertise.is_some();
    let own_endpoints = !(announceable || advertised && way.port == API_SERVER_PORT);
    let leaving = matches!(on_nodes(observed), OnNodes::Partly)
        || matches!(on_nodes(observed), OnNodes::Everywhere) && has_proxy(observed);
    let settled = told(tenant, observed) == Some(own_endpoints) && rolled_out(tenant, observed);
    let keep = leaving && !settled;
    let mut waits = Vec::new();
    if way.by_name() {
        waits.push(wait(
            ConditionType::AddonsReady,
            Reason::NotRequested,
            "pods inside the tenant can't reach the API server through kubernetes.default.svc: \
             set spec.addons.tcpProxy",
        ));
    }
    let endpoints = published(tenant, ways);
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
        proxy: keep,
        gate: tenant.has_gate() || keep,
        waits,
    }
}

fn has_proxy(observed: &Observed) -> bool {
    let Inside::Reachable { workloads, .. } = &observed.inside else {
        return false;
    };
    workloads.keys().any(|key| key.name == "steward-tcp-proxy")
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
