//! Ways to reach a tenant behind a shared address, and limits on who may.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metadata::AdditionalMetadata;

/// Reach the API server through an Ingress controller, by hostname.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IngressSpec {
    /// Labels and annotations to add to the objects that route to the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_metadata: Option<AdditionalMetadata>,
    /// `IngressClass` of the controller that routes to the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub ingress_class_name: Option<String>,
    /// Name under which clients and nodes reach the API server, for example
    /// `tenant-01.k8s.example.com`, with `:port` when it isn't 443. Without it the name is made from
    /// the domain: `<namespace>-<name>.k8s.<domain>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 259))]
    pub hostname: Option<String>,
    /// Domain from which names are made that aren't given: `<namespace>-<name>.k8s.<domain>` and
    /// `<namespace>-<name>.konnectivity.<domain>`. The annotation
    /// `steward.butlerlabs.dev/ingress.domain` does the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 190))]
    pub domain: Option<String>,
    /// Name under which konnectivity agents connect when it is to differ from `hostname`. Without it
    /// one name serves both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub konnectivity_hostname: Option<String>,
    /// Port under which the Ingress controller is reached from outside. 443 unless `hostname` names
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// Which Ingress controller it is, so that the right objects and annotations are made:
    /// `traefik` (IngressRouteTCP), `haproxy` (HAProxy Technologies), `haproxy-ingress` (community),
    /// `nginx`, `steward` (Steward's own gateway), or `generic`, which adds nothing: put what your
    /// controller needs in `additionalMetadata`.
    #[serde(default)]
    pub controller_type: IngressControllerType,
    /// Whether Steward makes the routing objects. With `false` a condition says what to route where,
    /// for front doors that are configured by other means.
    #[serde(default = "yes")]
    pub deploy: bool,
    /// Traefik entry points that the routes use. Only with `traefik`; `websecure` without it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(min = 1, max = 63)))]
    pub entry_points: Vec<String>,
}

impl Default for IngressSpec {
    fn default() -> Self {
        Self {
            additional_metadata: None,
            ingress_class_name: None,
            hostname: None,
            domain: None,
            konnectivity_hostname: None,
            port: None,
            controller_type: IngressControllerType::default(),
            deploy: yes(),
            entry_points: Vec::new(),
        }
    }
}

/// Which Ingress controller routes to the tenant.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IngressControllerType {
    /// Traefik, by `IngressRouteTCP`.
    Traefik,
    /// HAProxy Technologies' controller, by annotation `haproxy.org/ssl-passthrough`.
    Haproxy,
    /// The community's haproxy-ingress, by annotation `haproxy-ingress.github.io/ssl-passthrough`.
    HaproxyIngress,
    /// ingress-nginx and those that read its annotations.
    Nginx,
    /// Any other, configured through `additionalMetadata`.
    #[default]
    Generic,
    /// Steward's own gateway.
    Steward,
}

/// Reach the API server through a Gateway, by hostname.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GatewaySpec {
    /// Labels and annotations to add to the routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_metadata: Option<AdditionalMetadata>,
    /// Gateways to attach the tenant's routes to. Their listener must be `protocol: TLS` with
    /// `tls.mode: Passthrough`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub parent_refs: Vec<GatewayParentRef>,
    /// Name under which clients and nodes reach the API server. Without it the name is made from the
    /// domain: `<namespace>-<name>.k8s.<domain>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 259))]
    pub hostname: Option<String>,
    /// Domain from which names are made that aren't given: `<namespace>-<name>.k8s.<domain>` and
    /// `<namespace>-<name>.konnectivity.<domain>`. The annotation
    /// `steward.butlerlabs.dev/ingress.domain` does the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 190))]
    pub domain: Option<String>,
    /// Name under which konnectivity agents connect when it is to differ from `hostname`. Without it
    /// one name serves both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub konnectivity_hostname: Option<String>,
    /// Port under which the Gateway is reached from outside. Without it, the one `hostname` names,
    /// or else the port of the listener the route is attached to, or else 443.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
}

/// A Gateway, or one of its listeners.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GatewayParentRef {
    /// API group of the parent; `gateway.networking.k8s.io` without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub group: Option<String>,
    /// Kind of the parent; `Gateway` without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub kind: Option<String>,
    /// Namespace of the parent; the tenant's without it. Another namespace's listener must allow
    /// routes from this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
    /// Name of the parent.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Listener to attach to. Without it, every listener that accepts the route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub section_name: Option<String>,
    /// Port of the listeners to attach to. Without it, every port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
}

/// Who may connect to the API server, and how much.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AccessSpec {
    /// Address ranges from which connections are accepted, for example `203.0.113.0/24`. Without it,
    /// all. Remember the tenant's nodes, and the way they leave their network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 43)))]
    pub allowed_source_ranges: Vec<String>,
    /// How many connections each pod of the control plane accepts at a time. Without it, no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_connections: Option<i32>,
    /// How many new connections each pod of the control plane accepts per second. Without it, no
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub max_handshakes_per_second: Option<i32>,
}

fn yes() -> bool {
    true
}
