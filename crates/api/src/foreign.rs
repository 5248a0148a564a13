//! Kinds of other projects that we write or read: only the fields we use.
//!
//! Gateway API has its own crate; it is passed on here so that all crates use one version of it.
//! `TLSRoute` is `v1` there. Where a cluster serves only `v1alpha2`, the same content is written
//! under [`TLS_ROUTE_V1ALPHA2`] as a dynamic object.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use gateway_api::apis::standard as gateway;

/// Group of the Gateway API.
pub const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";

/// The older version of `TLSRoute`, with the same fields as `v1`.
pub const TLS_ROUTE_V1ALPHA2: &str = "gateway.networking.k8s.io/v1alpha2";

/// Group of Traefik's kinds.
pub const TRAEFIK_GROUP: &str = "traefik.io";

/// Traefik's route of TCP connections by TLS server name.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "traefik.io",
    version = "v1alpha1",
    kind = "IngressRouteTCP",
    plural = "ingressroutetcps",
    namespaced,
    derive = "Default",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct IngressRouteTCPSpec {
    /// Entry points that the routes use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entry_points: Vec<String>,
    /// The routes.
    pub routes: Vec<TcpRoute>,
    /// What happens to TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TcpTls>,
}

/// A route.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TcpRoute {
    /// Rule, such as ``HostSNI(`tenant-01.k8s.example.com`)``.
    #[serde(rename = "match")]
    pub match_: String,
    /// Rank among routes that match; higher wins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// Where connections go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<TcpRouteService>,
}

/// A Service that takes connections.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TcpRouteService {
    /// Name of the Service.
    pub name: String,
    /// Its namespace; the route's without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its port.
    pub port: IntOrString,
}

/// What happens to TLS.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TcpTls {
    /// Leave it untouched.
    #[serde(default)]
    pub passthrough: bool,
}
