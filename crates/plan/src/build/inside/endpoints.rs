//! Where the `kubernetes` Service leads: a fixed address that every node's proxy answers, the
//! nodes on which a proxy runs, or the tenant's own address.

use std::net::IpAddr;

use serde_json::json;
use steward_api::metadata::labels;

use super::make;
use crate::{
    names::PROJECT,
    object::{Kind, Object},
    observed::Endpoints,
};

/// The EndpointSlice, and the Endpoints for those who still read them. They are never
/// removed: pods never see a gap.
pub(crate) fn endpoints(target: &Endpoints) -> [Object; 2] {
    let because = "pods find the API server through it";
    let family = |address: &IpAddr| if address.is_ipv4() { "IPv4" } else { "IPv6" };
    let kind = target.addresses.first().map_or("IPv4", family);
    let addresses: Vec<String> = target
        .addresses
        .iter()
        .filter(|address| family(address) == kind)
        .map(ToString::to_string)
        .collect();
    let slice = json!({
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {labels::PROJECT: PROJECT, "kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": kind,
        "endpoints": addresses
            .iter()
            .map(|address| json!({"addresses": [address], "conditions": {"ready": true}}))
            .collect::<Vec<_>>(),
        "ports": [{"name": "https", "port": target.port, "protocol": "TCP"}],
    });
    let legacy = json!({
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {
                labels::PROJECT: PROJECT,
                "endpointslice.kubernetes.io/skip-mirror": "true",
            },
        },
        "subsets": [{
            "addresses": addresses.iter().map(|ip| json!({"ip": ip})).collect::<Vec<_>>(),
            "ports": [{"name": "https", "port": target.port, "protocol": "TCP"}],
        }],
    });
    [
        make(Kind::EndpointSlice, because, &slice),
        make(Kind::Endpoints, because, &legacy),
    ]
}
