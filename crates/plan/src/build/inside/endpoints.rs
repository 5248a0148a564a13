//! Where the `kubernetes` Service leads when that is ours to say: a fixed address that
//! every node's proxy answers, or an address that the API server can't announce itself.

use std::net::IpAddr;

use serde_json::json;
use steward_api::metadata::labels;

use super::make;
use crate::{
    names::PROJECT,
    object::{Kind, Object},
};

/// Where pods find the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoints {
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) port: u16,
}

/// The EndpointSlice, and the Endpoints for those who still read them. They are never
/// removed: when they stop being ours the API server takes them over as they are, and
/// pods never see a gap.
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
