//! The command line of `steward-gateway`.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use clap::Parser;
use ipnet::IpNet;
use steward_wire::logging::Format;

use crate::shares::Share;

/// Routes TLS connections by the name they ask for, without opening them.
#[expect(
    clippy::struct_excessive_bools,
    reason = "a flag is given or not, and they are independent"
)]
#[derive(Debug, Clone, Parser)]
#[command(name = "steward-gateway", version, about)]
#[command(group(clap::ArgGroup::new("source").required(true).args(["routes", "kubernetes"])))]
pub struct Options {
    /// Address to listen on, such as 0.0.0.0:443 or [::]:443; may be given more than once
    #[arg(long, required = true, value_name = "ADDR")]
    pub listen: Vec<SocketAddr>,

    /// File with the routes; read again when it changes
    #[arg(long, value_name = "FILE")]
    pub routes: Option<PathBuf>,

    /// Follow the Ingresses, Gateways and TLS routes of a cluster instead of a file
    #[arg(long)]
    pub kubernetes: bool,

    /// The port under which clients reach this gateway; listeners of Gateways must have it
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 443,
        requires = "kubernetes"
    )]
    pub port: u16,

    /// The Service in front of this gateway; its address is written in the status of routes
    #[arg(long, value_name = "NAMESPACE/NAME", requires = "kubernetes", value_parser = service)]
    pub publish_service: Option<(String, String)>,

    /// An address to write in the status of routes instead; may be given more than once
    #[arg(long, value_name = "IP", requires = "kubernetes")]
    pub publish_address: Vec<IpAddr>,

    /// Address of the admin pages /livez, /readyz, /metrics and, for local clients, /routes
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9090")]
    pub admin: SocketAddr,

    /// Show metrics by route, which name the tenants, to local clients only
    #[arg(long)]
    pub private_metrics: bool,

    /// Connections with a route at a time; by default what memory and open files allow
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_connections: Option<u32>,

    /// MiB that connections may hold in buffers, the kernel's included; above it the largest
    /// of the route that holds the most are reset; by default half of the memory
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_buffered: Option<u64>,

    /// What one route may have of the connections; if several want many, each gets less, so
    /// that some stay free; 100 is no limit
    #[arg(long, value_name = "PERCENT", default_value = "50")]
    pub route_share: Share,

    /// The same for one source: an IPv4 address or an IPv6 network of 64 bits, of the client
    /// itself where a PROXY header is believed
    #[arg(long, value_name = "PERCENT", default_value = "50")]
    pub source_share: Share,

    /// Handshakes per second of a route that has no number of its own; 0 is no limit
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub route_handshakes: u32,

    /// Handshakes per second of one source; 0 is no limit
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub source_handshakes: u32,

    /// Source range whose PROXY protocol header is believed; may be given more than once
    #[arg(long, value_name = "CIDR")]
    pub trust_proxy: Vec<IpNet>,

    /// Worker threads; by default one per core, at most four
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub workers: usize,

    /// How long connections may finish after SIGTERM
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    pub drain_timeout: Duration,

    /// How long to go on accepting after SIGTERM while /readyz already says no, so that
    /// whoever sends connections here can learn of it first
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    pub shutdown_delay: Duration,

    /// How long a client may take to say which name it wants
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = positive_seconds)]
    pub hello_timeout: Duration,

    /// How long a backend may take to accept, before the next one is tried
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = positive_seconds)]
    pub connect_timeout: Duration,

    /// How long a connection lives of which one side has finished while the other is silent
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = some_seconds)]
    pub half_closed_timeout: Duration,

    /// Serve from a second process, and start it anew if it dies: clients wait meanwhile
    /// instead of being refused
    #[arg(long)]
    pub restart_in_place: bool,

    /// Socket of a `steward-gateway hold SOCKET` in another container of the pod, which keeps
    /// the listeners while this container is started again
    #[arg(long, value_name = "SOCKET", requires = "restart_in_place")]
    pub holder: Option<PathBuf>,

    /// Routes that get metrics of their own; all others share one set
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub metrics_routes: usize,

    /// Format of the log: text or json
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log_format: Format,

    /// Log a line at the end of every connection
    #[arg(long)]
    pub access_log: bool,
}

fn service(text: &str) -> Result<(String, String), String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err(format!("`{text}` is not a Service; write NAMESPACE/NAME")),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let parsed = text
        .parse::<f64>()
        .ok()
        .and_then(|value| Duration::try_from_secs_f64(value).ok());
    parsed.ok_or_else(|| format!("`{text}` is not a number of seconds, such as 30 or 0.5"))
}

fn some_seconds(text: &str) -> Result<Duration, String> {
    match seconds(text)? {
        Duration::ZERO => Err("must be more than 0".into()),
        duration => Ok(duration),
    }
}

fn positive_seconds(text: &str) -> Result<Duration, String> {
    match some_seconds(text)? {
        // The engine's clock turns once a minute; longer waits help nobody here.
        duration if duration > Duration::from_mins(1) => Err("must be at most 60".into()),
        duration => Ok(duration),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn bad_flags_are_refused_with_a_reason() {
        let base = ["steward-gateway", "--listen", "[::]:443", "--routes", "r"];
        for (flag, value, part) in [
            ("--hello-timeout", "0", "must be more than 0"),
            ("--drain-timeout", "soon", "not a number of seconds"),
            ("--trust-proxy", "10.0.0.0/33", "invalid"),
            ("--route-share", "0", "write 1 to 100"),
            ("--source-share", "half", "write 1 to 100"),
            ("--max-connections", "0", "1.."),
            ("--half-closed-timeout", "0", "must be more than 0"),
            ("--log-format", "xml", "use text or json"),
            ("--publish-service", "gateway", "write NAMESPACE/NAME"),
        ] {
            let given = base.iter().copied().chain([flag, value]);
            let error = Options::try_parse_from(given).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
