//! The DNS records that let tenants be found, in the language of the server you
//! have.
//!
//! Owns turning names and addresses into text for each kind of server. It asks
//! no name server anything: see `commands::dns` for the check.

use std::net::IpAddr;

mod render;
#[cfg(test)]
mod tests;

pub use render::render;

/// A kind of name server, or of file, that records are written for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A zone file of BIND and its many relatives.
    #[default]
    Bind,
    /// dnsmasq and Pi-hole.
    Dnsmasq,
    /// A server block for CoreDNS.
    Coredns,
    /// PowerShell for Windows Server and Active Directory.
    Windows,
    /// CSV to import into Infoblox.
    Infoblox,
    /// Records to import into Cloudflare, without its proxy.
    Cloudflare,
    /// Lines for /etc/hosts: exact names only.
    Hosts,
    /// Names that resolve by themselves through sslip.io; nothing to set up.
    Sslip,
}

/// Names to make known and the addresses they lead to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Zones whose every name leads here: `k8s.example.com`.
    pub wildcards: Vec<String>,
    /// Single names.
    pub names: Vec<String>,
    /// Where they lead. At least one.
    pub addresses: Vec<IpAddr>,
}

impl Wanted {
    /// The zones that a domain needs: one for API servers, one for konnectivity.
    pub fn for_domain(domain: &str, addresses: Vec<IpAddr>) -> Self {
        let domain = domain.trim_matches('.').to_ascii_lowercase();
        Self {
            wildcards: vec![format!("k8s.{domain}"), format!("konnectivity.{domain}")],
            names: Vec::new(),
            addresses,
        }
    }
}
