//! What to write back: the status of our classes, Gateways, routes and Ingresses.
//!
//! Owns the new status of each object and whether it differs from the old one.
//! Pure: the writer decides how to send it. Entries of other controllers in a
//! route's status are kept as they are.

use gateway_api::gatewayclasses::GatewayClass;
use gateway_api::gateways::Gateway;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::conditions::{Said, merge};
use super::routes::count_attached;
use super::translate::Translation;
use super::world::{CONTROLLER, Published, Route, World};

/// A kind of object whose status we write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Cluster-wide.
    GatewayClass,
    /// In a namespace.
    Gateway,
    /// In a namespace; whichever version is served.
    TlsRoute,
    /// In a namespace.
    Ingress,
}

/// One status that has to be written.
#[derive(Clone, Debug)]
pub struct Write {
    /// What kind of object.
    pub target: Target,
    /// Its namespace, where it has one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// The version that was looked at: a newer one means looking again.
    pub resource_version: Option<String>,
    /// The new `.status`.
    pub status: Value,
}

/// Every status that is not yet as it should be.
pub fn due(world: &World, translation: &Translation<'_>, now: Timestamp) -> Vec<Write> {
    let mut writes: Vec<Write> = Vec::new();
    writes.extend(world.gateway_classes.iter().filter_map(|c| class(c, now)));
    let counts = count_attached(&translation.attachments);
    for gateway in super::listeners::our_gateways(world) {
        writes.extend(gateway_status(world, gateway, translation, &counts, now));
    }
    for (found, attachment) in world.routes.iter().zip(&translation.attachments) {
        writes.extend(route(found, attachment, now));
    }
    for ingress in &translation.ingresses {
        writes.extend(ingress_status(world, ingress));
    }
    writes
}

fn class(class: &GatewayClass, now: Timestamp) -> Option<Write> {
    if class.spec.controller_name != CONTROLLER {
        return None;
    }
    let old = class
        .status
        .as_ref()
        .and_then(|s| s.conditions.as_deref())
        .unwrap_or_default();
    let said = [Said::yes(
        "Accepted",
        "Accepted",
        "Gateways of this class are served by steward-gateway",
    )];
    let new = merge(old, &said, class.metadata.generation, now);
    (new != old).then(|| Write {
        target: Target::GatewayClass,
        namespace: None,
        name: class.metadata.name.clone().unwrap_or_default(),
        resource_version: class.metadata.resource_version.clone(),
        status: json!({ "conditions": new, "supportedFeatures": [
            { "name": "Gateway" }, { "name": "ReferenceGrant" }, { "name": "TLSRoute" } ] }),
    })
}

fn gateway_status(
    world: &World,
    gateway: &Gateway,
    translation: &Translation<'_>,
    counts: &std::collections::BTreeMap<(String, String, String), i32>,
    now: Timestamp,
) -> Option<Write> {
    let namespace = gateway.metadata.namespace.clone().unwrap_or_default();
    let name = gateway.metadata.name.clone().unwrap_or_default();
    let generation = gateway.metadata.generation;
    let old = gateway.status.clone().unwrap_or_default();
    let mut any_usable = false;
    let mut listeners = Vec::new();
    for listener in translation
        .listeners
        .iter()
        .filter(|l| std::ptr::eq(l.gateway, gateway))
    {
        any_usable |= listener.usable;
        let before = old
            .listeners
            .iter()
            .flatten()
            .find(|l| l.name == listener.spec.name);
        let before = before.map(|l| l.conditions.as_slice()).unwrap_or_default();
        let key = (namespace.clone(), name.clone(), listener.spec.name.clone());
        let kinds = if listener.takes_tls_routes {
            json!([{ "group": "gateway.networking.k8s.io", "kind": "TLSRoute" }])
        } else {
            json!([])
        };
        listeners.push(json!({
            "name": listener.spec.name,
            "attachedRoutes": counts.get(&key).copied().unwrap_or_default(),
            "supportedKinds": kinds,
            "conditions": merge(before, &listener.said, generation, now),
        }));
    }
    let programmed = if world.published.is_empty() {
        Said::no(
            "Programmed",
            "AddressNotAssigned",
            "the gateway's Service has no address yet",
        )
    } else if any_usable {
        Said::yes("Programmed", "Programmed", "connections are routed")
    } else {
        Said::no(
            "Programmed",
            "Invalid",
            "no listener can be served; see their conditions",
        )
    };
    let accepted = if any_usable {
        Said::yes(
            "Accepted",
            "Accepted",
            "the Gateway is served by steward-gateway",
        )
    } else {
        Said::no(
            "Accepted",
            "ListenersNotValid",
            "no listener can be served; see their conditions",
        )
    };
    let conditions = merge(
        old.conditions.as_deref().unwrap_or_default(),
        &[accepted, programmed],
        generation,
        now,
    );
    let addresses: Vec<Value> = world
        .published
        .iter()
        .map(|p| match p {
            Published::Ip(ip) => json!({ "type": "IPAddress", "value": ip.to_string() }),
            Published::Hostname(host) => json!({ "type": "Hostname", "value": host }),
        })
        .collect();
    let status =
        json!({ "addresses": addresses, "conditions": conditions, "listeners": listeners });
    changed(gateway.status.as_ref(), &status).then(|| Write {
        target: Target::Gateway,
        namespace: Some(namespace),
        name,
        resource_version: gateway.metadata.resource_version.clone(),
        status,
    })
}

fn route(route: &Route, attachment: &super::routes::Attachment, now: Timestamp) -> Option<Write> {
    let old = route
        .status
        .as_ref()
        .map(|s| s.parents.as_slice())
        .unwrap_or_default();
    let mut parents: Vec<Value> = old
        .iter()
        .filter(|p| p.controller_name != CONTROLLER)
        .filter_map(|p| serde_json::to_value(p).ok())
        .collect();
    for parent in &attachment.parents {
        let reference = serde_json::to_value(&parent.parent).unwrap_or_default();
        let before = old.iter().find(|p| {
            p.controller_name == CONTROLLER
                && serde_json::to_value(&p.parent_ref).ok().as_ref() == Some(&reference)
        });
        let before = before.map(|p| p.conditions.as_slice()).unwrap_or_default();
        parents.push(json!({
            "controllerName": CONTROLLER,
            "parentRef": reference,
            "conditions": merge(before, &parent.said, route.metadata.generation, now),
        }));
    }
    let had_ours = old.iter().any(|p| p.controller_name == CONTROLLER);
    if attachment.parents.is_empty() && !had_ours {
        return None;
    }
    let status = json!({ "parents": parents });
    changed(route.status.as_ref(), &status).then(|| Write {
        target: Target::TlsRoute,
        namespace: route.metadata.namespace.clone(),
        name: route.metadata.name.clone().unwrap_or_default(),
        resource_version: route.metadata.resource_version.clone(),
        status,
    })
}

fn ingress_status(
    world: &World,
    ingress: &k8s_openapi::api::networking::v1::Ingress,
) -> Option<Write> {
    let points: Vec<Value> = world
        .published
        .iter()
        .map(|p| match p {
            Published::Ip(ip) => json!({ "ip": ip.to_string() }),
            Published::Hostname(host) => json!({ "hostname": host }),
        })
        .collect();
    let old: Vec<Value> = ingress
        .status
        .as_ref()
        .and_then(|s| s.load_balancer.as_ref())
        .and_then(|l| l.ingress.as_ref())
        .into_iter()
        .flatten()
        .filter_map(|p| serde_json::to_value(p).ok())
        .collect();
    (old != points).then(|| Write {
        target: Target::Ingress,
        namespace: ingress.metadata.namespace.clone(),
        name: ingress.metadata.name.clone().unwrap_or_default(),
        resource_version: ingress.metadata.resource_version.clone(),
        status: json!({ "loadBalancer": { "ingress": points } }),
    })
}

fn changed<T: serde::Serialize>(old: Option<&T>, new: &Value) -> bool {
    let old = old
        .and_then(|o| serde_json::to_value(o).ok())
        .unwrap_or_default();
    new.as_object()
        .is_none_or(|new| new.iter().any(|(k, v)| old.get(k) != Some(v)))
}
