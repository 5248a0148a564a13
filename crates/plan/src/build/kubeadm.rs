//! kubeadm's configuration, as `kubeadm init` would have left it behind.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::meta::{meta, object};
use crate::{
    object::{Kind, Object, Stage},
    validate::{Network, Validated},
    way::Ways,
};

/// `ClusterConfiguration` of this tenant: what joining nodes read.
pub(crate) fn cluster_configuration(tenant: &Validated, ways: &Ways) -> Value {
    let network = &tenant.network;
    let registry = &tenant
        .spec
        .control_plane
        .deployment
        .registry_settings
        .registry;
    let mut config = json!({
        "apiVersion": tenant.version.kubeadm_api(),
        "kind": "ClusterConfiguration",
        "apiServer": {},
        "certificatesDir": "/etc/kubernetes/pki",
        "clusterName": tenant.names.tenant,
        "controlPlaneEndpoint": ways.active.authority(),
        "controllerManager": {},
        "dns": {},
        "etcd": {"external": {
            "caFile": "/etc/kubernetes/pki/etcd/ca.crt",
            "certFile": "/etc/kubernetes/pki/etcd/server.crt",
            "keyFile": "/etc/kubernetes/pki/etcd/server.key",
            "endpoints": endpoints(tenant),
        }},
        "imageRepository": registry,
        "kubernetesVersion": tenant.version.to_string(),
        "networking": {
            "dnsDomain": network.domain,
            "podSubnet": Network::join(&network.pod_cidrs),
            "serviceSubnet": Network::join(&network.service_cidrs),
        },
        "scheduler": {},
    });
    if tenant.version.minor() >= 31 {
        let years = |hours: u32| format!("{hours}h0m0s");
        config["caCertificateValidityPeriod"] = json!(years(87600));
        config["certificateValidityPeriod"] = json!(years(8760));
        config["encryptionAlgorithm"] = json!("ECDSA-P256");
        config["proxy"] = json!({});
    }
    config
}

fn endpoints(tenant: &Validated) -> Vec<String> {
    tenant
        .storage
        .iter()
        .flat_map(|storage| etcd_urls(&storage.store.endpoints))
        .collect()
}

/// Endpoints of etcd as URLs.
pub(crate) fn etcd_urls(endpoints: &[String]) -> Vec<String> {
    endpoints
        .iter()
        .map(|endpoint| format!("https://{endpoint}"))
        .collect()
}

/// The `ConfigMap` in the tenant's namespace, for people and tools that look there.
pub(crate) fn config_map(tenant: &Validated, ways: &Ways) -> Object {
    let init = json!({
        "apiVersion": tenant.version.kubeadm_api(),
        "kind": "InitConfiguration",
        "localAPIEndpoint": {
            "advertiseAddress": ways.active.host,
            "bindPort": ways.active.port,
        },
        "nodeRegistration": {"taints": []},
    });
    let text = |value: &Value| serde_json::to_string(value).unwrap_or_default();
    let data: BTreeMap<String, String> = [
        ("InitConfiguration".into(), text(&init)),
        (
            "ClusterConfiguration".into(),
            text(&cluster_configuration(tenant, ways)),
        ),
    ]
    .into();
    let body = ConfigMap {
        metadata: meta(tenant, tenant.names.kubeadm_config(), "kubeadmconfig"),
        data: Some(data),
        ..ConfigMap::default()
    };
    object(
        Kind::ConfigMap,
        Stage::Config,
        "it records what kubeadm would have been told",
        &body,
    )
}
