//! Where the API server's own calls go: through the tunnel, nowhere, or straight out.
//!
//! Both kinds of calls are named in every case. A kind without an entry is dialled straight from the
//! pod, and a tenant's administrator chooses the address: of a webhook, of a node, of an endpoint.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use steward_api::tenant_control_plane::EgressPath;

use super::konnectivity::SOCKET;
use crate::{
    build::meta::{meta, object},
    object::{Kind, Object, Stage},
    validate::Validated,
};

/// A socket that nobody listens on. Its name is in the error that callers get.
const NOWHERE: &str = "/closed/by/spec.controlPlane.egress";

/// The `ConfigMap` with the API server's egress selector, unless all its calls go straight out.
pub(crate) fn egress_selector(tenant: &Validated) -> Option<Object> {
    if !tenant.egress.selects() {
        return None;
    }
    let config = json!({
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [
            {"name": "cluster", "connection": connection(tenant.egress.cluster)},
            {"name": "controlplane", "connection": connection(tenant.egress.control_plane)},
        ],
    });
    let text = serde_saphyr::to_string(&config).unwrap_or_default();
    let body = ConfigMap {
        metadata: meta(
            tenant,
            tenant.names.egress_selector(),
            "konnectivity-egress-selector",
        ),
        data: Some(BTreeMap::from([(
            "egress-selector-configuration.yaml".into(),
            text,
        )])),
        ..ConfigMap::default()
    };
    let because = "it says where the API server's own calls go";
    Some(object(Kind::ConfigMap, Stage::Config, because, &body))
}

fn connection(path: EgressPath) -> Value {
    let socket = |protocol: &str, name: &str| {
        json!({
            "proxyProtocol": protocol,
            "transport": {"uds": {"udsName": name}},
        })
    };
    match path {
        EgressPath::Tunnel => socket("GRPC", SOCKET),
        // gRPC would try again until its deadline.
        EgressPath::Closed => socket("HTTPConnect", NOWHERE),
        EgressPath::Direct => json!({"proxyProtocol": "Direct"}),
    }
}
