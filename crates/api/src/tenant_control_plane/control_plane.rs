//! `spec.controlPlane`: the Deployment and the Service of a tenant.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::DeploymentStrategy;
use k8s_openapi::api::core::v1::{
    Affinity, Container, PodSecurityContext, ResourceRequirements, SecurityContext, Toleration,
    TopologySpreadConstraint, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AccessSpec, EgressSpec, GatewaySpec, IngressSpec, Probes};
use crate::metadata::AdditionalMetadata;

/// How the control plane runs and how it is reached.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlane {
    /// The pods of the control plane.
    #[serde(default)]
    pub deployment: DeploymentSpec,
    /// The Service in front of the pods.
    pub service: ServiceSpec,
    /// Reach the API server through an Ingress controller, by hostname, together with other tenants
    /// behind one address. Excludes `gateway`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<IngressSpec>,
    /// Reach the API server through a Gateway, by hostname, together with other tenants behind one
    /// address. Excludes `ingress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<GatewaySpec>,
    /// Who may connect and how much, also behind a shared address. Enforced in the tenant's pod, so
    /// it works with every front door that keeps the client's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<AccessSpec>,
    /// Where connections that the control plane opens may go. Without it, into the tenant's own
    /// network through `addons.konnectivity`, or nowhere. `Direct` and `allow` lead into the network
    /// of this cluster and need the permission to `use` the resource `egress` of the group
    /// `steward.butlerlabs.dev` in the tenant's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<EgressSpec>,
}

/// The pods of the control plane.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentSpec {
    /// Where the images of the Kubernetes components come from.
    #[serde(default)]
    pub registry_settings: RegistrySettings,
    /// How many pods. With 0 the control plane sleeps: nothing runs and everything is kept.
    #[serde(default = "two")]
    #[schemars(range(min = 0, max = 100))]
    pub replicas: i32,
    /// Labels of the nodes on which the pods may run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// `RuntimeClass` of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub runtime_class_name: Option<String>,
    /// Node taints that the pods tolerate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<crate::embedded::Embedded<Toleration>>")]
    pub tolerations: Vec<Toleration>,
    /// Node and pod affinity of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::embedded::Embedded<Affinity>>")]
    pub affinity: Option<Affinity>,
    /// How the pods are spread over nodes and zones. A constraint without `labelSelector` counts the
    /// pods of this tenant. Without any, the pods are spread over nodes where possible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<crate::embedded::Embedded<TopologySpreadConstraint>>")]
    pub topology_spread_constraints: Vec<TopologySpreadConstraint>,
    /// How pods are replaced. Without it, new pods are all started before old ones stop
    /// (`RollingUpdate` with maxUnavailable 0 and maxSurge 100%).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::embedded::Embedded<DeploymentStrategy>>")]
    pub strategy: Option<DeploymentStrategy>,
    /// CPU and memory of each container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ComponentResources>,
    /// Arguments to add to the components. Where Steward must set a flag itself, its own value wins
    /// and a condition says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_args: Option<ComponentExtraArgs>,
    /// Labels and annotations to add to the Deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_metadata: Option<AdditionalMetadata>,
    /// Labels and annotations to add to the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_additional_metadata: Option<AdditionalMetadata>,
    /// Init containers to add, run before the control plane starts. Their names must differ from
    /// Steward's own containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[schemars(with = "Vec<crate::embedded::Embedded<Container>>")]
    pub additional_init_containers: Vec<Container>,
    /// Containers to add to the pods. Their names must differ from Steward's own containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[schemars(with = "Vec<crate::embedded::Embedded<Container>>")]
    pub additional_containers: Vec<Container>,
    /// Volumes to add to the pods, for additional containers and mounts. Their names must differ
    /// from Steward's own volumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[schemars(with = "Vec<crate::embedded::Embedded<Volume>>")]
    pub additional_volumes: Vec<Volume>,
    /// Mounts to add to Steward's own containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_volume_mounts: Option<AdditionalVolumeMounts>,
    /// `ServiceAccount` of the pods.
    #[serde(default = "default_service_account")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: String,
    /// Whether the pods get a token of their service account. They need none themselves, so without
    /// this field they get none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automount_service_account_token: Option<bool>,
    /// How patient the probes of the components are. Without it, a slow start is given five minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<Probes>,
    /// Security context of the pods. Without it, one that the `restricted` Pod Security Standard
    /// accepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::embedded::Embedded<PodSecurityContext>>")]
    pub pod_security_context: Option<PodSecurityContext>,
    /// Security contexts of Steward's own containers. Without them, ones that the `restricted` Pod
    /// Security Standard accepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_security_contexts: Option<ContainerSecurityContexts>,
}

impl Default for DeploymentSpec {
    fn default() -> Self {
        Self {
            registry_settings: RegistrySettings::default(),
            replicas: two(),
            node_selector: BTreeMap::new(),
            runtime_class_name: None,
            tolerations: Vec::new(),
            affinity: None,
            topology_spread_constraints: Vec::new(),
            strategy: None,
            resources: None,
            extra_args: None,
            additional_metadata: None,
            pod_additional_metadata: None,
            additional_init_containers: Vec::new(),
            additional_containers: Vec::new(),
            additional_volumes: Vec::new(),
            additional_volume_mounts: None,
            service_account_name: default_service_account(),
            automount_service_account_token: None,
            probes: None,
            pod_security_context: None,
            container_security_contexts: None,
        }
    }
}

/// Where the images of the Kubernetes components come from: `registry/image:version+tagSuffix`.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RegistrySettings {
    /// Registry, and path in it, of the images.
    #[serde(default = "default_registry")]
    #[schemars(length(min = 1, max = 512))]
    pub registry: String,
    /// Text to append to the version in the image tag, for registries that tag their own builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub tag_suffix: Option<String>,
    /// Image name of kube-apiserver.
    #[serde(default = "default_api_server_image")]
    #[schemars(length(min = 1, max = 255))]
    pub api_server_image: String,
    /// Image name of kube-controller-manager.
    #[serde(default = "default_controller_manager_image")]
    #[schemars(length(min = 1, max = 255))]
    pub controller_manager_image: String,
    /// Image name of kube-scheduler.
    #[serde(default = "default_scheduler_image")]
    #[schemars(length(min = 1, max = 255))]
    pub scheduler_image: String,
}

impl Default for RegistrySettings {
    fn default() -> Self {
        Self {
            registry: default_registry(),
            tag_suffix: None,
            api_server_image: default_api_server_image(),
            controller_manager_image: default_controller_manager_image(),
            scheduler_image: default_scheduler_image(),
        }
    }
}

/// CPU and memory of the containers.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ComponentResources {
    /// Of kube-apiserver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::embedded::Embedded<ResourceRequirements>>")]
    pub api_server: Option<ResourceRequirements>,
    /// Of kube-controller-manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::embedded::Embedded<ResourceRequirements>>")]
    pub controller_manager: Option<ResourceRequirements>,
    /// Of kube-scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::embedded::Embedded<ResourceRequirements>>")]
    pub scheduler: Option<ResourceRequirements>,
    /// Of kine, which is there only with a datastore other than etcd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::embedded::Embedded<ResourceRequirements>>")]
    pub kine: Option<ResourceRequirements>,
}

/// Arguments to add to the components, as `--flag=value`, in this order.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ComponentExtraArgs {
    /// To kube-apiserver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), inner(length(max = 4096)))]
    pub api_server: Vec<String>,
    /// To kube-controller-manager.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), inner(length(max = 4096)))]
    pub controller_manager: Vec<String>,
    /// To kube-scheduler.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), inner(length(max = 4096)))]
    pub scheduler: Vec<String>,
    /// To kine, which is there only with a datastore other than etcd.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), inner(length(max = 4096)))]
    pub kine: Vec<String>,
}

/// Mounts to add to Steward's own containers.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdditionalVolumeMounts {
    /// To kube-apiserver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[schemars(with = "Vec<crate::embedded::Embedded<VolumeMount>>")]
    pub api_server: Vec<VolumeMount>,
    /// To kube-controller-manager.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[schemars(with = "Vec<crate::embedded::Embedded<VolumeMount>>")]
    pub controller_manager: Vec<VolumeMount>,
    /// To kube-scheduler.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[schemars(with = "Vec<crate::embedded::Embedded<VolumeMount>>")]
    pub scheduler: Vec<VolumeMount>,
}

/// Security contexts of Steward's own containers.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerSecurityContexts {
    /// Of kube-apiserver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::embedded::Embedded<SecurityContext>>")]
    pub api_server: Option<SecurityContext>,
    /// Of kube-controller-manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::embedded::Embedded<SecurityContext>>")]
    pub controller_manager: Option<SecurityContext>,
    /// Of kube-scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::embedded::Embedded<SecurityContext>>")]
    pub scheduler: Option<SecurityContext>,
}

/// The Service in front of the pods.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceSpec {
    /// Labels and annotations to add to the Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_metadata: Option<AdditionalMetadata>,
    /// Ports to add to the Service, for additional containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub additional_ports: Vec<AdditionalPort>,
    /// Type of the Service: `LoadBalancer` for an address of the tenant's own, `NodePort` to use the
    /// nodes' addresses, `ClusterIP` behind an Ingress or a Gateway or for use in this cluster only.
    pub service_type: ServiceType,
    /// Whether a `LoadBalancer` Service also gets node ports. Only with `LoadBalancer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocate_load_balancer_node_ports: Option<bool>,
}

/// Type of the Service.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub enum ServiceType {
    /// An address of this cluster only.
    #[default]
    ClusterIP,
    /// The addresses of this cluster's nodes.
    NodePort,
    /// An address of the tenant's own.
    LoadBalancer,
}

/// A port to add to the Service.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdditionalPort {
    /// Name of the port. `kube-apiserver` and `konnectivity-server` are taken.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Transport protocol.
    #[serde(default)]
    pub protocol: PortProtocol,
    /// Application protocol, as a hint to implementations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub app_protocol: Option<String>,
    /// Port of the Service.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// Port of the container, by number or by name.
    pub target_port: IntOrString,
}

/// Transport protocol of a port.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum PortProtocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

fn two() -> i32 {
    2
}

fn default_service_account() -> String {
    "default".into()
}

fn default_registry() -> String {
    "registry.k8s.io".into()
}

fn default_api_server_image() -> String {
    "kube-apiserver".into()
}

fn default_controller_manager_image() -> String {
    "kube-controller-manager".into()
}

fn default_scheduler_image() -> String {
    "kube-scheduler".into()
}
