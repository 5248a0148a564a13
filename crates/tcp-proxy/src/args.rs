//! The command line.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use clap::{Parser, ValueEnum, ValueHint};
use rustls::pki_types::ServerName;
use steward_wire::{
    dial::{Alias, Endpoint, Target},
    logging::Format,
};

/// The tenant node's end of the tunnel to its API server.
///
/// Pods dial an address, so their own TLS says nothing that a front door could route by. This
/// program carries each of their connections to the tenant's host name. There is no switch that
/// turns the check of the upstream's certificate off.
#[derive(Debug, Parser)]
#[command(version, about)]
pub(crate) struct Args {
    /// How connections are carried.
    #[arg(long, value_enum, default_value = "end-to-end")]
    pub(crate) mode: Mode,

    /// Address to accept connections on. May be given several times.
    #[arg(long, value_name = "ADDR", required = true)]
    pub(crate) listen: Vec<SocketAddr>,

    /// The front door: the tenant's host name and the port.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) upstream: Target,

    /// CA that the upstream's certificate is checked against (PEM). Followed as it changes.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) ca: PathBuf,

    /// Name to ask for by SNI and to check the certificate against. Default: the upstream's host.
    #[arg(long, value_name = "NAME", value_parser = server_name)]
    pub(crate) server_name: Option<ServerName<'static>>,

    /// Address to put on `lo`, so that every node serves it itself. Taken away at the end if it
    /// was put there by this process. Takes the capability `NET_ADMIN`. May be given several times.
    #[arg(long, value_name = "IP", value_parser = host_address)]
    pub(crate) address: Vec<IpAddr>,

    /// What a name resolves to, whatever DNS says. May be given several times.
    #[arg(long, value_name = "NAME=IP")]
    pub(crate) host_alias: Vec<Alias>,

    /// Address of the front door, used after those that DNS gives, and without DNS. May be given
    /// several times.
    #[arg(long, value_name = "IP")]
    pub(crate) pin: Vec<IpAddr>,

    /// Address used when the name does not resolve or none of its addresses answers. The port
    /// is the upstream's unless given.
    #[arg(long, value_name = "IP[:PORT]")]
    pub(crate) internal_endpoint: Option<Endpoint>,

    /// Certificate shown to clients (PEM); for --mode terminate. Followed as it changes.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath,
          required_if_eq("mode", "terminate"))]
    pub(crate) cert: Option<PathBuf>,

    /// Private key of the certificate (PEM); for --mode terminate. Followed as it changes.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath,
          required_if_eq("mode", "terminate"))]
    pub(crate) key: Option<PathBuf>,

    /// ALPN id of tunnels: the same as at the gate.
    #[arg(long, value_name = "ID", default_value = "steward-tunnel/1", value_parser = alpn_id)]
    pub(crate) tunnel_alpn: String,

    /// Address for /livez, /readyz and /metrics.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7481")]
    pub(crate) admin: SocketAddr,

    /// How long to go on accepting after SIGTERM, while /readyz already says no.
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    pub(crate) shutdown_delay: Duration,

    /// How long live connections may take to finish after SIGTERM.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub(crate) drain_timeout: Duration,

    /// Serve from a second process, and start it anew if it dies: clients wait meanwhile
    /// instead of being refused.
    #[arg(long)]
    pub(crate) restart_in_place: bool,

    /// Socket of a `steward-tcp-proxy hold SOCKET` in another container of the pod, which keeps
    /// the listeners while this container is started again.
    #[arg(long, value_name = "SOCKET", requires = "restart_in_place")]
    pub(crate) holder: Option<PathBuf>,

    /// Threads. Default: one per core, at most four.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) workers: usize,

    /// How log lines look: text or json.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: Format,

    /// Write one line per connection when it ends.
    #[arg(long)]
    pub(crate) access_log: bool,
}

/// How connections are carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Inside an outer TLS connection that a gate unwraps: the client's own TLS reaches the API
    /// server untouched, client certificates and HTTP/2 with it.
    EndToEnd,
    /// TLS is ended here with --cert and --key, and started anew towards the upstream. Client
    /// certificates can't pass.
    Terminate,
}

fn server_name(text: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(text.to_owned())
        .map_err(|_| format!("`{text}` is neither a host name nor an address"))
}

fn host_address(text: &str) -> Result<IpAddr, String> {
    let address: IpAddr = text
        .parse()
        .map_err(|_| format!("`{text}` is not an IP address"))?;
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    if address.is_unspecified() || address.is_multicast() || broadcast {
        return Err(format!("`{text}` is not an address that a host can have"));
    }
    Ok(address)
}

fn seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .map(Duration::from_secs)
        .map_err(|_| format!("`{text}` is not a number of seconds"))
}

fn alpn_id(text: &str) -> Result<String, String> {
    match text.len() {
        0 => Err("an ALPN id has at least one character".to_owned()),
        1..=255 => Ok(text.to_owned()),
        _ => Err("an ALPN id has at most 255 characters".to_owned()),
    }
}
