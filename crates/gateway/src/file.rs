//! The routes file: YAML in, validated routes out, or a sentence that says where
//! and what is wrong.

use std::{
    collections::HashMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    str::FromStr,
};

use ipnet::IpNet;
use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::{
    host::Host,
    spec::{ProxyVersion, RouteSpec},
};

/// Why a routes file can't be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file could not be read.
    #[error("{}: cannot be read: {source}; check that it exists and is readable", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Not YAML, or not of the shape expected.
    #[error("{}: {message}", .path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong and where.
        message: String,
    },
    /// A value that makes no sense.
    #[error("{}: line {line}: {field}: {problem}", .path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// The line, from one.
        line: u64,
        /// The field, such as `routes[0].host`.
        field: String,
        /// What is wrong and what to do.
        problem: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    routes: Option<Vec<RawRoute>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RawRoute {
    host: Spanned<String>,
    backends: Spanned<Vec<Spanned<String>>>,
    send_proxy: Option<Spanned<String>>,
    allow: Option<Vec<Spanned<String>>>,
    max_connections: Option<Spanned<u32>>,
    max_handshakes_per_second: Option<Spanned<u32>>,
}

/// What is wrong with one field.
struct Problem {
    line: u64,
    field: String,
    advice: String,
}

/// Reads and checks a routes file.
pub fn load(path: &Path) -> Result<Vec<(Host, RouteSpec)>, FileError> {
    let text = std::fs::read_to_string(path).map_err(|source| FileError::Read {
        path: path.into(),
        source,
    })?;
    parse(path, &text)
}

/// Checks the text of a routes file; `path` is only named in errors.
pub fn parse(path: &Path, text: &str) -> Result<Vec<(Host, RouteSpec)>, FileError> {
    if text.trim().is_empty() {
        // An empty file is more likely a mistake in delivery than a wish.
        let message = "line 1: routes: is missing; write `routes: []` for none".into();
        return Err(FileError::Parse {
            path: path.into(),
            message,
        });
    }
    let raw: RawFile =
        serde_saphyr::from_str_with_options(text, options()).map_err(|error| FileError::Parse {
            path: path.into(),
            message: located(&error),
        })?;
    let routes = raw.routes.unwrap_or_default();
    let mut seen: HashMap<Host, u64> = HashMap::with_capacity(routes.len());
    let mut checked = Vec::with_capacity(routes.len());
    for (index, route) in routes.iter().enumerate() {
        let line = route.host.referenced.line();
        let route = check(index, route, &mut seen, line).map_err(|problem| FileError::Value {
            path: path.into(),
            line: problem.line,
            field: problem.field,
            problem: problem.advice,
        })?;
        checked.push(route);
    }
    Ok(checked)
}

/// Large tables are fine; what a small file can blow up into is not.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 50_000_000,
            max_nodes: 50_000_000,
            max_total_scalar_bytes: 1 << 30,
            max_aliases: 1_000,
            max_anchors: 1_000,
        },
        with_snippet: false,
    }
}

/// Puts the line in front, as in the other messages.
fn located(error: &serde_saphyr::Error) -> String {
    let message = error.to_string();
    let message = message.lines().next().unwrap_or_default();
    let bare = message
        .rsplit_once(" at line ")
        .map_or(message, |(bare, _)| bare);
    match error.location() {
        Some(location) => format!("line {}: {bare}", location.line()),
        None => message.into(),
    }
}

fn check(
    index: usize,
    raw: &RawRoute,
    seen: &mut HashMap<Host, u64>,
    line: u64,
) -> Result<(Host, RouteSpec), Problem> {
    let host: Host = field(&raw.host, || format!("routes[{index}].host"))?;
    if let Some(first) = seen.insert(host.clone(), line) {
        let advice = format!("`{host}` has a route on line {first} already; remove one of them");
        return Err(Problem {
            line,
            field: format!("routes[{index}].host"),
            advice,
        });
    }
    let mut spec = RouteSpec::default();
    let list = &raw.backends;
    if list.value.is_empty() || list.value.len() > 64 {
        return Err(Problem {
            line: list.referenced.line(),
            field: format!("routes[{index}].backends"),
            advice: "give 1 to 64 backends as IP:PORT".into(),
        });
    }
    for (place, text) in list.value.iter().enumerate() {
        let Address(address) = field(text, || format!("routes[{index}].backends[{place}]"))?;
        spec.backends.push(address);
    }
    for (place, text) in raw.allow.iter().flatten().enumerate() {
        let Range(range) = field(text, || format!("routes[{index}].allow[{place}]"))?;
        spec.allow.push(range);
    }
    if let Some(text) = &raw.send_proxy {
        spec.send_proxy = Some(field(text, || format!("routes[{index}].sendProxy"))?);
    }
    let positive = |name: &str, limit: &Option<Spanned<u32>>| match limit {
        Some(limit) if limit.value == 0 => Err(Problem {
            line: limit.referenced.line(),
            field: format!("routes[{index}].{name}"),
            advice: "0 would let nobody in; leave it out for no limit, or remove the route".into(),
        }),
        Some(limit) => Ok(Some(limit.value)),
        None => Ok(None),
    };
    spec.max_connections = positive("maxConnections", &raw.max_connections)?;
    spec.max_handshakes_per_second =
        positive("maxHandshakesPerSecond", &raw.max_handshakes_per_second)?;
    Ok((host, spec))
}

fn field<T: FromStr<Err: std::fmt::Display>>(
    text: &Spanned<String>,
    name: impl FnOnce() -> String,
) -> Result<T, Problem> {
    text.value.parse().map_err(|error: T::Err| Problem {
        line: text.referenced.line(),
        field: name(),
        advice: error.to_string(),
    })
}

/// A backend in the file.
struct Address(SocketAddr);

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<SocketAddr>() {
            Ok(address) if address.port() == 0 => Err(format!(
                "`{text}` has port 0; write the port the API server listens on"
            )),
            Ok(address) => Ok(Self(address)),
            Err(_) => Err(format!(
                "`{text}` is not an address and port; write 10.0.0.1:6443 or [2001:db8::1]:6443"
            )),
        }
    }
}

/// A source range in the file; a lone address is a range of one.
struct Range(IpNet);

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let range = text.parse::<IpNet>().ok();
        let range = range.or_else(|| text.parse::<std::net::IpAddr>().ok().map(IpNet::from));
        range
            .map(Self)
            .ok_or_else(|| format!("`{text}` is not a range; write 192.0.2.0/24 or 2001:db8::/32"))
    }
}

impl FromStr for ProxyVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "v1" => Ok(Self::V1),
            "v2" => Ok(Self::V2),
            other => Err(format!(
                "`{other}` is not a version of the PROXY protocol; write v1 or v2"
            )),
        }
    }
}

#[cfg(test)]
mod tests;
