//! `spec.addons`: what is installed inside the tenant cluster.

use k8s_openapi::api::core::v1::{ResourceRequirements, SecurityContext, Toleration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Fixed address that node proxies answer, when none is given.
pub const DEFAULT_TCP_PROXY_ADDRESS: &str = "240.0.0.1";
/// Port of the konnectivity server for agents, when none is given.
pub const DEFAULT_KONNECTIVITY_PORT: i32 = 8132;

/// What is installed inside the tenant cluster. An addon that isn't named isn't installed, and one
/// that is no longer named is removed.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Addons {
    /// CoreDNS, the tenant cluster's name server.
    #[serde(default, rename = "coreDNS", skip_serializing_if = "Option::is_none")]
    pub core_dns: Option<ImageOverride>,
    /// kube-proxy on every node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_proxy: Option<ImageOverride>,
    /// Konnectivity, through which the API server reaches nodes and pods that it can't reach itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub konnectivity: Option<Konnectivity>,
    /// A proxy on every node, so that pods reach the API server as `kubernetes.default.svc` though it
    /// is behind a hostname.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_proxy: Option<TcpProxy>,
    /// Help for workers that don't join with kubeadm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_bootstrap: Option<WorkerBootstrap>,
}

/// Where an addon's image comes from.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageOverride {
    /// Repository without the image's own name, for example `registry.k8s.io/coredns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image_repository: Option<String>,
    /// Tag of the image. Without it, the one that belongs to the Kubernetes version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub image_tag: Option<String>,
}

/// Konnectivity: a server beside the API server and agents in the tenant cluster.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Konnectivity {
    /// The server, in the pod of the API server.
    #[serde(default)]
    pub server: KonnectivityServer,
    /// The agents, in the tenant cluster.
    #[serde(default)]
    pub agent: KonnectivityAgent,
}

/// The konnectivity server.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KonnectivityServer {
    /// Port of the Service under which agents reach the server when it isn't behind a shared
    /// hostname.
    #[serde(default = "default_konnectivity_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// Version of the image. Without it, the one that belongs to the Kubernetes version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub version: Option<String>,
    /// Image without tag.
    #[serde(default = "default_konnectivity_server_image")]
    #[schemars(length(min = 1, max = 512))]
    pub image: String,
    /// CPU and memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::embedded::Embedded<ResourceRequirements>>")]
    pub resources: Option<ResourceRequirements>,
    /// Arguments to add.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 4096)))]
    pub extra_args: Vec<String>,
    /// Security context of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::embedded::Embedded<SecurityContext>>")]
    pub security_context: Option<SecurityContext>,
}

impl Default for KonnectivityServer {
    fn default() -> Self {
        Self {
            port: default_konnectivity_port(),
            version: None,
            image: default_konnectivity_server_image(),
            resources: None,
            extra_args: Vec::new(),
            security_context: None,
        }
    }
}

/// The konnectivity agents.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KonnectivityAgent {
    /// Image without tag.
    #[serde(default = "default_konnectivity_agent_image")]
    #[schemars(length(min = 1, max = 512))]
    pub image: String,
    /// Version of the image. Without it, the one that belongs to the Kubernetes version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub version: Option<String>,
    /// Node taints that the agents tolerate. Without it, `CriticalAddonsOnly`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<crate::embedded::Embedded<Toleration>>>")]
    pub tolerations: Option<Vec<Toleration>>,
    /// Arguments to add, or to use instead of Steward's own where they name the same flag.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 4096)))]
    pub extra_args: Vec<String>,
    /// Use the nodes' network, so that agents don't wait for a pod network.
    #[serde(default)]
    pub host_network: bool,
    /// One agent per node (`DaemonSet`), or a fixed number (`Deployment`).
    #[serde(default)]
    pub mode: KonnectivityAgentMode,
    /// How many agents. Only with `Deployment`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000))]
    pub replicas: Option<i32>,
    /// CPU and memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::embedded::Embedded<ResourceRequirements>>")]
    pub resources: Option<ResourceRequirements>,
}

impl Default for KonnectivityAgent {
    fn default() -> Self {
        Self {
            image: default_konnectivity_agent_image(),
            version: None,
            tolerations: None,
            extra_args: Vec::new(),
            host_network: false,
            mode: KonnectivityAgentMode::default(),
            replicas: None,
            resources: None,
        }
    }
}

/// How agents run.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub enum KonnectivityAgentMode {
    /// One per node.
    #[default]
    DaemonSet,
    /// A fixed number.
    Deployment,
}

/// A proxy on the tenant's nodes through which pods reach the API server.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TcpProxy {
    /// `EndToEnd` carries the pod's own TLS untouched: client certificates and HTTP/2 work and no key
    /// leaves this cluster. `Terminate` opens TLS on the node, for front doors that must see
    /// plain TLS to a hostname; client certificates can't pass it.
    #[serde(default)]
    pub mode: TcpProxyMode,
    /// Address that every node's proxy answers, in `EndToEnd` mode. It must be free in the tenant's
    /// network: outside its pod, Service and node ranges.
    #[serde(default = "default_tcp_proxy_address")]
    #[schemars(length(min = 2, max = 45))]
    pub address: String,
    /// Image of the proxy, with tag. Without it, the one that belongs to the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// CPU and memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::embedded::Embedded<ResourceRequirements>>")]
    pub resources: Option<ResourceRequirements>,
    /// Addresses of names, for nodes whose name server doesn't know the tenant's hostname.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub host_aliases: Vec<HostAlias>,
    /// IP address, optionally with `:port`, that the proxy dials instead of what the tenant's
    /// hostname resolves to, for nodes that can't use the public address. The name stays the one
    /// that is verified and routed by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 53))]
    pub internal_endpoint: Option<String>,
}

impl Default for TcpProxy {
    fn default() -> Self {
        Self {
            mode: TcpProxyMode::default(),
            address: default_tcp_proxy_address(),
            image: None,
            resources: None,
            host_aliases: Vec::new(),
            internal_endpoint: None,
        }
    }
}

/// How pods' connections are carried.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
pub enum TcpProxyMode {
    /// The pod's own TLS, wrapped.
    #[default]
    EndToEnd,
    /// TLS opened on the node and made anew.
    Terminate,
}

/// An address and its names.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostAlias {
    /// IP address.
    #[schemars(length(min = 2, max = 45))]
    pub ip: String,
    /// Names that resolve to it.
    #[serde(default)]
    #[schemars(length(max = 32), inner(length(min = 1, max = 253)))]
    pub hostnames: Vec<String>,
}

/// Help for workers that don't join with kubeadm. Accepted so that manifests written for it apply;
/// not provided yet, which the condition `AddonsReady` says.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerBootstrap {
    /// What kind of workers.
    pub provider: WorkerBootstrapProvider,
    /// Settings for Talos workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub talos: Option<TalosBootstrap>,
    /// Approval of the kubelets' serving certificates.
    #[serde(
        default,
        rename = "csrApproval",
        skip_serializing_if = "Option::is_none"
    )]
    pub csr_approval: Option<CsrApproval>,
    /// Address ranges from which workers may ask.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 43)))]
    pub allowed_subnets: Vec<String>,
}

/// Kinds of workers.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkerBootstrapProvider {
    /// Talos Linux.
    #[default]
    Talos,
}

/// Settings for Talos workers.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TalosBootstrap {
    /// Image without tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// Tag of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub image_tag: Option<String>,
    /// Port that workers ask; 50001 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// CPU and memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::embedded::Embedded<ResourceRequirements>>")]
    pub resources: Option<ResourceRequirements>,
    /// Names and addresses to add to the certificate.
    #[serde(default, rename = "certSANs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    pub cert_sans: Vec<String>,
}

/// Approval of the kubelets' serving certificates.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CsrApproval {
    /// Approve without a person.
    #[serde(default = "yes")]
    pub auto_approve: bool,
}

fn default_konnectivity_port() -> i32 {
    DEFAULT_KONNECTIVITY_PORT
}

fn default_konnectivity_server_image() -> String {
    "registry.k8s.io/kas-network-proxy/proxy-server".into()
}

fn default_konnectivity_agent_image() -> String {
    "registry.k8s.io/kas-network-proxy/proxy-agent".into()
}

fn default_tcp_proxy_address() -> String {
    DEFAULT_TCP_PROXY_ADDRESS.into()
}

fn yes() -> bool {
    true
}
