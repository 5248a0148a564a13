//! The command line of `steward-gateway`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::Parser;
use ipnet::IpNet;
use steward_wire::logging::Format;

/// Routes TLS connections by the name they ask for, without opening them.
#[derive(Debug, Clone, Parser)]
#[command(name = "steward-gateway", version, about)]
pub struct Options {
    /// Address to listen on, such as 0.0.0.0:443 or [::]:443; may be given more than once
    #[arg(long, required = true, value_name = "ADDR")]
    pub listen: Vec<SocketAddr>,

    /// File with the routes; read again when it changes
    #[arg(long, value_name = "FILE")]
    pub routes: PathBuf,

    /// Address of the admin pages /livez, /readyz, /metrics and /routes
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9090")]
    pub admin: SocketAddr,

    /// Source range whose PROXY protocol header is believed; may be given more than once
    #[arg(long, value_name = "CIDR")]
    pub trust_proxy: Vec<IpNet>,

    /// Worker threads; by default one per core, at most four
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub workers: usize,

    /// How long connections may finish after SIGTERM
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    pub drain_timeout: Duration,

    /// How long a client may take to say which name it wants
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = positive_seconds)]
    pub hello_timeout: Duration,

    /// How long a backend may take to accept, before the next one is tried
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = positive_seconds)]
    pub connect_timeout: Duration,

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

fn seconds(text: &str) -> Result<Duration, String> {
    let parsed = text
        .parse::<f64>()
        .ok()
        .and_then(|value| Duration::try_from_secs_f64(value).ok());
    parsed.ok_or_else(|| format!("`{text}` is not a number of seconds, such as 30 or 0.5"))
}

fn positive_seconds(text: &str) -> Result<Duration, String> {
    match seconds(text)? {
        Duration::ZERO => Err("must be more than 0".into()),
        // The engine's clock turns once a minute; longer waits help nobody here.
        duration if duration > Duration::from_secs(60) => Err("must be at most 60".into()),
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
            ("--log-format", "xml", "use text or json"),
        ] {
            let given = base.iter().copied().chain([flag, value]);
            let error = Options::try_parse_from(given).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
