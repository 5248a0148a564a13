//! The command line.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Parser, ValueHint};
use ipnet::IpNet;
use steward_wire::{hello::Name, logging::Format};

/// The API server's doorman.
///
/// Looks at the `ClientHello` of each connection. A tunnel, told by its ALPN id, is ended here and
/// its content handed to the API server; konnectivity agents go to the konnectivity server;
/// everything else goes to the API server. Nothing but the tunnel is opened.
#[derive(Debug, Parser)]
#[command(version, about)]
pub struct Args {
    /// Address to accept connections on.
    #[arg(long, value_name = "ADDR")]
    pub listen: SocketAddr,

    /// The API server.
    #[arg(long, value_name = "ADDR")]
    pub apiserver: SocketAddr,

    /// The konnectivity server's port for agents. Without it, agents are treated like anyone.
    #[arg(long, value_name = "ADDR")]
    pub konnectivity: Option<SocketAddr>,

    /// Certificate that the tunnel is ended with (PEM, chain included). Followed as it changes.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub cert: PathBuf,

    /// Private key of the certificate (PEM). Followed as it changes.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key: PathBuf,

    /// ALPN id of tunnels.
    #[arg(long, value_name = "ID", default_value = "steward-tunnel/1", value_parser = alpn_id)]
    pub tunnel_alpn: String,

    /// ALPN id that konnectivity agents offer beside their own (`--alpn-proto` of the agent).
    #[arg(long, value_name = "ID", default_value = "steward-konnectivity/1", value_parser = alpn_id)]
    pub konnectivity_alpn: String,

    /// Server name that means the konnectivity server. May be given several times.
    #[arg(long, value_name = "NAME", requires = "konnectivity")]
    pub konnectivity_name: Vec<Name>,

    /// Source range that may connect; all others are refused. May be given several times.
    #[arg(long, value_name = "CIDR")]
    pub allow: Vec<IpNet>,

    /// Source range whose connections start with a PROXY header, as written by the front door.
    /// May be given several times.
    #[arg(long, value_name = "CIDR")]
    pub trust_proxy: Vec<IpNet>,

    /// Connections at a time; more are refused.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_connections: Option<u64>,

    /// New connections per second; more are refused.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_handshakes_per_second: Option<u64>,

    /// Address for /livez, /readyz and /metrics.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7480")]
    pub admin: SocketAddr,

    /// How long to go on accepting after SIGTERM, while /readyz already says no.
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    pub shutdown_delay: Duration,

    /// How long live connections may take to finish after SIGTERM.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub drain_timeout: Duration,

    /// Serve from a second process, and start it anew if it dies: clients wait meanwhile
    /// instead of being refused.
    #[arg(long)]
    pub restart_in_place: bool,

    /// Threads. Default: one per core, at most four.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub workers: usize,

    /// How log lines look: text or json.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log_format: Format,

    /// Write one line per connection when it ends.
    #[arg(long)]
    pub access_log: bool,
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
