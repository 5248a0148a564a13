//! `status.addons`: what is installed inside the tenant cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SecretRefStatus;
use crate::tenant_control_plane::{KonnectivityAgentMode, TcpProxyMode, WorkerBootstrapProvider};

/// Addons inside the tenant cluster.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AddonsStatus {
    /// CoreDNS.
    #[serde(default, rename = "coreDNS", skip_serializing_if = "Option::is_none")]
    pub core_dns: Option<AddonStatus>,
    /// kube-proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_proxy: Option<AddonStatus>,
    /// Konnectivity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub konnectivity: Option<KonnectivityStatus>,
    /// The proxy on the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_proxy: Option<TcpProxyStatus>,
    /// Help for workers that don't join with kubeadm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_bootstrap: Option<WorkerBootstrapStatus>,
}

/// An addon.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AddonStatus {
    /// Whether it is installed.
    #[serde(default)]
    pub enabled: bool,
    /// When it was last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update: Option<Time>,
}

/// An object inside the tenant cluster or in its namespace.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRefStatus {
    /// Name of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Checksum of its content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// When it was last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update: Option<Time>,
}

/// Konnectivity.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KonnectivityStatus {
    /// Whether it is installed.
    #[serde(default)]
    pub enabled: bool,
    /// `ConfigMap` that sends the API server's calls through konnectivity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ObjectRefStatus>,
    /// Certificate of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<SecretRefStatus>,
    /// Kubeconfig of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<SecretRefStatus>,
    /// Service account of the agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sa: Option<ObjectRefStatus>,
    /// What lets the server check agents' tokens.
    #[serde(
        default,
        rename = "clusterrolebinding",
        skip_serializing_if = "Option::is_none"
    )]
    pub cluster_role_binding: Option<ObjectRefStatus>,
    /// The agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<KonnectivityAgentStatus>,
    /// Where agents connect, as `host:port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
}

/// The konnectivity agents.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KonnectivityAgentStatus {
    /// Name of the object that runs them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<KonnectivityAgentMode>,
    /// When it was last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update: Option<Time>,
}

/// The proxy on the nodes.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TcpProxyStatus {
    /// Whether it is installed.
    #[serde(default)]
    pub enabled: bool,
    /// How pods' connections are carried right now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<TcpProxyMode>,
    /// Address that the `kubernetes` Service of the tenant leads to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// `DaemonSet` of the `EndToEnd` mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemon_set: Option<ObjectRefStatus>,
    /// Deployment of the `Terminate` mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<ObjectRefStatus>,
    /// Service of the `Terminate` mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ObjectRefStatus>,
    /// Service account of the `Terminate` mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ObjectRefStatus>,
    /// Cluster role of the `Terminate` mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_role: Option<ObjectRefStatus>,
    /// Cluster role binding of the `Terminate` mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_role_binding: Option<ObjectRefStatus>,
}

/// Help for workers that don't join with kubeadm.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerBootstrapStatus {
    /// Whether it is installed.
    #[serde(default)]
    pub enabled: bool,
    /// What kind of workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<WorkerBootstrapProvider>,
    /// Secret with the workers' credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<SecretRefStatus>,
    /// Where workers ask, as `host:port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Service that workers ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ObjectRefStatus>,
}
