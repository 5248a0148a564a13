//! `spec.networkProfile`: addresses, ports and address ranges.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Service range of a tenant that names none.
pub const DEFAULT_SERVICE_CIDR: &str = "10.96.0.0/16";
/// Pod range of a tenant that names none.
pub const DEFAULT_POD_CIDR: &str = "10.244.0.0/16";
/// DNS domain of a tenant that names none.
pub const DEFAULT_CLUSTER_DOMAIN: &str = "cluster.local";
/// Port of the API server of a tenant that names none.
pub const DEFAULT_PORT: i32 = 6443;

/// Addresses, ports and address ranges of the tenant cluster.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkProfile {
    /// Address under which the API server is reached: an IP address or a hostname. Without it, the
    /// address the Service gets, or the hostname of the Ingress or Gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub address: Option<String>,
    /// IP address that the API server announces inside the tenant cluster when clients there must
    /// use another one than `address`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 45))]
    pub advertise_address: Option<String>,
    /// Port of the Service, and of the node for `NodePort`. Inside the pod the API server listens on
    /// an unprivileged port whatever this says.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// Names and addresses to add to the API server's certificate. Those that Steward knows of
    /// (`address`, hostnames, Service names) are in it anyway.
    #[serde(default, rename = "certSANs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    pub cert_sans: Vec<String>,
    /// Range of the tenant's Service addresses; `10.96.0.0/16` without it. Use `serviceCidrs` for
    /// two address families. It can't be changed later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 43))]
    pub service_cidr: Option<String>,
    /// Ranges of the tenant's Service addresses, one or one per address family; the first is the
    /// primary family.
    #[serde(
        default,
        rename = "serviceCidrs",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(length(max = 2), inner(length(min = 1, max = 43)))]
    pub service_cidrs: Vec<String>,
    /// Range of the tenant's pod addresses; `10.244.0.0/16` without it. Use `podCidrs` for two
    /// address families. It can't be changed later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 43))]
    pub pod_cidr: Option<String>,
    /// Ranges of the tenant's pod addresses, one or one per address family; the first is the primary
    /// family.
    #[serde(default, rename = "podCidrs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2), inner(length(min = 1, max = 43)))]
    pub pod_cidrs: Vec<String>,
    /// Addresses of the tenant's DNS Service, inside the Service range. Without it, the tenth address
    /// of each Service range (the sixteenth for IPv6).
    #[serde(
        default,
        rename = "dnsServiceIPs",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(length(max = 8), inner(length(min = 2, max = 45)))]
    pub dns_service_ips: Vec<String>,
    /// DNS domain of the tenant cluster. It can't be changed later.
    #[serde(default = "default_cluster_domain")]
    #[schemars(length(min = 3, max = 190))]
    pub cluster_domain: String,
    /// Put `address` in the Service's external IPs too, for networks where that routes it.
    #[serde(default, rename = "allowAddressAsExternalIP")]
    pub allow_address_as_external_ip: bool,
    /// Address ranges that the load balancer lets in. Only with `LoadBalancer`; see
    /// `controlPlane.access` for a limit that works behind a shared address too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 43)))]
    pub load_balancer_source_ranges: Vec<String>,
    /// Which load balancer implementation serves the Service. Only with `LoadBalancer`, and it can't
    /// be changed later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub load_balancer_class: Option<String>,
}

impl Default for NetworkProfile {
    fn default() -> Self {
        Self {
            address: None,
            advertise_address: None,
            port: default_port(),
            cert_sans: Vec::new(),
            service_cidr: None,
            service_cidrs: Vec::new(),
            pod_cidr: None,
            pod_cidrs: Vec::new(),
            dns_service_ips: Vec::new(),
            cluster_domain: default_cluster_domain(),
            allow_address_as_external_ip: false,
            load_balancer_source_ranges: Vec::new(),
            load_balancer_class: None,
        }
    }
}

impl NetworkProfile {
    /// The Service ranges in effect, in the user's order: never empty.
    pub fn effective_service_cidrs(&self) -> Vec<&str> {
        effective(
            &self.service_cidrs,
            self.service_cidr.as_deref(),
            DEFAULT_SERVICE_CIDR,
        )
    }

    /// The pod ranges in effect, in the user's order: never empty.
    pub fn effective_pod_cidrs(&self) -> Vec<&str> {
        effective(&self.pod_cidrs, self.pod_cidr.as_deref(), DEFAULT_POD_CIDR)
    }
}

fn effective<'a>(many: &'a [String], one: Option<&'a str>, default: &'a str) -> Vec<&'a str> {
    if many.is_empty() {
        vec![one.unwrap_or(default)]
    } else {
        many.iter().map(String::as_str).collect()
    }
}

fn default_port() -> i32 {
    DEFAULT_PORT
}

fn default_cluster_domain() -> String {
    DEFAULT_CLUSTER_DOMAIN.into()
}
