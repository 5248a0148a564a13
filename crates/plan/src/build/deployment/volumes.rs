//! Volumes of the pod: every file comes from a Secret or `ConfigMap` of ours.

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, EmptyDirVolumeSource, KeyToPath, ProjectedVolumeSource,
    SecretProjection, SecretVolumeSource, Volume, VolumeProjection,
};

use super::Inputs;

/// Keys and certificates.
pub(super) const PKI: &str = "etc-kubernetes-pki";
/// Kubeconfig of the controller manager.
pub(super) const CONTROLLER_MANAGER: &str = "controller-manager-kubeconfig";
/// Kubeconfig of the scheduler.
pub(super) const SCHEDULER: &str = "scheduler-kubeconfig";
/// Socket between API server and konnectivity server.
pub(super) const KONNECTIVITY_SOCKET: &str = "konnectivity-uds";
/// What says where the API server's calls go.
pub(super) const EGRESS: &str = "egress-selector-configuration";
/// Kubeconfig of the konnectivity server.
pub(super) const KONNECTIVITY_KUBECONFIG: &str = "konnectivity-server-kubeconfig";
/// Certificate of the konnectivity server.
pub(super) const KONNECTIVITY_CERTIFICATE: &str = "konnectivity-server-certificate";
/// Certificate of the gate.
pub(super) const GATE: &str = "steward-gate-certificate";

/// Readable by the pod's group, which is ours, and by nobody else.
const MODE: i32 = 0o440;

pub(super) fn volumes(inputs: &Inputs<'_>) -> Vec<Volume> {
    let tenant = inputs.tenant;
    let names = &tenant.names;
    let mut all = vec![
        pki(inputs),
        secret(CONTROLLER_MANAGER, names.controller_manager_kubeconfig()),
        secret(SCHEDULER, names.scheduler_kubeconfig()),
    ];
    if tenant.spec.addons.konnectivity.is_some() {
        all.push(Volume {
            name: KONNECTIVITY_SOCKET.into(),
            empty_dir: Some(EmptyDirVolumeSource {
                medium: Some("Memory".into()),
                ..EmptyDirVolumeSource::default()
            }),
            ..Volume::default()
        });
        all.push(secret(
            KONNECTIVITY_KUBECONFIG,
            names.konnectivity_kubeconfig(),
        ));
        all.push(secret(
            KONNECTIVITY_CERTIFICATE,
            names.konnectivity_certificate(),
        ));
    }
    if tenant.egress.selects() {
        all.push(Volume {
            name: EGRESS.into(),
            config_map: Some(ConfigMapVolumeSource {
                name: names.egress_selector(),
                ..ConfigMapVolumeSource::default()
            }),
            ..Volume::default()
        });
    }
    if inputs.gate {
        all.push(secret(GATE, names.gate_certificate()));
    }
    let taken: Vec<String> = all.iter().map(|volume| volume.name.clone()).collect();
    let more = tenant
        .spec
        .control_plane
        .deployment
        .additional_volumes
        .iter();
    all.extend(more.filter(|volume| !taken.contains(&volume.name)).cloned());
    all
}

fn secret(volume: &str, name: String) -> Volume {
    Volume {
        name: volume.into(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(name),
            default_mode: Some(MODE),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    }
}

/// One folder of files from seven Secrets, laid out as kubeadm does it.
fn pki(inputs: &Inputs<'_>) -> Volume {
    let names = &inputs.tenant.names;
    let project = |name: String, items: &[(&str, &str)]| VolumeProjection {
        secret: Some(SecretProjection {
            name,
            items: Some(items.iter().map(|(key, path)| item(key, path)).collect()),
            ..SecretProjection::default()
        }),
        ..VolumeProjection::default()
    };
    let pair = |name: String, stem: &str| {
        let (crt, key) = (format!("{stem}.crt"), format!("{stem}.key"));
        project(name, &[(&crt, &crt), (&key, &key)])
    };
    let sources = vec![
        pair(names.api_server(), "apiserver"),
        pair(names.ca(), "ca"),
        pair(names.kubelet_client(), "apiserver-kubelet-client"),
        pair(names.front_proxy_ca(), "front-proxy-ca"),
        pair(names.front_proxy_client(), "front-proxy-client"),
        project(
            names.service_account(),
            &[("sa.key", "sa.key"), ("sa.pub", "sa.pub")],
        ),
        project(
            names.datastore_certificate(),
            &[
                ("ca.crt", "etcd/ca.crt"),
                ("server.crt", "etcd/server.crt"),
                ("server.key", "etcd/server.key"),
            ],
        ),
    ];
    Volume {
        name: PKI.into(),
        projected: Some(ProjectedVolumeSource {
            default_mode: Some(MODE),
            sources: Some(sources),
        }),
        ..Volume::default()
    }
}

fn item(key: &str, path: &str) -> KeyToPath {
    KeyToPath {
        key: key.into(),
        path: path.into(),
        mode: None,
    }
}
