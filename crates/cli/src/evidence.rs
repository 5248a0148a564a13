//! Gathers what the doctor judges.
//!
//! Owns looking: from outside by name, in the management cluster, inside the
//! tenant. Each look has its own short deadline, and one that fails spoils no
//! other: this runs when things are broken.

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use steward_api::TenantControlPlane;
use steward_api::metadata::annotations;
use steward_doctor::{Condition, Evidence, Seen, Unseen};

use crate::cluster::Management;
use crate::problem::chain;

mod ask;
mod datastore;
mod front_door;
pub(crate) mod inside;
mod konnectivity;
mod management;
mod members;
mod outside;
mod past_the_door;
mod pods;

pub(crate) use pods::trouble;

/// How long one look may take. All together stay under ten seconds.
const LOOK: Duration = Duration::from_secs(3);

/// Looks at one tenant from everywhere.
pub async fn gather(cluster: &Management, tenant: &TenantControlPlane) -> Evidence {
    let cluster = &cluster.at(tenant);
    let name = tenant.name_any();
    let status = tenant.status.clone().unwrap_or_default();
    let names = tenant.public_names();
    let endpoint = status.control_plane_endpoint.clone();
    let known = names
        .as_ref()
        .map(steward_api::hostnames::PublicNames::port);
    let (host, port) = split(endpoint.as_deref(), known);
    let hostname = names.map(|n| n.api);
    let target = hostname.clone().or(host);
    let addresses = status.exposure.clone().unwrap_or_default().addresses;

    let ca = authority(cluster, &name).await;
    let outside = outside::look(target.as_deref(), port, ca.as_deref());
    let near = management::look(cluster, tenant);
    let within = inside::look(cluster, tenant, ca.as_deref());
    let (outside, near, within) = tokio::join!(outside, near, within);
    let addons = &tenant.spec.addons;
    let now = Timestamp::now();
    let given_up = given_up(&[
        near.operator.as_ref().err(),
        near.front_door.as_ref().and_then(|f| f.as_ref().err()),
        near.service_endpoints.as_ref().err(),
        near.pods.as_ref().err(),
        near.deployment.reconciler_off.as_ref().err(),
        near.datastore.as_ref().err(),
        near.datastore_credentials.as_ref().err(),
    ]);

    Evidence {
        tenant: format!("{}/{name}", cluster.namespace),
        now,
        paused: tenant.annotations().contains_key(annotations::PAUSED),
        given_up,
        deleting: deleting(tenant, now),
        installed_version: status.kubernetes_resources.and_then(|r| r.version?.version),
        conditions: status.conditions.iter().map(condition).collect(),
        hostname,
        port,
        endpoint,
        cluster_domain: tenant.spec.network_profile.cluster_domain.clone(),
        admin_endpoint: within.admin_endpoint,
        rivals: near.rivals,
        operator: near.operator,
        front_door_addresses: addresses.iter().filter_map(|a| a.parse().ok()).collect(),
        resolved: outside.resolved,
        tcp: outside.tcp,
        certificate: outside.certificate,
        admitted: within.admitted,
        ready: within.ready,
        front_door: near.front_door,
        service_endpoints: near.service_endpoints,
        unready_pods: near
            .pods
            .as_ref()
            .map(|p| p.unready.clone())
            .map_err(Clone::clone),
        missing_images: near.pods.map(|p| p.missing_images).unwrap_or_default(),
        refused_pods: near.deployment.refused,
        datastore: near.datastore,
        datastore_credentials: near.datastore_credentials,
        reconciler_off: near.deployment.reconciler_off,
        inside: within.inside,
        past_the_door: within.past_the_door,
        konnectivity_servers: near.konnectivity_servers,
        tcp_proxy: addons.tcp_proxy.as_ref().map(|p| p.address.clone()),
        konnectivity: addons.konnectivity.is_some(),
        clock_skew: within.clock_skew,
    }
}

fn deleting(tenant: &TenantControlPlane, now: Timestamp) -> Option<(i64, Vec<String>)> {
    let asked = tenant.metadata.deletion_timestamp.as_ref()?.0;
    let finalizers = tenant.finalizers().to_vec();
    Some((now.as_second() - asked.as_second(), finalizers))
}

/// The tenant's CA, if it can be had in time.
async fn authority(cluster: &Management, name: &str) -> Option<String> {
    let secret = format!("{name}-ca");
    let found = tokio::time::timeout(LOOK, cluster.secret_text(&secret, "ca.crt")).await;
    found.ok()?.ok()
}

fn split(endpoint: Option<&str>, known: Option<i32>) -> (Option<String>, u16) {
    let known = known.and_then(|p| u16::try_from(p).ok());
    let Some((host, port)) = endpoint.and_then(|e| e.rsplit_once(':')) else {
        return (None, known.unwrap_or(443));
    };
    (
        Some(host.trim_matches(['[', ']']).to_owned()),
        port.parse().ok().or(known).unwrap_or(443),
    )
}

fn condition(found: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition) -> Condition {
    Condition {
        kind: found.type_.clone(),
        status: found.status.clone(),
        reason: found.reason.clone(),
        message: found.message.clone(),
    }
}

/// Gives a look at the management cluster its deadline. That it is slow says nothing of
/// the tenant: what it did not tell in time was not looked at.
async fn near<T>(what: &str, look: impl Future<Output = Seen<T>>) -> Seen<T> {
    let late = || format!("{what}{NOT_IN_TIME}");
    tokio::time::timeout(LOOK, look)
        .await
        .unwrap_or_else(|_| Err(Unseen::NotLooked(late())))
}

/// How what the management cluster did not tell in time is marked.
const NOT_IN_TIME: &str = " took too long";

/// What was given up, of all that was looked at.
fn given_up(all: &[Option<&Unseen>]) -> Vec<String> {
    let texts = all.iter().flatten().map(ToString::to_string);
    texts
        .filter_map(|t| Some(t.strip_suffix(NOT_IN_TIME)?.to_owned()))
        .collect()
}

/// Gives a look its deadline.
async fn within_deadline<T>(what: &str, look: impl Future<Output = Seen<T>>) -> Seen<T> {
    tokio::time::timeout(LOOK, look).await.unwrap_or_else(|_| {
        Err(Unseen::Failed(format!(
            "{what}: no answer within {} s",
            LOOK.as_secs()
        )))
    })
}

/// An API error as evidence: what we may not see is not broken.
fn unseen(error: &kube::Error) -> Unseen {
    match error {
        kube::Error::Api(status) if status.code == 403 => Unseen::NotLooked(status.message.clone()),
        kube::Error::Api(status) => Unseen::Failed(status.message.clone()),
        other => Unseen::Failed(chain(other)),
    }
}
