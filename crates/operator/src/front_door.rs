//! Where a tenant's front door is, when the tenant's own objects do not say: the status of its Gateway, else
//! what DNS says of its name. Node proxies get these addresses, so that they work without DNS.
//!
//! Refuses: guessing among Services of ingress controllers.

use std::{net::IpAddr, time::Duration};

use kube::{Client, ResourceExt, core::Request};
use serde_json::Value;
use steward_api::{TenantControlPlane, metadata::annotations};
use steward_plan::{Kind, Live};

use crate::error::Error;

/// A name server that does not answer must not hold up the tenant.
const DNS: Duration = Duration::from_secs(2);

/// Addresses of the front door; none in modes without one, and none when the Ingress itself says them.
///
/// # Errors
/// When the Gateway can't be read.
pub async fn addresses(
    client: &Client,
    tenant: &TenantControlPlane,
    live: &Live,
) -> Result<Vec<IpAddr>, Error> {
    let Some(names) = tenant.public_names() else {
        return Ok(Vec::new());
    };
    let namespace = tenant.namespace().unwrap_or_default();
    // The Ingress of a tenant that moves to a Gateway speaks for the old way.
    if tenant.spec.control_plane.gateway.is_none()
        && told_by_ingress(live, &namespace, &tenant.name_any())
    {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    let parents = tenant
        .spec
        .control_plane
        .gateway
        .iter()
        .flat_map(|gateway| &gateway.parent_refs);
    for parent in parents {
        let place = parent.namespace.as_deref().unwrap_or(&namespace);
        found.extend(of_gateway(client, place, &parent.name).await?);
    }
    // Only node proxies have addresses pinned; for all others DNS is asked by whoever connects.
    if found.is_empty() && has_node_proxy(tenant) {
        found = settled(
            resolve(&names.api).await,
            steward_plan::remembered(tenant, &names.api),
        );
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// The annotation of the ingress addon asks for one, too.
fn has_node_proxy(tenant: &TenantControlPlane) -> bool {
    let notes = tenant.annotations();
    tenant.spec.addons.tcp_proxy.is_some() || notes.contains_key(annotations::KAMAJI_INGRESS_DOMAIN)
}

fn told_by_ingress(live: &Live, namespace: &str, name: &str) -> bool {
    let ingress = live.get(Kind::Ingress, namespace, name);
    let told = ingress.and_then(|ingress| ingress.pointer("/status/loadBalancer/ingress/0/ip"));
    told.is_some()
}

async fn of_gateway(client: &Client, namespace: &str, name: &str) -> Result<Vec<IpAddr>, Error> {
    let read = |error| Error::Read {
        what: format!("Gateway {namespace}/{name}"),
        error,
    };
    let request = Request::new(format!(
        "/apis/gateway.networking.k8s.io/v1/namespaces/{namespace}/gateways"
    ))
    .get(name, &kube::api::GetParams::default())
    .map_err(|error| read(kube::Error::BuildRequest(error)))?;
    let gateway: Value = match client.request(request).await {
        Ok(gateway) => gateway,
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Vec::new()),
        Err(error) => return Err(read(error)),
    };
    let addresses = gateway["status"]["addresses"]
        .as_array()
        .into_iter()
        .flatten();
    Ok(addresses
        .filter_map(|address| address["value"].as_str()?.parse().ok())
        .collect())
}

async fn resolve(name: &str) -> Vec<IpAddr> {
    match tokio::time::timeout(DNS, tokio::net::lookup_host((name, 443))).await {
        Ok(Ok(found)) => found.map(|address| address.ip()).collect(),
        // Not to be in DNS yet is told by the knock at the endpoint.
        Ok(Err(_)) | Err(_) => Vec::new(),
    }
}

/// A name with many addresses may give others every time, and node proxies are replaced when theirs change: as long
/// as one that they have is still right, they keep all. They ask DNS first anyway.
fn settled(found: Vec<IpAddr>, known: Vec<IpAddr>) -> Vec<IpAddr> {
    if found.iter().any(|address| known.contains(address)) {
        known
    } else {
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(last: &[u8]) -> Vec<IpAddr> {
        last.iter().map(|n| IpAddr::from([192, 0, 2, *n])).collect()
    }

    #[test]
    fn a_name_whose_addresses_come_in_turns_changes_nothing() {
        let known = addresses(&[1, 2]);
        assert_eq!(settled(addresses(&[2, 3]), known.clone()), known);
        assert_eq!(settled(addresses(&[1]), known.clone()), known);
    }

    #[test]
    fn a_front_door_that_moved_is_followed() {
        let moved = addresses(&[7, 8]);
        assert_eq!(settled(moved.clone(), addresses(&[1, 2])), moved);
        assert_eq!(settled(moved.clone(), Vec::new()), moved);
    }
}
