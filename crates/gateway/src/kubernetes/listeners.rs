//! Our Gateways' listeners: which can be served, and which routes they admit.
//!
//! Owns what the Gateway API says of one listener by itself. Which hostnames a
//! route gets through it is decided in `routes`.

use std::collections::BTreeSet;

use gateway_api::gateways::{
    Gateway, GatewayListeners, GatewayListenersAllowedRoutesNamespacesFrom as From,
    GatewayListenersAllowedRoutesNamespacesSelector as Selector, GatewayListenersTlsMode,
};

use super::conditions::Said;
use super::world::{CONTROLLER, World};

/// A listener of a Gateway that is ours.
#[derive(Clone, Debug)]
pub struct Listener<'a> {
    /// The Gateway it belongs to.
    pub gateway: &'a Gateway,
    /// As it is written there.
    pub spec: &'a GatewayListeners,
    /// Nothing stands in the way of serving it.
    pub usable: bool,
    /// What there is to say about it.
    pub said: Vec<Said>,
    /// The kinds of route it takes: TLSRoute, or none.
    pub takes_tls_routes: bool,
}

/// The Gateways whose class names our controller.
pub fn our_gateways(world: &World) -> Vec<&Gateway> {
    let classes: BTreeSet<&str> = world
        .gateway_classes
        .iter()
        .filter(|c| c.spec.controller_name == CONTROLLER)
        .filter_map(|c| c.metadata.name.as_deref())
        .collect();
    let mut ours: Vec<&Gateway> = world
        .gateways
        .iter()
        .map(AsRef::as_ref)
        .filter(|g| classes.contains(g.spec.gateway_class_name.as_str()))
        .collect();
    ours.sort_by_key(|g| super::world::seniority(&g.metadata));
    ours
}

/// Looks at every listener of one Gateway. `port` is the one port we serve.
pub fn inspect(gateway: &Gateway, port: i32) -> Vec<Listener<'_>> {
    let mut seen = BTreeSet::new();
    gateway
        .spec
        .listeners
        .iter()
        .map(|spec| {
            let name = spec
                .hostname
                .as_deref()
                .unwrap_or_default()
                .to_ascii_lowercase();
            let conflict = !seen.insert((spec.port, name));
            inspect_one(gateway, spec, port, conflict)
        })
        .collect()
}

fn inspect_one<'a>(
    gateway: &'a Gateway,
    spec: &'a GatewayListeners,
    port: i32,
    conflict: bool,
) -> Listener<'a> {
    let refusal = refusal(spec, port);
    let takes_tls_routes = takes_tls_routes(spec);
    let foreign_kinds = has_foreign_kinds(spec);
    let mut said = Vec::new();
    match &refusal {
        Some((reason, message)) => said.push(Said::no("Accepted", reason, message.clone())),
        None if conflict => said.push(Said::no(
            "Accepted",
            "HostnameConflict",
            "another listener of this Gateway has the same port and hostname; give each its own",
        )),
        None => said.push(Said::yes("Accepted", "Accepted", "the listener is served")),
    }
    said.push(if conflict {
        Said::no(
            "Conflicted",
            "HostnameConflict",
            "another listener has the same port and hostname",
        )
        .flipped()
    } else {
        Said::no(
            "Conflicted",
            "NoConflicts",
            "no other listener has this port and hostname",
        )
    });
    let usable = refusal.is_none() && !conflict && takes_tls_routes;
    said.push(if foreign_kinds {
        Said::no("ResolvedRefs", "InvalidRouteKinds", "allowedRoutes.kinds names a kind that is not served here; only TLSRoute of gateway.networking.k8s.io is")
    } else {
        Said::yes("ResolvedRefs", "ResolvedRefs", "all references resolve")
    });
    said.push(if usable {
        Said::yes("Programmed", "Programmed", "connections are routed")
    } else {
        Said::no(
            "Programmed",
            "Invalid",
            "the listener is not served; see its other conditions",
        )
    });
    Listener {
        gateway,
        spec,
        usable,
        said,
        takes_tls_routes,
    }
}

impl Said {
    /// The same words with the opposite status: for conditions whose bad news is True.
    fn flipped(mut self) -> Self {
        self.holds = !self.holds;
        self
    }
}

fn refusal(spec: &GatewayListeners, port: i32) -> Option<(&'static str, String)> {
    if spec.protocol != "TLS" {
        return Some((
            "UnsupportedProtocol",
            format!(
                "protocol {} is not served here; use protocol TLS with tls.mode Passthrough",
                spec.protocol
            ),
        ));
    }
    let mode = spec.tls.as_ref().and_then(|t| t.mode.as_ref());
    if mode != Some(&GatewayListenersTlsMode::Passthrough) {
        return Some((
            "UnsupportedProtocol",
            "tls.mode Terminate is not served here: this gateway never opens TLS; use Passthrough"
                .to_owned(),
        ));
    }
    if spec.port != port {
        return Some((
            "PortUnavailable",
            format!(
                "port {} is not served by this gateway; use port {port}",
                spec.port
            ),
        ));
    }
    None
}

fn is_tls_route(group: Option<&str>, kind: &str) -> bool {
    kind == "TLSRoute" && matches!(group, None | Some("gateway.networking.k8s.io"))
}

fn takes_tls_routes(spec: &GatewayListeners) -> bool {
    let kinds = spec
        .allowed_routes
        .as_ref()
        .and_then(|a| a.kinds.as_deref());
    kinds.is_none_or(|kinds| {
        kinds.is_empty()
            || kinds
                .iter()
                .any(|k| is_tls_route(k.group.as_deref(), &k.kind))
    })
}

fn has_foreign_kinds(spec: &GatewayListeners) -> bool {
    let kinds = spec
        .allowed_routes
        .as_ref()
        .and_then(|a| a.kinds.as_deref());
    kinds
        .unwrap_or_default()
        .iter()
        .any(|k| !is_tls_route(k.group.as_deref(), &k.kind))
}

impl Listener<'_> {
    /// Whether routes of this namespace may attach.
    pub fn admits_namespace(&self, world: &World, namespace: &str) -> bool {
        let rules = self
            .spec
            .allowed_routes
            .as_ref()
            .and_then(|a| a.namespaces.as_ref());
        match rules.and_then(|r| r.from.as_ref()).unwrap_or(&From::Same) {
            From::All => true,
            From::Same => self.gateway.metadata.namespace.as_deref() == Some(namespace),
            From::Selector => rules
                .and_then(|r| r.selector.as_ref())
                .is_some_and(|s| selects(world, s, namespace)),
        }
    }
}

fn selects(world: &World, selector: &Selector, namespace: &str) -> bool {
    let Some(found) = world
        .namespaces
        .iter()
        .find(|n| n.metadata.name.as_deref() == Some(namespace))
    else {
        return false;
    };
    let empty = std::collections::BTreeMap::new();
    let labels = found.metadata.labels.as_ref().unwrap_or(&empty);
    let exact = selector
        .match_labels
        .iter()
        .flatten()
        .all(|(k, v)| labels.get(k) == Some(v));
    exact
        && selector.match_expressions.iter().flatten().all(|e| {
            let value = labels.get(&e.key);
            let listed = value.is_some_and(|v| e.values.iter().flatten().any(|w| w == v));
            match e.operator.as_str() {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}
