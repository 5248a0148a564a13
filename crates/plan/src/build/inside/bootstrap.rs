//! `ConfigMaps` that `kubeadm join` reads: cluster-info, kubeadm-config, kubelet-config.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use steward_pki::Kubeconfig;

use super::{Inputs, PUBLIC, SYSTEM, make, named, yaml};
use crate::{
    build::kubeadm,
    object::{Kind, Object},
};

pub(super) fn objects(inputs: &Inputs<'_>) -> Vec<Object> {
    let tenant = inputs.tenant;
    let url = inputs.ways.active.url();
    let pointer = Kubeconfig {
        cluster: "",
        server: &url,
        authority: inputs.authority,
        user: "",
        client: None,
    };
    let cluster = kubeadm::cluster_configuration(tenant, inputs.ways);
    vec![
        // Its signatures are added by the bootstrap signer, token by token.
        map(
            PUBLIC,
            "cluster-info",
            "kubeconfig",
            pointer.render().unwrap_or_default(),
        ),
        map(
            SYSTEM,
            "kubeadm-config",
            "ClusterConfiguration",
            yaml(&cluster),
        ),
        map(
            SYSTEM,
            &tenant.version.kubelet_config_map(),
            "kubelet",
            yaml(&tenant.kubelet),
        ),
    ]
}

fn map(namespace: &str, name: &str, key: &str, text: String) -> Object {
    let body = ConfigMap {
        metadata: named(namespace, name),
        data: Some(BTreeMap::from([(key.to_owned(), text)])),
        ..ConfigMap::default()
    };
    make(Kind::ConfigMap, "kubeadm join reads it", &body)
}
