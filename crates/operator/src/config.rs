//! The operator's configuration: one struct, every flag documented.
//!
//! Owns: names, defaults and parsing of flags. Flag names are those that people who ran the
//! original know. Refuses: reading files, talking to anything, deciding anything.

use std::{
    net::{IpAddr, Ipv6Addr, SocketAddr},
    str::FromStr,
    time::Duration,
};

use clap::{ArgAction, Args, Parser, ValueEnum};
use ipnet::IpNet;
use steward_plan::{Destination, Settings};

use crate::lease::fence::SHORTEST;

/// Where the operator finds a tenant's API server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TenantAccess {
    /// Dial the `ClusterIP` of the tenant's Service (needs no cluster DNS).
    #[default]
    ClusterIp,
    /// Dial `<name>.<namespace>.svc`, resolved by DNS.
    Dns,
    /// Dial what tenants' users dial: `status.controlPlaneEndpoint`.
    Endpoint,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One readable line per event.
    #[default]
    Text,
    /// One JSON object per event.
    Json,
}

/// Runs Kubernetes control planes as pods of this cluster.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "steward-operator",
    version,
    about,
    max_term_width = 110,
    args_override_self = true
)]
pub struct Config {
    /// Address of /metrics, `host:port` or `:port`; `0` turns it off.
    #[arg(
        long,
        env = "STEWARD_METRICS_BIND_ADDRESS",
        default_value = ":8080",
        value_name = "ADDR"
    )]
    pub metrics_bind_address: Bind,

    /// Address of /livez and /readyz, `host:port` or `:port`; `0` turns them off.
    #[arg(
        long,
        env = "STEWARD_HEALTH_PROBE_BIND_ADDRESS",
        default_value = ":8081",
        value_name = "ADDR"
    )]
    pub health_probe_bind_address: Bind,

    /// Let only one of several replicas write, chosen through a Lease.
    #[arg(long, env = "STEWARD_LEADER_ELECT", default_value_t = true, action = ArgAction::Set,
          num_args = 0..=1, default_missing_value = "true", require_equals = true, value_name = "BOOL")]
    pub leader_elect: bool,

    /// Name of that Lease.
    #[arg(long, default_value = "steward.butlerlabs.dev", value_name = "NAME")]
    pub leader_election_id: String,

    /// How long a silent leader keeps the Lease, in whole seconds.
    #[arg(long, default_value = "15s", value_parser = duration, value_name = "DURATION")]
    pub leader_election_lease_duration: Duration,

    /// `DataStore` of tenants that name none.
    #[arg(
        long,
        env = "STEWARD_DATASTORE",
        default_value = "default",
        value_name = "NAME"
    )]
    pub datastore: String,

    /// Defragment members of managed datastores whose file is at least this large and half empty;
    /// `0` is never.
    #[arg(long, default_value = "100Mi", value_parser = bytes, value_name = "SIZE")]
    pub defragment_above: u64,

    /// How many tenants are worked on at the same time.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256), value_name = "N")]
    pub max_concurrent_tcp_reconciles: u16,

    /// Time one reconcile may take before it is given up and tried again.
    #[arg(long, default_value = "30s", value_parser = duration, value_name = "DURATION")]
    pub controller_reconcile_timeout: Duration,

    /// Renew certificates this long before they expire; without it, after two thirds of their life.
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub certificate_expiration_deadline: Option<Duration>,

    /// Look at every object at least this often, even when nothing happened.
    #[arg(long, default_value = "10h", value_parser = duration, value_name = "DURATION")]
    pub cache_resync_period: Duration,

    /// Namespace the operator runs in: its Lease and managed datastores live here.
    #[arg(
        long,
        env = "POD_NAMESPACE",
        default_value = "steward-system",
        value_name = "NAMESPACE"
    )]
    pub pod_namespace: String,

    /// Name of this replica in the Lease and in events; the host's name if empty.
    #[arg(
        long,
        env = "POD_NAME",
        default_value = "",
        hide_default_value = true,
        value_name = "NAME"
    )]
    pub pod_name: String,

    /// DNS domain of this cluster's Services.
    #[arg(long, default_value = "cluster.local", value_name = "DOMAIN")]
    pub cluster_domain: String,

    /// How long new certificates are valid.
    #[arg(long, default_value = "8760h", value_parser = duration, value_name = "DURATION")]
    pub certificate_lifetime: Duration,

    /// How long new certificate authorities are valid.
    #[arg(long, default_value = "87600h", value_parser = duration, value_name = "DURATION")]
    pub ca_lifetime: Duration,

    /// How to reach tenants' API servers from here.
    #[arg(long, value_enum, default_value_t, value_name = "WAY")]
    pub tenant_access: TenantAccess,

    /// What tenants' pods may reach.
    #[command(flatten)]
    pub network: NetworkPolicies,

    /// Images of what the operator runs.
    #[command(flatten)]
    pub images: Images,

    /// How log lines are written.
    #[arg(
        long,
        env = "STEWARD_LOG_FORMAT",
        value_enum,
        default_value_t,
        value_name = "FORMAT"
    )]
    pub log_format: LogFormat,

    /// What is logged: a level or a filter such as `info,steward_operator=debug`.
    #[arg(
        long,
        env = "STEWARD_LOG",
        default_value = "info,kube_client=error",
        value_name = "FILTER"
    )]
    pub log: String,
}

/// What tenants' pods may reach, said to the network of this cluster.
#[derive(Clone, Debug, Args)]
pub struct NetworkPolicies {
    /// Make `NetworkPolicies` for the pods of tenants and managed datastores. Without them, make your own.
    #[arg(long, env = "STEWARD_NETWORK_POLICIES", default_value_t = true, action = ArgAction::Set,
          num_args = 0..=1, default_missing_value = "true", require_equals = true, value_name = "BOOL")]
    pub network_policies: bool,

    /// Addresses that every control plane may reach, such as `203.0.113.7/32:443`, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "CIDR[:PORT]")]
    pub allowed_egress: Vec<Destination>,

    /// Addresses that no wider rule opens to control planes, separated by commas.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "169.254.0.0/16,fe80::/10",
        value_parser = range,
        value_name = "CIDR"
    )]
    pub blocked_egress: Vec<IpNet>,
}

/// Images of what the operator runs; tenants' own components come from their spec.
#[derive(Clone, Debug, Args)]
pub struct Images {
    /// Sidecar in front of a tenant's API server.
    #[arg(
        long,
        env = "STEWARD_GATE_IMAGE",
        default_value = "ghcr.io/butlerdotdev/steward-gate:v0.1.0",
        value_name = "IMAGE"
    )]
    pub gate_image: String,

    /// Proxy on tenants' nodes.
    #[arg(
        long,
        env = "STEWARD_TCP_PROXY_IMAGE",
        default_value = "ghcr.io/butlerdotdev/steward-tcp-proxy:v0.1.0",
        value_name = "IMAGE"
    )]
    pub tcp_proxy_image: String,

    /// etcd of managed `DataStore`s.
    #[arg(
        long,
        env = "STEWARD_ETCD_IMAGE",
        default_value = "quay.io/coreos/etcd:v3.6.16",
        value_name = "IMAGE"
    )]
    pub etcd_image: String,
}

/// An address to listen on, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bind(pub Option<SocketAddr>);

impl FromStr for Bind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "0" || text.is_empty() {
            return Ok(Self(None));
        }
        let parsed = match text.strip_prefix(':') {
            Some(port) => port
                .parse()
                .ok()
                .map(|port| SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port)),
            None => text.parse().ok(),
        };
        parsed.map(|address| Self(Some(address))).ok_or_else(|| {
            format!("`{text}` is not an address to listen on: write `:8080`, `127.0.0.1:8080` or `0` for none")
        })
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let advice = || format!("`{text}` is not a duration: write for example `30s`, `10m` or `24h`");
    let parsed: jiff::SignedDuration = text.parse().map_err(|_| advice())?;
    let duration = Duration::try_from(parsed).map_err(|_| advice())?;
    if duration.is_zero() {
        Err(advice())
    } else {
        Ok(duration)
    }
}

fn range(text: &str) -> Result<IpNet, String> {
    let parsed: Option<IpNet> = text.parse().ok();
    parsed
        .filter(|range| range.trunc() == *range)
        .ok_or_else(|| format!("`{text}` is not an address range: write for example `10.0.0.0/8`"))
}

fn bytes(text: &str) -> Result<u64, String> {
    let units = [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30)];
    let (number, unit) = units
        .iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)))
        .unwrap_or((text, 1_u64));
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(unit))
        .ok_or_else(|| format!("`{text}` is not a size: write for example `100Mi` or `2Gi`"))
}

impl Config {
    /// What the plan needs to know.
    pub fn settings(&self) -> Settings {
        Settings {
            default_datastore: self.datastore.clone(),
            cluster_domain: self.cluster_domain.clone(),
            gate_image: self.images.gate_image.clone(),
            tcp_proxy_image: self.images.tcp_proxy_image.clone(),
            etcd_image: self.images.etcd_image.clone(),
            namespace: self.pod_namespace.clone(),
            ca_lifetime: self.ca_lifetime,
            certificate_lifetime: self.certificate_lifetime,
            renew_before: self.certificate_expiration_deadline,
            network_policies: self.network.network_policies,
            allowed_egress: self.network.allowed_egress.clone(),
            blocked_egress: self.network.blocked_egress.clone(),
        }
    }

    /// Checks what single flags can't: how they fit together.
    ///
    /// # Errors
    /// A sentence that names the flag and what to write instead.
    pub fn check(&self) -> Result<(), String> {
        if self.leader_election_lease_duration < SHORTEST {
            return Err(
                "--leader-election-lease-duration must be at least 15s: with a shorter one, what a \
                        leader sent before it stopped could arrive when another leads already; leave \
                        it at 15s"
                    .into(),
            );
        }
        if self.datastore.is_empty() {
            return Err(
                "--datastore must not be empty: name the DataStore of tenants that name none, \
                        usually `default`"
                    .into(),
            );
        }
        if self
            .certificate_expiration_deadline
            .is_some_and(|before| before * 2 > self.certificate_lifetime)
        {
            return Err("--certificate-expiration-deadline must be at most half of --certificate-lifetime: \
                        certificates would be renewed all the time"
                .into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Config, clap::Error> {
        Config::try_parse_from(std::iter::once("steward-operator").chain(args.iter().copied()))
    }

    #[test]
    fn without_flags_it_starts_with_sane_defaults() {
        let config = parse(&[]).unwrap();
        assert!(config.leader_elect);
        assert_eq!(config.datastore, "default");
        assert_eq!(config.defragment_above, 100 << 20);
        assert_eq!(config.cache_resync_period, Duration::from_hours(10));
        assert!(config.check().is_ok());
    }

    #[test]
    fn flags_of_the_original_are_understood() {
        let config = parse(&[
            "--leader-elect=false",
            "--metrics-bind-address=:9090",
            "--health-probe-bind-address=0",
            "--controller-reconcile-timeout=1m30s",
        ])
        .unwrap();
        assert!(!config.leader_elect);
        assert_eq!(config.metrics_bind_address.0.unwrap().port(), 9090);
        assert_eq!(config.health_probe_bind_address, Bind(None));
        assert_eq!(config.controller_reconcile_timeout, Duration::from_secs(90));
        assert!(parse(&["--leader-elect"]).unwrap().leader_elect);
    }

    #[test]
    fn what_tenants_may_reach_is_given_as_ranges() {
        let config = parse(&[
            "--network-policies=false",
            "--allowed-egress=203.0.113.7/32:443,fd00::/8",
            "--blocked-egress=10.0.0.0/8",
        ])
        .unwrap();
        let settings = config.settings();
        assert!(!settings.network_policies);
        assert_eq!(settings.allowed_egress.len(), 2);
        assert_eq!(settings.blocked_egress.len(), 1);
        assert_eq!(
            parse(&[]).unwrap().settings().blocked_egress,
            Settings::default().blocked_egress
        );
        for wrong in ["--blocked-egress=10.0.0.1/8", "--allowed-egress=10.0.0.1"] {
            let said = parse(&[wrong]).unwrap_err().to_string();
            assert!(said.contains("write for example"), "{said}");
        }
    }

    #[test]
    fn a_flag_given_again_replaces_the_first_so_that_a_chart_s_extra_arguments_count() {
        assert!(
            !parse(&["--leader-elect", "--leader-elect=false"])
                .unwrap()
                .leader_elect
        );
    }

    #[test]
    fn a_bad_flag_gets_a_sentence_and_exit_code_2() {
        for (flag, says) in [
            (
                "--metrics-bind-address=nonsense",
                "is not an address to listen on",
            ),
            ("--cache-resync-period=soon", "is not a duration"),
            ("--cache-resync-period=0s", "is not a duration"),
            ("--defragment-above=much", "is not a size"),
            ("--max-concurrent-tcp-reconciles=0", "0 is not in 1..=256"),
        ] {
            let error = parse(&[flag]).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{flag}");
            assert!(error.to_string().contains(says), "{flag}: {error}");
        }
    }

    #[test]
    fn flags_that_do_not_fit_together_are_refused() {
        let config = parse(&["--leader-election-lease-duration=14s"]).unwrap();
        assert!(config.check().unwrap_err().contains("at least 15s"));
    }
}
