//! `status` of a `TenantControlPlane`: what was made, where it is, and what is waited for.

mod addons;
mod resources;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::EgressStatus;

pub use addons::*;
pub use resources::*;

/// What the tenant's control plane is.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TenantControlPlaneStatus {
    /// Generation of the spec that this status answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// State of the tenant, step by step. `Available` is what to wait for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<crate::embedded::Embedded<Condition>>")]
    pub conditions: Vec<Condition>,
    /// Where clients and nodes reach the API server, as `host:port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<String>,
    /// How the tenant is reached from outside right now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposure: Option<ExposureStatus>,
    /// Where the tenant's data is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageStatus>,
    /// Certificates and the Secrets that hold them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificates: Option<CertificatesStatus>,
    /// Kubeconfigs and the Secrets that hold them.
    #[serde(
        default,
        rename = "kubeconfig",
        skip_serializing_if = "Option::is_none"
    )]
    pub kubeconfig: Option<KubeconfigsStatus>,
    /// Objects that run and expose the control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_resources: Option<KubernetesResourcesStatus>,
    /// Configuration for kubeadm.
    #[serde(
        default,
        rename = "kubeadmconfig",
        skip_serializing_if = "Option::is_none"
    )]
    pub kubeadm_config: Option<KubeadmConfigStatus>,
    /// What kubeadm's phases would have done inside the tenant cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeadm_phase: Option<KubeadmPhaseStatus>,
    /// Addons inside the tenant cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addons: Option<AddonsStatus>,
    /// Where connections that the control plane opens go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<EgressStatus>,
}

/// How a tenant is reached from outside.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExposureStatus {
    /// The way that is up and checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ExposureMode>,
    /// Name under which the API server is reached, if by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Name under which konnectivity agents connect, if not the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub konnectivity_hostname: Option<String>,
    /// Port under which it is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
    /// Addresses of the front door, as its own status names them. Node proxies use them when no name
    /// server answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// The way before this one, while something inside the tenant may still use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<PreviousExposure>,
    /// The endpoint that was given back because the annotation
    /// `steward.butlerlabs.dev/release-endpoint` names it, for as long as it does. To release the
    /// same one a second time, remove the annotation first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<String>,
}

/// A way that was left and still works.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PreviousExposure {
    /// What it was.
    pub mode: ExposureMode,
    /// Name or address of the API server.
    pub host: String,
    /// Name or address for konnectivity agents.
    pub konnectivity_host: String,
    /// Port of the API server.
    pub port: i32,
    /// Port for konnectivity agents.
    pub konnectivity_port: i32,
    /// Addresses that lead there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
}

/// Ways to reach a tenant.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
pub enum ExposureMode {
    /// From inside this cluster only.
    ClusterIP,
    /// By the nodes' addresses.
    NodePort,
    /// By an address of its own.
    LoadBalancer,
    /// By name through an Ingress controller.
    Ingress,
    /// By name through a Gateway.
    Gateway,
}

/// Where the tenant's data is.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StorageStatus {
    /// Driver of the `DataStore`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Name of the `DataStore`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_store_name: Option<String>,
    /// Connection of the API server to the datastore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<SecretRefStatus>,
    /// Schema and user inside the datastore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<StorageSetupStatus>,
    /// Client certificate for the datastore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<SecretRefStatus>,
}

/// Schema and user inside the datastore.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StorageSetupStatus {
    /// Name of the schema or key prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Name of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// When it was last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update: Option<Time>,
    /// Checksum of what it was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
}

/// A Secret that Steward made.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretRefStatus {
    /// Name of the Secret, in the tenant's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// When it was last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update: Option<Time>,
    /// Checksum of its content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// When what it holds expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Time>,
}

/// Certificates and the Secrets that hold them.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificatesStatus {
    /// CA of the tenant cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<SecretRefStatus>,
    /// Serving certificate of the API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_server: Option<SecretRefStatus>,
    /// Certificate with which the API server calls kubelets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_server_kubelet_client: Option<SecretRefStatus>,
    /// CA for the front proxy.
    #[serde(
        default,
        rename = "frontProxyCA",
        skip_serializing_if = "Option::is_none"
    )]
    pub front_proxy_ca: Option<SecretRefStatus>,
    /// Certificate with which the API server calls aggregated APIs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub front_proxy_client: Option<SecretRefStatus>,
    /// Keys that sign service account tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sa: Option<SecretRefStatus>,
    /// Certificates for etcd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<EtcdCertificatesStatus>,
}

/// Certificates for etcd.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdCertificatesStatus {
    /// CA of etcd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<SecretRefStatus>,
    /// Certificate with which the API server calls etcd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_server: Option<SecretRefStatus>,
}

/// Kubeconfigs and the Secrets that hold them.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeconfigsStatus {
    /// For administrators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin: Option<SecretRefStatus>,
    /// For kube-controller-manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller_manager: Option<SecretRefStatus>,
    /// For kube-scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<SecretRefStatus>,
}

/// Configuration for kubeadm.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeadmConfigStatus {
    /// Name of the `ConfigMap`, in the tenant's namespace.
    #[serde(
        default,
        rename = "configmapName",
        skip_serializing_if = "Option::is_none"
    )]
    pub config_map_name: Option<String>,
    /// When it was last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update: Option<Time>,
    /// Checksum of its content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
}

/// What kubeadm's phases would have done inside the tenant cluster.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeadmPhaseStatus {
    /// What joining with a bootstrap token needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_token: Option<PhaseStatus>,
}

/// One phase.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PhaseStatus {
    /// Checksum of what was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// When it was last written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update: Option<Time>,
}
