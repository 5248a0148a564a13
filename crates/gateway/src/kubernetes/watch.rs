//! The watches and what they have brought so far.
//!
//! Owns one reflector for each kind, and which version of the Gateway API the
//! cluster serves. Fields nobody reads are dropped before they are kept.

use std::net::IpAddr;
use std::sync::Arc;

use futures::StreamExt;
use gateway_api::gatewayclasses::GatewayClass;
use gateway_api::gateways::Gateway;
use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::{Ingress, IngressClass};
use kube::api::{Api, DynamicObject};
use kube::core::ApiResource;
use kube::runtime::reflector::{self, Store, store::Writer};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::controller::{Config, gateway_kind};
use super::world::{Grant, Published, Route, World};

/// What has been seen of each kind.
pub struct Stores {
    ingresses: Store<Ingress>,
    ingress_classes: Store<IngressClass>,
    services: Store<Service>,
    slices: Store<EndpointSlice>,
    namespaces: Store<Namespace>,
    gateway_api: Option<GatewayStores>,
}

struct GatewayStores {
    classes: Store<GatewayClass>,
    gateways: Store<Gateway>,
    routes: Store<DynamicObject>,
    route_resource: ApiResource,
    grants: Option<Store<DynamicObject>>,
}

/// The running watches.
pub struct Watching {
    client: Client,
    changed: Arc<Notify>,
    tasks: JoinSet<()>,
    stores: Stores,
}

impl Watching {
    /// Starts watching what every cluster has.
    pub fn start(client: Client, changed: Arc<Notify>) -> Self {
        let mut tasks = JoinSet::new();
        let stores = Stores {
            ingresses: follow(&mut tasks, &changed, Api::all(client.clone()), &()),
            ingress_classes: follow(&mut tasks, &changed, Api::all(client.clone()), &()),
            services: follow(&mut tasks, &changed, Api::all(client.clone()), &()),
            slices: follow(&mut tasks, &changed, Api::all(client.clone()), &()),
            namespaces: follow(&mut tasks, &changed, Api::all(client.clone()), &()),
            gateway_api: None,
        };
        Self {
            client,
            changed,
            tasks,
            stores,
        }
    }

    /// What has been seen.
    pub fn stores(&self) -> &Stores {
        &self.stores
    }

    /// Waits until every kind has been listed once.
    pub async fn until_synced(&self) {
        let s = &self.stores;
        // A store whose writer is gone means the process is ending.
        let _ = s.ingresses.wait_until_ready().await;
        let _ = s.ingress_classes.wait_until_ready().await;
        let _ = s.services.wait_until_ready().await;
        let _ = s.slices.wait_until_ready().await;
        let _ = s.namespaces.wait_until_ready().await;
        if let Some(g) = &s.gateway_api {
            let _ = g.classes.wait_until_ready().await;
            let _ = g.gateways.wait_until_ready().await;
            let _ = g.routes.wait_until_ready().await;
            if let Some(grants) = &g.grants {
                let _ = grants.wait_until_ready().await;
            }
        }
    }

    /// Starts watching the Gateway API once the cluster serves it.
    pub async fn discover_gateway_api(&mut self) {
        if self.stores.gateway_api.is_some() {
            return;
        }
        let Some(route_version) = self
            .served("TLSRoute", &["v1", "v1alpha3", "v1alpha2"])
            .await
        else {
            return;
        };
        let grant_version = self.served("ReferenceGrant", &["v1", "v1beta1"]).await;
        info!(
            tls_route = route_version,
            "the Gateway API is installed; watching it"
        );
        let route_resource = gateway_kind(route_version, "TLSRoute");
        let (tasks, changed, client) = (&mut self.tasks, &self.changed, &self.client);
        let grants = grant_version.map(|version| {
            let resource = gateway_kind(version, "ReferenceGrant");
            follow(
                tasks,
                changed,
                Api::all_with(client.clone(), &resource),
                &resource,
            )
        });
        self.stores.gateway_api = Some(GatewayStores {
            classes: follow(tasks, changed, Api::all(client.clone()), &()),
            gateways: follow(tasks, changed, Api::all(client.clone()), &()),
            routes: follow(
                tasks,
                changed,
                Api::all_with(client.clone(), &route_resource),
                &route_resource,
            ),
            route_resource,
            grants,
        });
    }

    /// The first of these versions in which the cluster serves the kind. Only versions
    /// the cluster names are asked for: what is not there is nothing to warn about.
    async fn served(&self, kind: &str, versions: &[&'static str]) -> Option<&'static str> {
        let groups = self.client.list_api_groups().await.ok()?.groups;
        let group = groups
            .into_iter()
            .find(|g| g.name == "gateway.networking.k8s.io")?;
        for version in versions {
            if !group.versions.iter().any(|v| v.version == *version) {
                continue;
            }
            let name = format!("{}/{version}", group.name);
            let listed = self.client.list_api_group_resources(&name).await;
            if listed.is_ok_and(|list| list.resources.iter().any(|r| r.kind == kind)) {
                return Some(version);
            }
        }
        None
    }
}

fn follow<K>(
    tasks: &mut JoinSet<()>,
    changed: &Arc<Notify>,
    api: Api<K>,
    kind: &K::DynamicType,
) -> Store<K>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
    K::DynamicType: Clone + Eq + std::hash::Hash + std::fmt::Debug + Send + Sync,
{
    let writer = Writer::<K>::new(kind.clone());
    let store = writer.as_reader();
    let changed = changed.clone();
    let kind = K::kind(kind).into_owned();
    tasks.spawn(async move {
        let stream = watcher(api, watcher::Config::default())
            .default_backoff()
            .modify(|object| {
                object.managed_fields_mut().clear();
                object
                    .annotations_mut()
                    .remove("kubectl.kubernetes.io/last-applied-configuration");
            });
        let mut stream = std::pin::pin!(reflector::reflector(writer, stream));
        while let Some(event) = stream.next().await {
            match event {
                Ok(_) => changed.notify_one(),
                Err(error) => warn!(kind, %error, "a watch broke off; it will be taken up again"),
            }
        }
    });
    store
}

impl Stores {
    /// The TLSRoute kind in the version that is served.
    pub fn tls_route_resource(&self) -> ApiResource {
        self.gateway_api.as_ref().map_or_else(
            || gateway_kind("v1", "TLSRoute"),
            |g| g.route_resource.clone(),
        )
    }

    /// A snapshot to decide on.
    pub fn world(&self, config: &Config) -> World {
        let mut world = World {
            ingresses: self.ingresses.state(),
            ingress_classes: self.ingress_classes.state(),
            services: self.services.state(),
            slices: self.slices.state(),
            namespaces: self.namespaces.state(),
            ..World::default()
        };
        if let Some(g) = &self.gateway_api {
            world.gateway_classes = g.classes.state();
            world.gateways = g.gateways.state();
            world.routes = g.routes.state().iter().filter_map(|o| route(o)).collect();
            world.grants = g
                .grants
                .iter()
                .flat_map(Store::state)
                .filter_map(|o| grant(&o))
                .collect();
        }
        world.published = published(&world, config);
        world
    }
}

fn route(object: &DynamicObject) -> Option<Route> {
    let parse = |field: &str| object.data.get(field).cloned();
    let spec = serde_json::from_value(parse("spec")?);
    let spec = spec
        .inspect_err(|error| warn!(name = %object.name_any(), %error, "a TLSRoute can't be read; it is left out"))
        .ok()?;
    let status = parse("status").and_then(|s| serde_json::from_value(s).ok());
    Some(Route {
        metadata: object.metadata.clone(),
        spec,
        status,
    })
}

fn grant(object: &DynamicObject) -> Option<Grant> {
    let spec = serde_json::from_value(object.data.get("spec")?.clone()).ok()?;
    Some(Grant {
        namespace: object.namespace()?,
        spec,
    })
}

/// Where clients find us: what was given, or the address of the Service in front.
fn published(world: &World, config: &Config) -> Vec<Published> {
    if !config.publish_addresses.is_empty() {
        return config
            .publish_addresses
            .iter()
            .copied()
            .map(Published::Ip)
            .collect();
    }
    let Some((namespace, name)) = &config.publish_service else {
        return Vec::new();
    };
    let service = world.services.iter().find(|s| {
        s.metadata.namespace.as_ref() == Some(namespace) && s.metadata.name.as_ref() == Some(name)
    });
    let Some(service) = service else {
        return Vec::new();
    };
    let points = service
        .status
        .as_ref()
        .and_then(|s| s.load_balancer.as_ref())
        .and_then(|l| l.ingress.as_deref())
        .unwrap_or_default();
    let mut found: Vec<Published> = points
        .iter()
        .filter_map(|p| match (&p.ip, &p.hostname) {
            (Some(ip), _) => ip.parse::<IpAddr>().ok().map(Published::Ip),
            (None, Some(host)) => Some(Published::Hostname(host.clone())),
            (None, None) => None,
        })
        .collect();
    let given = service
        .spec
        .iter()
        .flat_map(|s| s.external_ips.iter().flatten());
    found.extend(given.filter_map(|ip| ip.parse().ok().map(Published::Ip)));
    found.sort();
    found.dedup();
    found
}
