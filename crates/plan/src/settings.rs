//! The operator's configuration as the plan needs it: plain data from flags, the
//! same for all tenants.

use std::time::Duration;

/// What holds for every tenant unless the tenant says otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The `DataStore` of a tenant that names none (`--datastore`).
    pub default_datastore: String,
    /// Namespace of the operator, where managed `DataStores` live.
    pub namespace: String,
    /// DNS domain of the management cluster: Services are `<name>.<ns>.svc.<domain>`.
    pub cluster_domain: String,
    /// Registry and image of the gate sidecar.
    pub gate_image: String,
    /// Image of the proxy on the tenant's nodes, unless `addons.tcpProxy.image` is set.
    pub tcp_proxy_image: String,
    /// Image of a managed `DataStore`'s etcd.
    pub etcd_image: String,
    /// How long a new authority is valid.
    pub ca_lifetime: Duration,
    /// How long a new certificate is valid.
    pub certificate_lifetime: Duration,
    /// How long before its end a certificate is renewed
    /// (`--certificate-expiration-deadline`); a third of its life without it.
    pub renew_before: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        const DAY: Duration = Duration::from_hours(24);
        Self {
            default_datastore: "default".into(),
            namespace: "steward-system".into(),
            cluster_domain: "cluster.local".into(),
            gate_image: "ghcr.io/butlerdotdev/steward-gate:v0.1.0".into(),
            tcp_proxy_image: "ghcr.io/butlerdotdev/steward-tcp-proxy:v0.1.0".into(),
            etcd_image: "quay.io/coreos/etcd:v3.6.16".into(),
            ca_lifetime: 3650 * DAY,
            certificate_lifetime: 365 * DAY,
            renew_before: None,
        }
    }
}
