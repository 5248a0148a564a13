//! Watches the cluster, feeds the route table, writes status.
//!
//! Owns the watches, the pace and the writes; every decision is made in
//! `translate` and `status`. Replicas all do this: they come to the same result,
//! and a status that is already right is not written again.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gateway_api::gatewayclasses::GatewayClass;
use gateway_api::gateways::Gateway;
use ipnet::IpNet;
use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt};
use serde_json::json;
use tokio::sync::Notify;
use tracing::{info, warn};

use super::status::{self, Target, Write};
use super::translate::translate;
use super::watch::{Stores, Watching};
use super::world::World;

/// Changes arrive in bursts (a rollout touches slices many times a second); this
/// long we wait for the rest of a burst before looking again.
const SETTLE: Duration = Duration::from_millis(25);

/// How often we look whether the Gateway API has been installed meanwhile.
const DISCOVER: Duration = Duration::from_secs(30);

/// Where connections for a host go, and whose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Goal {
    /// Addresses of ready pods.
    pub backends: Vec<SocketAddr>,
    /// Who may connect; empty is everyone.
    pub allow: Vec<IpNet>,
    /// A wildcard that stands for one label only.
    pub one_label: bool,
}

/// One change of the route table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// This host goes there.
    Set(String, Goal),
    /// This host is no longer ours.
    Remove(String),
}

/// What the controller has to know.
#[derive(Clone, Debug)]
pub struct Config {
    /// The port on which clients reach the gateway.
    pub port: u16,
    /// The Service in front of us, whose address is published: namespace and name.
    pub publish_service: Option<(String, String)>,
    /// Addresses to publish instead.
    pub publish_addresses: Vec<std::net::IpAddr>,
}

/// Follows the cluster for as long as the process lives. `apply` gets each batch
/// of changes to the table; `ready` is called once, after the first batch.
pub async fn run(
    client: Client,
    config: Config,
    mut apply: impl FnMut(Vec<Change>),
    ready: impl FnOnce(),
) {
    let changed = Arc::new(Notify::new());
    let mut watching = Watching::start(client.clone(), changed.clone());
    watching.discover_gateway_api().await;
    watching.until_synced().await;
    let mut ready = Some(ready);
    let mut routed: BTreeMap<String, Goal> = BTreeMap::new();
    let mut rediscover = tokio::time::interval(DISCOVER);
    rediscover.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let world = watching.stores().world(&config);
        let writes = step(&world, &config, &mut routed, &mut apply);
        if let Some(ready) = ready.take() {
            ready();
        }
        write_all(&client, watching.stores(), writes).await;
        tokio::select! {
            () = changed.notified() => tokio::time::sleep(SETTLE).await,
            _ = rediscover.tick() => watching.discover_gateway_api().await,
        }
    }
}

/// Routes first, words later: a client must never find less than status says.
fn step(
    world: &World,
    config: &Config,
    routed: &mut BTreeMap<String, Goal>,
    apply: &mut impl FnMut(Vec<Change>),
) -> Vec<Write> {
    let translation = translate(world, i32::from(config.port));
    let wanted: BTreeMap<String, Goal> = translation
        .settled
        .routes
        .iter()
        .map(|(host, claim)| {
            let goal = Goal {
                backends: claim.backends.clone(),
                allow: claim.allow.clone(),
                one_label: claim.one_label,
            };
            (host.clone(), goal)
        })
        .collect();
    let changes = diff(routed, &wanted);
    for change in &changes {
        match change {
            Change::Set(host, goal) => info!(%host, backends = goal.backends.len(), "route set"),
            Change::Remove(host) => info!(%host, "route removed"),
        }
    }
    if !changes.is_empty() {
        apply(changes);
    }
    *routed = wanted;
    status::due(world, &translation, Timestamp::now())
}

/// What to change to come from one table to the other.
fn diff(old: &BTreeMap<String, Goal>, new: &BTreeMap<String, Goal>) -> Vec<Change> {
    let gone = old
        .keys()
        .filter(|h| !new.contains_key(*h))
        .cloned()
        .map(Change::Remove);
    let set = new
        .iter()
        .filter(|(h, b)| old.get(*h) != Some(*b))
        .map(|(h, b)| Change::Set(h.clone(), b.clone()));
    gone.chain(set).collect()
}

async fn write_all(client: &Client, stores: &Stores, writes: Vec<Write>) {
    for write in writes {
        if let Err(error) = write_one(client, stores, &write).await {
            // Someone else wrote meanwhile: the watch brings it, and we look again.
            let conflict = matches!(&error, kube::Error::Api(s) if s.code == 409 || s.code == 404);
            if !conflict {
                warn!(kind = ?write.target, name = %write.name, %error, "could not write status; check the gateway's RBAC and the API server");
            }
        }
    }
}

async fn write_one(client: &Client, stores: &Stores, write: &Write) -> Result<(), kube::Error> {
    let resource = match write.target {
        Target::GatewayClass => ApiResource::erase::<GatewayClass>(&()),
        Target::Gateway => ApiResource::erase::<Gateway>(&()),
        Target::Ingress => ApiResource::erase::<Ingress>(&()),
        Target::TlsRoute => stores.tls_route_resource(),
    };
    let api: Api<DynamicObject> = match &write.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let patch = json!({ "metadata": { "resourceVersion": write.resource_version }, "status": write.status });
    let written = api
        .patch_status(&write.name, &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    info!(kind = ?write.target, namespace = write.namespace, name = %written.name_any(), "status written");
    Ok(())
}

/// Names a kind of the Gateway API in the version the cluster serves.
pub(super) fn gateway_kind(version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(
        "gateway.networking.k8s.io",
        version,
        kind,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_changed() {
        let goal = |a: &str| Goal {
            backends: vec![a.parse().unwrap()],
            ..Goal::default()
        };
        let (a, b) = (goal("127.0.0.1:1"), goal("127.0.0.1:2"));
        let old = BTreeMap::from([
            ("same".into(), a.clone()),
            ("moved".into(), a.clone()),
            ("gone".into(), a.clone()),
        ]);
        let new = BTreeMap::from([
            ("same".into(), a.clone()),
            ("moved".into(), b.clone()),
            ("new".into(), Goal::default()),
        ]);
        let changes = diff(&old, &new);
        assert_eq!(
            changes,
            [
                Change::Remove("gone".into()),
                Change::Set("moved".into(), b.clone()),
                Change::Set("new".into(), Goal::default()),
            ]
        );
    }
}
