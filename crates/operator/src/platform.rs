//! What the management cluster offers: served kinds, and nodes' addresses.
//!
//! Owns: asking discovery now and then, watching nodes (a few bytes kept of each). Refuses: deciding what
//! that means for a tenant.

use std::{net::IpAddr, time::Duration};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::{core::v1::Node, networking::v1::IngressClass};
use kube::{
    Api, Client, ResourceExt,
    api::ListParams,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use std::collections::BTreeMap;
use steward_plan::{Platform, TlsRouteVersion};
use tokio::sync::watch;

/// CRDs come and go rarely; this long a new one may stay unnoticed.
const DISCOVERY: Duration = Duration::from_secs(30);

/// Asks discovery once.
///
/// # Errors
/// The client's.
pub async fn discover(client: &Client) -> Result<Platform, kube::Error> {
    let gateway = "gateway.networking.k8s.io";
    let versions = [
        ("v1", TlsRouteVersion::V1),
        ("v1alpha3", TlsRouteVersion::V1Alpha3),
        ("v1alpha2", TlsRouteVersion::V1Alpha2),
    ];
    let mut platform = Platform::default();
    for (version, found) in versions {
        if serves(client, &format!("{gateway}/{version}"), "tlsroutes").await? {
            platform.tls_route = Some(found);
            break;
        }
    }
    platform.ingress_route_tcp = serves(client, "traefik.io/v1alpha1", "ingressroutetcps").await?;
    platform.ingress_classes = ingress_classes(client).await;
    Ok(platform)
}

/// What may not be read is unknown, not absent.
async fn ingress_classes(client: &Client) -> Option<BTreeMap<String, bool>> {
    let classes: Api<IngressClass> = Api::all(client.clone());
    let found = classes.list(&ListParams::default()).await.ok()?;
    let default = |class: &IngressClass| {
        let notes = class.annotations();
        notes
            .get("ingressclass.kubernetes.io/is-default-class")
            .is_some_and(|value| value == "true")
    };
    let all = found.items.iter();
    Some(
        all.map(|class| (class.name_any(), default(class)))
            .collect(),
    )
}

async fn serves(client: &Client, group_version: &str, plural: &str) -> Result<bool, kube::Error> {
    match client.list_api_group_resources(group_version).await {
        Ok(list) => Ok(list
            .resources
            .iter()
            .any(|resource| resource.name == plural)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        // An aggregated API that is down answers 503; what it serves is unknown, not absent.
        Err(error) => Err(error),
    }
}

/// Keeps `platform` up to date until dropped. Subscribers hear only of differences.
pub async fn follow(client: Client, platform: watch::Sender<Platform>) {
    futures::join!(
        follow_discovery(&client, &platform),
        follow_nodes(client.clone(), &platform)
    );
}

async fn follow_discovery(client: &Client, platform: &watch::Sender<Platform>) {
    loop {
        tokio::time::sleep(DISCOVERY).await;
        match discover(client).await {
            Ok(found) => {
                change(platform, |platform| {
                    platform.tls_route = found.tls_route;
                    platform.ingress_route_tcp = found.ingress_route_tcp;
                    platform.ingress_classes = found.ingress_classes;
                });
            }
            Err(error) => tracing::debug!(%error, "discovery failed; what was known stays"),
        }
    }
}

async fn follow_nodes(client: Client, platform: &watch::Sender<Platform>) {
    let mut nodes: BTreeMap<String, Vec<IpAddr>> = BTreeMap::new();
    let mut listed: BTreeMap<String, Vec<IpAddr>> = BTreeMap::new();
    let mut events = watcher(Api::<Node>::all(client), watcher::Config::default())
        .default_backoff()
        .boxed();
    loop {
        match events.try_next().await {
            Ok(Some(Event::Init)) => listed.clear(),
            Ok(Some(Event::InitApply(node))) => {
                listed.insert(node.name_any(), addresses(&node));
            }
            Ok(Some(Event::InitDone)) => nodes = std::mem::take(&mut listed),
            Ok(Some(Event::Apply(node))) => {
                nodes.insert(node.name_any(), addresses(&node));
            }
            Ok(Some(Event::Delete(node))) => {
                nodes.remove(&node.name_any());
            }
            Ok(None) => return,
            Err(error) => {
                tracing::debug!(%error, "watch of nodes interrupted; it goes on by itself");
            }
        }
        change(platform, |platform| {
            platform.nodes = nodes.len();
            platform.node_addresses = nodes.values().flatten().copied().collect();
        });
    }
}

fn change(platform: &watch::Sender<Platform>, edit: impl FnOnce(&mut Platform)) {
    platform.send_if_modified(|platform| {
        let before = platform.clone();
        edit(platform);
        *platform != before
    });
}

/// Addresses at which a ready node's ports answer, external before internal.
fn addresses(node: &Node) -> Vec<IpAddr> {
    let Some(status) = node
        .status
        .as_ref()
        .filter(|status| crate::tenant::ready(status))
    else {
        return Vec::new();
    };
    let of = |kind: &'static str| {
        status
            .addresses
            .iter()
            .flatten()
            .filter(move |address| address.type_ == kind)
            .filter_map(|address| address.address.parse().ok())
    };
    of("ExternalIP").chain(of("InternalIP")).collect()
}
