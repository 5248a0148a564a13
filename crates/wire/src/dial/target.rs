//! An upstream as it is written down: a name or an address, and what else is known about it.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

use super::Resolve;
use crate::hello::{BadName, Name};

/// `HOST:PORT`, with aliases, pinned addresses and an internal endpoint.
#[derive(Debug, Clone)]
pub struct Target {
    host: Host,
    port: u16,
    aliases: Vec<IpAddr>,
    pinned: Vec<IpAddr>,
    internal: Option<SocketAddr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one per process")]
enum Host {
    Name(Name),
    Address(IpAddr),
}

/// `NAME=IP`: what a name resolves to, whatever DNS says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alias {
    /// The name.
    pub name: Name,
    /// Its address.
    pub address: IpAddr,
}

/// Why a text is not a [`Target`] or an [`Alias`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTarget {
    /// There is no port.
    #[error("`{0}` has no port: write HOST:PORT, with brackets around an IPv6 address")]
    NoPort(String),
    /// The port is not one.
    #[error("`{0}` is not a port: write a number from 1 to 65535")]
    Port(String),
    /// The host is neither a name nor an address.
    #[error("`{0}` is not a host name: it {1}")]
    Host(String, BadName),
    /// Not of the form `NAME=IP`.
    #[error("`{0}` is not an alias: write NAME=IP")]
    Alias(String),
    /// Not an address.
    #[error("`{0}` is not an IP address")]
    Address(String),
}

impl Target {
    /// Adds what `aliases` say about this host.
    #[must_use]
    pub fn with_aliases(mut self, aliases: &[Alias]) -> Self {
        let ours = aliases
            .iter()
            .filter(|alias| self.host == Host::Name(alias.name));
        self.aliases.extend(ours.map(|alias| alias.address));
        self
    }

    /// Adds addresses that are used after those of the name, and when it does not resolve.
    #[must_use]
    pub fn with_pinned(mut self, addresses: &[IpAddr]) -> Self {
        self.pinned.extend_from_slice(addresses);
        self
    }

    /// Adds the address of last resort.
    #[must_use]
    pub fn with_internal(mut self, endpoint: Option<Endpoint>) -> Self {
        let port = self.port;
        self.internal = endpoint.map(|it| SocketAddr::new(it.address, it.port.unwrap_or(port)));
        self
    }

    /// The name, if it is one.
    pub fn name(&self) -> Option<Name> {
        match self.host {
            Host::Name(name) => Some(name),
            Host::Address(_) => None,
        }
    }

    /// The address, if it is one.
    pub fn literal(&self) -> Option<IpAddr> {
        match self.host {
            Host::Name(_) => None,
            Host::Address(address) => Some(address),
        }
    }

    pub(super) fn needs_resolving(&self) -> bool {
        self.literal().is_none() && self.aliases.is_empty()
    }

    pub(super) fn resolve(&self, resolver: &impl Resolve) -> io::Result<Vec<SocketAddr>> {
        match self.host {
            Host::Name(name) if self.aliases.is_empty() => resolver.resolve(&name, self.port),
            _ => Ok(Vec::new()),
        }
    }

    /// All addresses in the order to try them, each once.
    pub(super) fn addresses(&self, resolved: &[SocketAddr]) -> Vec<SocketAddr> {
        let known = self
            .literal()
            .into_iter()
            .chain(self.aliases.iter().copied());
        let with_port = |address| SocketAddr::new(address, self.port);
        let mut all = Vec::new();
        let candidates = known
            .map(with_port)
            .chain(resolved.iter().copied())
            .chain(self.pinned.iter().copied().map(with_port))
            .chain(self.internal);
        for address in candidates {
            if !all.contains(&address) {
                all.push(address);
            }
        }
        all
    }
}

/// `IP[:PORT]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    address: IpAddr,
    port: Option<u16>,
}

fn port(text: &str) -> Result<u16, BadTarget> {
    match text.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(BadTarget::Port(text.to_owned())),
    }
}

impl FromStr for Target {
    type Err = BadTarget;

    fn from_str(text: &str) -> Result<Self, BadTarget> {
        let no_port = || BadTarget::NoPort(text.to_owned());
        let (host, after) = text.rsplit_once(':').ok_or_else(no_port)?;
        let host = match host
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            Some(inside) => Host::Address(IpAddr::V6(
                inside
                    .parse()
                    .map_err(|_| BadTarget::Address(inside.to_owned()))?,
            )),
            None if host.contains(':') => return Err(no_port()),
            None => match host.parse() {
                Ok(address) => Host::Address(IpAddr::V4(address)),
                Err(_) => Host::Name(
                    host.parse()
                        .map_err(|bad| BadTarget::Host(host.to_owned(), bad))?,
                ),
            },
        };
        let port = port(after)?;
        Ok(Self {
            host,
            port,
            aliases: Vec::new(),
            pinned: Vec::new(),
            internal: None,
        })
    }
}

impl FromStr for Alias {
    type Err = BadTarget;

    fn from_str(text: &str) -> Result<Self, BadTarget> {
        let (name, address) = text
            .split_once('=')
            .ok_or_else(|| BadTarget::Alias(text.to_owned()))?;
        Ok(Self {
            name: name
                .parse()
                .map_err(|bad| BadTarget::Host(name.to_owned(), bad))?,
            address: address
                .parse()
                .map_err(|_| BadTarget::Address(address.to_owned()))?,
        })
    }
}

impl FromStr for Endpoint {
    type Err = BadTarget;

    fn from_str(text: &str) -> Result<Self, BadTarget> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self {
                address,
                port: None,
            });
        }
        let bad = |_| BadTarget::Address(text.to_owned());
        let with_port: SocketAddr = text.parse().map_err(bad)?;
        Ok(Self {
            address: with_port.ip(),
            port: Some(with_port.port()),
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host {
            Host::Name(name) => write!(f, "{name}:{}", self.port),
            Host::Address(address) => SocketAddr::new(address, self.port).fmt(f),
        }
    }
}
