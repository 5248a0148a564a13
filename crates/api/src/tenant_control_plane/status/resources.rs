//! `status.kubernetesResources`: the objects that run and expose the control plane.

use k8s_openapi::api::core::v1::LoadBalancerStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tenant_control_plane::GatewayParentRef;

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
    pub parent_ref: GatewayParentRef,
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
