//! What a route is made from, whoever says it: a file or a cluster.
//!
//! Plain values without behaviour, so that the parser can be fuzzed without the rest.

use std::net::SocketAddr;

use ipnet::IpNet;

/// What a route is made from. Valid by construction of its parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RouteSpec {
    /// Where connections go; more than 64 are not used. May be empty while a
    /// tenant has no pod: clients then get an alert.
    pub backends: Vec<SocketAddr>,
    /// The PROXY header that backends get.
    pub send_proxy: Option<ProxyVersion>,
    /// Who may connect; empty is everyone.
    pub allow: Vec<IpNet>,
    /// Connections at a time.
    pub max_connections: Option<u32>,
    /// New connections per second.
    pub max_handshakes_per_second: Option<u32>,
    /// A wildcard host stands for one label and not for several: what it means in an Ingress.
    pub one_label: bool,
}

/// A version of the PROXY protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyVersion {
    /// The text header.
    V1,
    /// The binary header.
    V2,
}
