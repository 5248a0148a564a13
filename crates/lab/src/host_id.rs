//! Names and addresses: which hosts there are, and where they sit.
//!
//! Everything here is pure. The same addresses serve every lab: a lab's networks
//! exist only inside its own namespaces, so two labs never meet.

use std::{fmt, net::Ipv4Addr, str::FromStr};

use crate::Error;

/// Addresses the cloud hands out to Services of type `LoadBalancer`.
pub const LOAD_BALANCERS: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 40, 0, 0), 24);

/// Pods of every cluster in the lab: worker N has `10.244.N.0/24`, `mgmt` N = 0.
pub(crate) const PODS: &str = "10.244.0.0/16";

/// More workers than this neither fit the address plan nor any machine.
pub const MOST_WORKERS: u8 = 100;

/// A lab's name: it becomes part of paths and of cgroups' names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LabName(String);

/// One host of a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostId {
    /// Joins the networks; name server and firewall live here.
    Router,
    /// The management cluster's one node.
    Mgmt,
    /// Somebody with `kubectl`, outside of everything.
    Client,
    /// A machine that can join a tenant's cluster.
    Worker(u8),
}

/// The networks the router joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// `10.10.0.0/24`
    Management,
    /// `10.20.0.0/24`
    Workers,
    /// `10.30.0.0/24`
    Clients,
}

impl LabName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for LabName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let length = (1..=20).contains(&text.len());
        if length && text.chars().all(fine) && text.starts_with(|c: char| c.is_ascii_lowercase()) {
            return Ok(Self(text.to_owned()));
        }
        Err(Error::Invalid(format!(
            "--name {text:?} cannot be a lab's name: use up to 20 of a-z, 0-9 and -, and start with a letter"
        )))
    }
}

impl fmt::Display for LabName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HostId {
    /// Every host of a lab with this many workers; the router first, because
    /// the others are plugged into it.
    pub fn all(workers: u8) -> Vec<Self> {
        let mut hosts = vec![Self::Router, Self::Mgmt, Self::Client];
        hosts.extend((1..=workers).map(Self::Worker));
        hosts
    }

    /// Its address. The router has `.1` of every network; this is the one on the
    /// management network.
    pub fn address(self) -> Ipv4Addr {
        match self {
            Self::Router => Network::Management.gateway(),
            Self::Mgmt => Ipv4Addr::new(10, 10, 0, 2),
            Self::Client => Ipv4Addr::new(10, 30, 0, 2),
            Self::Worker(number) => Ipv4Addr::new(10, 20, 0, 10 + number),
        }
    }

    /// The network it sits on.
    pub fn network(self) -> Network {
        match self {
            Self::Router | Self::Mgmt => Network::Management,
            Self::Client => Network::Clients,
            Self::Worker(_) => Network::Workers,
        }
    }

    /// Whether it runs pods, or can.
    pub fn is_node(self) -> bool {
        self.pods().is_some()
    }

    /// The third byte of its pods' network.
    pub fn pods(self) -> Option<u8> {
        match self {
            Self::Mgmt => Some(0),
            Self::Worker(number) => Some(number),
            Self::Router | Self::Client => None,
        }
    }
}

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Router => f.write_str("router"),
            Self::Mgmt => f.write_str("mgmt"),
            Self::Client => f.write_str("client"),
            Self::Worker(number) => write!(f, "worker-{number}"),
        }
    }
}

impl FromStr for HostId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let unknown = || {
            Error::Invalid(format!(
                "there is no host {text:?}: hosts are mgmt, client, router, worker-1 and so on; `steward-lab status` lists them"
            ))
        };
        match text {
            "router" => Ok(Self::Router),
            "mgmt" => Ok(Self::Mgmt),
            "client" => Ok(Self::Client),
            _ => text
                .strip_prefix("worker-")
                .and_then(|number| number.parse().ok())
                .filter(|number| (1..=MOST_WORKERS).contains(number))
                .map(Self::Worker)
                .ok_or_else(unknown),
        }
    }
}

impl Network {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Management, Self::Workers, Self::Clients];

    /// The router's address on it, and its hosts' name server.
    pub fn gateway(self) -> Ipv4Addr {
        match self {
            Self::Management => Ipv4Addr::new(10, 10, 0, 1),
            Self::Workers => Ipv4Addr::new(10, 20, 0, 1),
            Self::Clients => Ipv4Addr::new(10, 30, 0, 1),
        }
    }

    /// The bridge in the router that is this network.
    pub fn bridge(self) -> &'static str {
        match self {
            Self::Management => "br-mgmt",
            Self::Workers => "br-workers",
            Self::Clients => "br-clients",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_name_reads_back_as_itself() {
        for host in HostId::all(3) {
            assert_eq!(host.to_string().parse::<HostId>().unwrap(), host);
        }
    }

    #[test]
    fn an_unknown_host_gets_a_sentence() {
        for name in ["worker-0", "worker-101", "worker-x", "mgmt2", ""] {
            let error = name.parse::<HostId>().unwrap_err().to_string();
            assert!(error.contains("steward-lab status"), "{error}");
        }
    }

    #[test]
    fn a_name_that_would_break_a_path_is_refused() {
        for name in ["", "Demo", "../x", "1st", "a b", "aaaaaaaaaaaaaaaaaaaaa"] {
            assert!(name.parse::<LabName>().is_err(), "{name}");
        }
        assert!("demo-2".parse::<LabName>().is_ok());
    }

    #[test]
    fn no_two_hosts_share_an_address() {
        let hosts = HostId::all(MOST_WORKERS);
        let addresses: std::collections::BTreeSet<_> = hosts.iter().map(|h| h.address()).collect();
        assert_eq!(addresses.len(), hosts.len());
    }
}
