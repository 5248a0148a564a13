//! What the gateway knows of the cluster at one moment, as plain values.
//!
//! Owns the snapshot that translation works on and small look-ups in it. It
//! holds no client, and nothing in it changes while it is read.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use gateway_api::gatewayclasses::GatewayClass;
use gateway_api::gateways::Gateway;
use gateway_api::referencegrants::ReferenceGrantSpec;
use gateway_api::tlsroutes::{TlsRouteSpec, TlsRouteStatus};
use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::{Ingress, IngressClass};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The name of our controller in `IngressClass` and `GatewayClass` objects.
pub const CONTROLLER: &str = "steward.butlerlabs.dev/gateway";

/// A TLSRoute, whichever version of it the cluster serves.
#[derive(Clone, Debug, Default)]
pub struct Route {
    /// Name, namespace, age and generation.
    pub metadata: ObjectMeta,
    /// Hostnames, parents and backends.
    pub spec: TlsRouteSpec,
    /// What was last said about it, by us and by other controllers.
    pub status: Option<TlsRouteStatus>,
}

/// A `ReferenceGrant`, whichever version of it the cluster serves.
#[derive(Clone, Debug, Default)]
pub struct Grant {
    /// The namespace that grants.
    pub namespace: String,
    /// Who may refer to what there.
    pub spec: ReferenceGrantSpec,
}

/// Everything the gateway reads.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// Ingress objects of every class.
    pub ingresses: Vec<Arc<Ingress>>,
    /// The classes, to tell which are ours.
    pub ingress_classes: Vec<Arc<IngressClass>>,
    /// Gateway classes, to tell which are ours.
    pub gateway_classes: Vec<Arc<GatewayClass>>,
    /// Gateways of every class.
    pub gateways: Vec<Arc<Gateway>>,
    /// The `TLSRoute`s.
    pub routes: Vec<Route>,
    /// Permissions to refer across namespaces.
    pub grants: Vec<Grant>,
    /// Services that backends name.
    pub services: Vec<Arc<Service>>,
    /// The addresses behind those Services.
    pub slices: Vec<Arc<EndpointSlice>>,
    /// Namespaces, for listeners that select them by label.
    pub namespaces: Vec<Arc<Namespace>>,
    /// The addresses under which this gateway is reached from outside.
    pub published: Vec<Published>,
}

/// An address or name under which the gateway is reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Published {
    /// An IP address.
    Ip(IpAddr),
    /// A hostname, as some clouds give for their load balancers.
    Hostname(String),
}

/// Why a backend could not be turned into addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// There is no such Service.
    NoService,
    /// The Service has no such port.
    NoPort,
}

/// A Service port by name or by number, as Ingress and routes write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortRef {
    /// By number.
    Number(i32),
    /// By name.
    Name(String),
}

/// Services and endpoints arranged for look-up by name.
pub struct Backends<'a> {
    services: BTreeMap<(&'a str, &'a str), &'a Service>,
    slices: BTreeMap<(&'a str, &'a str), Vec<&'a EndpointSlice>>,
}

impl<'a> Backends<'a> {
    /// Arranges what the world has.
    pub fn new(world: &'a World) -> Self {
        let services = world
            .services
            .iter()
            .filter_map(|s| Some((key(&s.metadata)?, s.as_ref())))
            .collect();
        let mut slices: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for slice in &world.slices {
            let labels = slice.metadata.labels.as_ref();
            let service = labels.and_then(|l| l.get("kubernetes.io/service-name"));
            if let (Some(ns), Some(service)) = (slice.metadata.namespace.as_deref(), service) {
                slices
                    .entry((ns, service.as_str()))
                    .or_default()
                    .push(slice.as_ref());
            }
        }
        Self { services, slices }
    }

    /// The ready pod addresses behind a Service port, sorted and without repeats.
    pub fn resolve(
        &self,
        namespace: &str,
        service: &str,
        port: &PortRef,
    ) -> Result<Vec<SocketAddr>, Unresolved> {
        let found = self
            .services
            .get(&(namespace, service))
            .ok_or(Unresolved::NoService)?;
        let ports = found
            .spec
            .as_ref()
            .and_then(|s| s.ports.as_deref())
            .unwrap_or_default();
        let port = ports
            .iter()
            .find(|p| match port {
                PortRef::Number(n) => p.port == *n,
                PortRef::Name(n) => p.name.as_deref() == Some(n),
            })
            .ok_or(Unresolved::NoPort)?;
        let mut addresses = BTreeSet::new();
        for slice in self.slices.get(&(namespace, service)).into_iter().flatten() {
            addresses.extend(ready_addresses(slice, port.name.as_deref()));
        }
        Ok(addresses.into_iter().collect())
    }
}

fn key(meta: &ObjectMeta) -> Option<(&str, &str)> {
    Some((meta.namespace.as_deref()?, meta.name.as_deref()?))
}

/// Addresses that may take new connections: ready, or of unknown readiness,
/// which the API defines as ready.
fn ready_addresses(slice: &EndpointSlice, port_name: Option<&str>) -> Vec<SocketAddr> {
    let port = slice
        .ports
        .iter()
        .flatten()
        .find(|p| p.name.as_deref().unwrap_or_default() == port_name.unwrap_or_default())
        .and_then(|p| p.port)
        .and_then(|p| u16::try_from(p).ok());
    let Some(port) = port else { return Vec::new() };
    slice
        .endpoints
        .iter()
        .filter(|e| e.conditions.as_ref().and_then(|c| c.ready).unwrap_or(true))
        .flat_map(|e| &e.addresses)
        .filter_map(|a| a.parse::<IpAddr>().ok())
        .map(|ip| SocketAddr::new(ip, port))
        .collect()
}

/// Age first, then name: the order in which objects win what they both claim.
pub fn seniority(meta: &ObjectMeta) -> (i64, String) {
    let born = meta
        .creation_timestamp
        .as_ref()
        .map_or(i64::MAX, |t| t.0.as_second());
    let name = format!(
        "{}/{}",
        meta.namespace.as_deref().unwrap_or_default(),
        meta.name.as_deref().unwrap_or_default()
    );
    (born, name)
}

/// Namespace and uid of the controller that made an object. Both count: who may write in the
/// namespace may change the controller's own objects there as well.
pub fn family(meta: &ObjectMeta) -> Option<(String, String)> {
    let owners = meta.owner_references.as_ref()?;
    let controller = owners.iter().find(|owner| owner.controller == Some(true))?;
    Some((meta.namespace.clone()?, controller.uid.clone()))
}
