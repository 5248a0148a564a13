//! Gathers what the doctor judges.
//!
//! Owns looking: from outside by name, in the management cluster, inside the
//! tenant. Each look has its own short deadline, and one that fails spoils no
//! other: this runs when things are broken.

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use steward_api::TenantControlPlane;
use steward_doctor::{Condition, Evidence, Seen, Unseen};

use crate::cluster::Management;

mod inside;
mod management;
mod outside;

/// How long one look may take. All together stay under ten seconds.
const LOOK: Duration = Duration::from_secs(3);

/// Looks at one tenant from everywhere.
pub async fn gather(cluster: &Management, tenant: &TenantControlPlane) -> Evidence {
    let name = tenant.name_any();
    let status = tenant.status.clone().unwrap_or_default();
    let names = tenant.public_names();
    let endpoint = status.control_plane_endpoint.clone();
    let (host, port) = split(
        endpoint.as_deref(),
        names
            .as_ref()
            .map(steward_api::hostnames::PublicNames::port),
    );
    let hostname = names.map(|n| n.api);
    let target = hostname.clone().or(host);
    let exposure = status.exposure.clone().unwrap_or_default();
    let front_door_addresses = exposure
        .addresses
        .iter()
        .filter_map(|a| a.parse().ok())
        .collect();

    let ca = cluster
        .secret_text(&format!("{name}-ca"), "ca.crt")
        .await
        .ok();
    let outside = outside::look(target.as_deref(), port, ca.as_deref());
    let near = management::look(cluster, tenant);
    let within = inside::look(cluster, &name);
    let (outside, near, within) = tokio::join!(outside, near, within);

    Evidence {
        tenant: format!("{}/{name}", cluster.namespace),
        now: Timestamp::now(),
        conditions: status.conditions.iter().map(condition).collect(),
        hostname,
        port,
        endpoint,
        rivals: near.rivals,
        front_door_addresses,
        resolved: outside.resolved,
        tcp: outside.tcp,
        certificate: outside.certificate,
        ready: within.ready,
        front_door: near.front_door,
        service_endpoints: near.service_endpoints,
        unready_pods: near.unready_pods,
        datastore: near.datastore,
        reconciler_off: near.reconciler_off,
        inside: within.inside,
        tcp_proxy: tenant
            .spec
            .addons
            .tcp_proxy
            .as_ref()
            .map(|p| p.address.clone()),
        konnectivity: tenant.spec.addons.konnectivity.is_some(),
        clock_skew: within.clock_skew,
    }
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
        other => Unseen::Failed(other.to_string()),
    }
}
