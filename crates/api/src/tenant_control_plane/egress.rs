//! `spec.controlPlane.egress`: where connections that a control plane opens may go.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where connections that the control plane opens may go.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EgressSpec {
    /// Calls of the API server to kubelets, pods and Services of the tenant: `kubectl logs` and
    /// `exec`, proxies, webhooks that name a Service, aggregated APIs. Without it, `Tunnel` with
    /// `addons.konnectivity`, and `Closed` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "EgressPath")]
    pub cluster: Option<EgressPath>,
    /// Calls of the API server to URLs: webhooks for admission and conversion that name a URL, and
    /// webhooks for audit, authentication and authorization. Without it, `Tunnel` with
    /// `addons.konnectivity`, and `Closed` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "EgressPath")]
    pub control_plane: Option<EgressPath>,
    /// Addresses that the control plane's pods may reach besides their datastore and DNS, for
    /// example an OIDC issuer. Enforced where the cluster's network enforces `NetworkPolicies`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub allow: Vec<EgressDestination>,
}

/// How a kind of calls leaves the API server.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub enum EgressPath {
    /// Through konnectivity into the tenant's own network. Needs `addons.konnectivity`.
    Tunnel,
    /// Straight from the pod into the network of this cluster.
    Direct,
    /// Nowhere: such calls fail at once.
    Closed,
}

/// Addresses and ports that may be reached.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EgressDestination {
    /// Address range, for example `203.0.113.7/32`.
    #[schemars(length(min = 1, max = 64))]
    pub cidr: String,
    /// TCP ports. Every port without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(range(min = 1, max = 65535)))]
    pub ports: Vec<i32>,
}

/// Where connections that the control plane opens go now.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EgressStatus {
    /// Calls to kubelets, pods and Services of the tenant.
    pub cluster: EgressPath,
    /// Calls to URLs.
    pub control_plane: EgressPath,
    /// Whether they go where they went before Steward confined them. Setting
    /// `spec.controlPlane.egress` ends this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
}
