//! `TLSRoute`s meet our listeners: what each route claims, and what to tell it.
//!
//! Owns attachment, hostname intersection and the resolution of backends with
//! their permissions. It does not settle who wins a name: see `claims`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use gateway_api::tlsroutes::{TlsRouteParentRefs, TlsRouteRulesBackendRefs};

use super::access;
use super::claims::Claim;
use super::conditions::Said;
use super::hostname;
use super::listeners::Listener;
use super::world::{Backends, PortRef, Route, Unresolved, World, family, seniority};

/// What we have to say about one parent of one route.
#[derive(Clone, Debug)]
pub struct ParentStatus {
    /// As the route wrote it.
    pub parent: TlsRouteParentRefs,
    /// `Accepted` and `ResolvedRefs`.
    pub said: Vec<Said>,
}

/// One route after it met the listeners.
#[derive(Clone, Debug, Default)]
pub struct Attachment {
    /// Hostnames it may have, with their addresses.
    pub claims: Vec<Claim>,
    /// One entry for each parent that is ours.
    pub parents: Vec<ParentStatus>,
    /// Listeners it attached to: gateway namespace, gateway name, listener name.
    pub attached: Vec<(String, String, String)>,
}

/// `TLSRoute ns/name`, as claims and messages call it.
pub fn owner(route: &Route) -> String {
    format!("TLSRoute {}", seniority(&route.metadata).1)
}

/// Lets one route meet every listener of our Gateways.
pub fn attach(
    world: &World,
    backends: &Backends<'_>,
    listeners: &[Listener<'_>],
    route: &Route,
) -> Attachment {
    let namespace = route.metadata.namespace.as_deref().unwrap_or_default();
    let mut attachment = Attachment::default();
    let resolved = resolve(world, backends, route, namespace);
    for parent in route.spec.parent_refs.iter().flatten() {
        let ours = of_parent(listeners, parent, namespace);
        let Some(ours) = ours else { continue };
        let outcome = meet(world, &ours, route, namespace);
        let accepted = match &outcome {
            Ok(met) => {
                for (listener, hosts) in met {
                    attachment.attached.push(listener_key(listener));
                    attachment.claims.extend(hosts.iter().map(|host| Claim {
                        host: host.clone(),
                        backends: resolved.addresses.clone(),
                        allow: access::allowed(&owner(route), route.metadata.annotations.as_ref()),
                        one_label: false,
                        owner: owner(route),
                        seniority: seniority(&route.metadata),
                        family: family(&route.metadata),
                    }));
                }
                Said::yes("Accepted", "Accepted", "the route is attached")
            }
            Err(refused) => refused.clone(),
        };
        attachment.parents.push(ParentStatus {
            parent: parent.clone(),
            said: vec![accepted, resolved.said.clone()],
        });
    }
    attachment
}

fn listener_key(listener: &Listener<'_>) -> (String, String, String) {
    let meta = &listener.gateway.metadata;
    (
        meta.namespace.clone().unwrap_or_default(),
        meta.name.clone().unwrap_or_default(),
        listener.spec.name.clone(),
    )
}

/// The listeners a parentRef means; `None` when the parent is not ours at all.
fn of_parent<'l, 'w>(
    listeners: &'l [Listener<'w>],
    parent: &TlsRouteParentRefs,
    route_namespace: &str,
) -> Option<Vec<&'l Listener<'w>>> {
    let is_gateway = parent.kind.as_deref().unwrap_or("Gateway") == "Gateway"
        && parent
            .group
            .as_deref()
            .unwrap_or("gateway.networking.k8s.io")
            == "gateway.networking.k8s.io";
    let namespace = parent.namespace.as_deref().unwrap_or(route_namespace);
    let of_gateway: Vec<_> = listeners
        .iter()
        .filter(|l| {
            is_gateway
                && l.gateway.metadata.name.as_deref() == Some(&parent.name)
                && l.gateway.metadata.namespace.as_deref() == Some(namespace)
        })
        .collect();
    if of_gateway.is_empty() {
        return None;
    }
    Some(
        of_gateway
            .into_iter()
            .filter(|l| {
                parent
                    .section_name
                    .as_ref()
                    .is_none_or(|s| *s == l.spec.name)
            })
            .filter(|l| parent.port.is_none_or(|p| p == l.spec.port))
            .collect(),
    )
}

type Met<'l, 'w> = Vec<(&'l Listener<'w>, Vec<String>)>;

/// The listeners that take the route, with the names it gets there.
fn meet<'l, 'w>(
    world: &World,
    listeners: &[&'l Listener<'w>],
    route: &Route,
    namespace: &str,
) -> Result<Met<'l, 'w>, Said> {
    if listeners.is_empty() {
        return Err(Said::no(
            "Accepted",
            "NoMatchingParent",
            "the Gateway has no listener with this sectionName or port",
        ));
    }
    let allowed: Vec<_> = listeners
        .iter()
        .filter(|l| l.takes_tls_routes && l.admits_namespace(world, namespace))
        .collect();
    if allowed.is_empty() {
        return Err(Said::no(
            "Accepted",
            "NotAllowedByListeners",
            format!(
                "no listener admits TLSRoutes of namespace {namespace}; see the listeners' allowedRoutes"
            ),
        ));
    }
    let met: Met<'l, 'w> = allowed
        .into_iter()
        .filter(|l| l.usable)
        .map(|l| {
            let names = &route.spec.hostnames;
            let hosts = names.iter().filter(|n| hostname::is_valid(n));
            (
                *l,
                hosts
                    .filter_map(|n| hostname::intersect(l.spec.hostname.as_deref(), n))
                    .collect(),
            )
        })
        .filter(|(_, hosts): &(_, Vec<String>)| !hosts.is_empty())
        .collect();
    if met.is_empty() {
        return Err(Said::no(
            "Accepted",
            "NoMatchingListenerHostname",
            "no listener's hostname covers a hostname of this route",
        ));
    }
    Ok(met)
}

struct Resolved {
    addresses: Vec<SocketAddr>,
    said: Said,
}

fn resolve(world: &World, backends: &Backends<'_>, route: &Route, namespace: &str) -> Resolved {
    let mut addresses = Vec::new();
    let mut problem = None;
    for backend in route.spec.rules.iter().flat_map(|r| &r.backend_refs) {
        match resolve_one(world, backends, backend, namespace) {
            // A weight of zero is the standard's way of taking a backend out.
            Ok(found) if backend.weight != Some(0) => addresses.extend(found),
            Ok(_) => {}
            Err(said) => problem = problem.or(Some(said)),
        }
    }
    addresses.sort_unstable();
    addresses.dedup();
    let said = problem
        .unwrap_or_else(|| Said::yes("ResolvedRefs", "ResolvedRefs", "all backends resolve"));
    Resolved { addresses, said }
}

fn resolve_one(
    world: &World,
    backends: &Backends<'_>,
    backend: &TlsRouteRulesBackendRefs,
    route_namespace: &str,
) -> Result<Vec<SocketAddr>, Said> {
    let refuse = |reason, message: String| Err(Said::no("ResolvedRefs", reason, message));
    let kind = backend.kind.as_deref().unwrap_or("Service");
    let group = backend.group.as_deref().unwrap_or_default();
    if kind != "Service" || !group.is_empty() {
        return refuse(
            "InvalidKind",
            format!(
                "backend {} is a {kind}; only Services are served",
                backend.name
            ),
        );
    }
    let namespace = backend.namespace.as_deref().unwrap_or(route_namespace);
    if namespace != route_namespace && !granted(world, route_namespace, namespace, &backend.name) {
        return refuse(
            "RefNotPermitted",
            format!(
                "Service {namespace}/{} is in another namespace and no ReferenceGrant there permits it",
                backend.name
            ),
        );
    }
    let Some(port) = backend.port else {
        return refuse(
            "UnsupportedValue",
            format!("backend {} names no port", backend.name),
        );
    };
    backends
        .resolve(namespace, &backend.name, &PortRef::Number(port))
        .or_else(|why| {
            let what = match why {
                Unresolved::NoService => {
                    format!("there is no Service {namespace}/{}", backend.name)
                }
                Unresolved::NoPort => {
                    format!("Service {namespace}/{} has no port {port}", backend.name)
                }
            };
            refuse("BackendNotFound", what)
        })
}

fn granted(world: &World, from: &str, to: &str, service: &str) -> bool {
    world.grants.iter().filter(|g| g.namespace == to).any(|g| {
        let from_ok = g.spec.from.iter().any(|f| {
            f.group == "gateway.networking.k8s.io" && f.kind == "TLSRoute" && f.namespace == from
        });
        let to_ok = g.spec.to.iter().any(|t| {
            t.group.is_empty()
                && t.kind == "Service"
                && t.name.as_ref().is_none_or(|n| n == service)
        });
        from_ok && to_ok
    })
}

/// How many routes each listener took.
pub fn count_attached(attachments: &[Attachment]) -> BTreeMap<(String, String, String), i32> {
    let mut counts = BTreeMap::new();
    for attachment in attachments {
        let mut once = attachment.attached.clone();
        once.sort();
        once.dedup();
        for key in once {
            *counts.entry(key).or_default() += 1;
        }
    }
    counts
}
