//! The operator's configuration as the plan needs it: plain data from flags, the
//! same for all tenants.

use std::{str::FromStr, time::Duration};

use ipnet::IpNet;

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
    /// Whether pods get `NetworkPolicies` (`--network-policies`).
    pub network_policies: bool,
    /// What every control plane may reach (`--allowed-egress`).
    pub allowed_egress: Vec<Destination>,
    /// What a control plane never reaches by a rule that is wider (`--blocked-egress`).
    pub blocked_egress: Vec<IpNet>,
}

/// Addresses and TCP ports; every port without any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The addresses.
    pub range: IpNet,
    /// The ports.
    pub ports: Vec<u16>,
}

/// `203.0.113.0/24` or, with one port, `203.0.113.0/24:443`.
impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let advice = || {
            format!(
                "`{text}` is not an address range with an optional port: write for example \
                 `203.0.113.0/24` or `203.0.113.7/32:443`"
            )
        };
        let (address, rest) = text.split_once('/').ok_or_else(advice)?;
        let (length, port) = match rest.split_once(':') {
            Some((length, port)) => (length, Some(port)),
            None => (rest, None),
        };
        let range: IpNet = format!("{address}/{length}")
            .parse()
            .map_err(|_| advice())?;
        let port = port.map(str::parse::<u16>).transpose();
        let port = port.map_err(|_| advice())?;
        if range.trunc() != range || port == Some(0) {
            return Err(advice());
        }
        Ok(Self {
            range,
            ports: port.into_iter().collect(),
        })
    }
}

/// Link-local addresses: what a cloud tells about the machine, credentials included.
pub fn link_local() -> Vec<IpNet> {
    let ranges = ["169.254.0.0/16", "fe80::/10"];
    ranges
        .iter()
        .filter_map(|range| range.parse().ok())
        .collect()
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
            network_policies: true,
            allowed_egress: Vec::new(),
            blocked_egress: link_local(),
        }
    }
}
