//! `status` of a `TenantControlPlane`: what was made, where it is, and what is waited for.

use k8s_openapi::api::core::v1::LoadBalancerStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// Objects that run and expose the control plane.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesResourcesStatus {
    /// Kubernetes version that runs, and the state of the control plane in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionStatus>,
    /// The Deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<DeploymentResourceStatus>,
    /// The Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceResourceStatus>,
    /// The Ingress, or what stands for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<IngressResourceStatus>,
    /// The route of the Gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<GatewayResourceStatus>,
}

/// Kubernetes version and state.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionStatus {
    /// Kubernetes version that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// State of the control plane in one word.
    #[serde(default)]
    pub status: TenantState,
}

/// State of a control plane in one word; the conditions have the whole story.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
pub enum TenantState {
    /// Not known.
    Unknown,
    /// Being made.
    #[default]
    Provisioning,
    /// Its CA is being replaced.
    CertificateAuthorityRotating,
    /// On the way to another version.
    Upgrading,
    /// On the way to another datastore.
    Migrating,
    /// Serving.
    Ready,
    /// Not serving.
    NotReady,
    /// Scaled to zero.
    Sleeping,
    /// Serving, but refusing some writes.
    WriteLimited,
}

impl TenantState {
    /// As it is written in the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::Provisioning => "Provisioning",
            Self::CertificateAuthorityRotating => "CertificateAuthorityRotating",
            Self::Upgrading => "Upgrading",
            Self::Migrating => "Migrating",
            Self::Ready => "Ready",
            Self::NotReady => "NotReady",
            Self::Sleeping => "Sleeping",
            Self::WriteLimited => "WriteLimited",
        }
    }
}

/// The Deployment of a tenant.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentResourceStatus {
    /// Name of the Deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace of the Deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Selector of the pods, as text, for autoscalers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// Pods in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Pods of the newest kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_replicas: Option<i32>,
    /// Pods that are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Pods that have been ready for long enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// Pods that are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable_replicas: Option<i32>,
    /// Generation of the Deployment that its controller has seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When it was last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update: Option<Time>,
}

/// The Service of a tenant.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceResourceStatus {
    /// Name of the Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace of the Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Port of the API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
    /// What the load balancer gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::embedded::Embedded<LoadBalancerStatus>>")]
    pub load_balancer: Option<LoadBalancerStatus>,
}

/// The Ingress of a tenant, or what stands for it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IngressResourceStatus {
    /// Name of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What its load balancer gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::embedded::Embedded<LoadBalancerStatus>>")]
    pub load_balancer: Option<LoadBalancerStatus>,
}

/// The route of a tenant's Gateway.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GatewayResourceStatus {
    /// The route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_ref: Option<LocalRef>,
    /// What each parent says about the route.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<RouteParentStatus>,
    /// Addresses under which the tenant is reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub access_points: Vec<AccessPoint>,
}

/// An object in the tenant's namespace.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LocalRef {
    /// Name of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What a parent says about a route.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteParentStatus {
    /// The parent.
    pub parent_ref: super::GatewayParentRef,
    /// Controller that wrote the conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller_name: Option<String>,
    /// Conditions of the route at this parent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<crate::embedded::Embedded<Condition>>")]
    pub conditions: Vec<Condition>,
}

/// An address under which a tenant is reached through a Gateway.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AccessPoint {
    /// `IPAddress` or `Hostname`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// The address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
    /// The same as URLs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<String>,
}

/// Configuration for kubeadm.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeadmConfigStatus {
    /// Name of the ConfigMap, in the tenant's namespace.
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
    /// ConfigMap that sends the API server's calls through konnectivity.
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
    pub mode: Option<super::KonnectivityAgentMode>,
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
    pub mode: Option<super::TcpProxyMode>,
    /// Address that the `kubernetes` Service of the tenant leads to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// DaemonSet of the `EndToEnd` mode.
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
    pub provider: Option<super::WorkerBootstrapProvider>,
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
