//! The command line. Refuses to hold any logic: it only says what was asked.

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::{Args, Parser, Subcommand, ValueEnum};

#[cfg(feature = "operator")]
use crate::operator;
use crate::{backend, run};

/// Measures Steward's data plane beside HAProxy, nginx, Envoy and Traefik.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    proxies: ProxyArguments,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measures our operator beside Kamaji on a real API server, objects only.
    #[cfg(feature = "operator")]
    Operator(operator::OperatorArguments),
    /// What `steward-bench operator` runs inside its own network namespace.
    #[cfg(feature = "operator")]
    #[command(hide = true)]
    OperatorInside(operator::OperatorArguments),
    /// What `steward-bench` runs inside its own network namespace.
    #[command(hide = true)]
    Inside(ProxyArguments),
    /// The echo server behind every proxy.
    #[command(hide = true)]
    Backend(backend::BackendArguments),
}

/// What to measure, how long, and where the programs are.
#[derive(Clone, Debug, Args)]
pub(crate) struct ProxyArguments {
    /// Shorter windows and fewer rounds: under a minute, for a first look.
    #[arg(long, conflicts_with = "smoke")]
    pub(crate) quick: bool,
    /// A handful of operations each: shows that the harness works, measures nothing.
    #[arg(long, hide = true)]
    pub(crate) smoke: bool,
    /// Run only these tests (comma separated).
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) only: Vec<Test>,
    /// Run only proxies whose name starts with one of these (comma separated).
    #[arg(long, value_delimiter = ',')]
    pub(crate) targets: Vec<String>,
    /// Look for programs here first, before the build directory, the parts cache and PATH.
    #[arg(long, value_name = "DIR")]
    pub(crate) bin_dir: Vec<PathBuf>,
    /// Where RESULTS.md and results.svg go; `bench` for a full run in the repository, else nowhere.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Where configurations and certificates of this run live.
    #[arg(long, hide = true)]
    pub(crate) work: Option<PathBuf>,
}

/// One thing that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Test {
    /// Front doors: CPU per TLS connection at a fixed rate.
    Conn,
    /// Front doors: CPU per 1 KiB round trip at a fixed rate.
    Rt,
    /// Front doors: CPU per GB, plain bytes, closed loop.
    Bulk,
    /// Front doors: CPU per GB of TLS records, closed loop.
    BulkTls,
    /// Node proxies: CPU per TLS connection at a fixed rate.
    NodeConn,
    /// Node proxies: CPU per 1 KiB round trip at a fixed rate.
    NodeRt,
    /// Both: p50 of connect to first byte, one connection at a time.
    Latency,
    /// Both: memory at rest and per idle connection.
    Idle,
    /// Front doors: time and CPU until one new route of 100 000 is visible.
    Routes,
    /// Both: system calls per connection and per round trip.
    Syscalls,
    /// The whole path: what front door, gate and node proxy add to a request.
    Path,
}

/// Where results are kept: in the repository, if this is it. A partial run
/// does not replace a full one.
pub(crate) fn kept(full: bool) -> Option<PathBuf> {
    let folder = PathBuf::from("bench");
    (full && folder.join("Cargo.toml").is_file()).then_some(folder)
}

impl Arguments {
    /// Does what the arguments ask for.
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self.command {
            None => run::start(&self.proxies),
            Some(Command::Inside(arguments)) => run::run(&arguments).map(|()| ExitCode::SUCCESS),
            #[cfg(feature = "operator")]
            Some(Command::Operator(arguments)) => operator::start(&arguments),
            #[cfg(feature = "operator")]
            Some(Command::OperatorInside(arguments)) => {
                operator::run(&arguments).map(|()| ExitCode::SUCCESS)
            }
            Some(Command::Backend(arguments)) => backend::serve(&arguments),
        }
    }
}

impl ProxyArguments {
    /// The same arguments again, for the program inside the namespace.
    pub(crate) fn again(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["inside".into()];
        let mut flag = |name: &str, value: Option<OsString>| {
            words.push(name.into());
            words.extend(value);
        };
        if self.quick {
            flag("--quick", None);
        }
        if self.smoke {
            flag("--smoke", None);
        }
        for test in self.only.iter().filter_map(ValueEnum::to_possible_value) {
            flag("--only", Some(test.get_name().into()));
        }
        for target in &self.targets {
            flag("--targets", Some(target.into()));
        }
        for directory in &self.bin_dir {
            flag("--bin-dir", Some(directory.into()));
        }
        let full = !self.quick && !self.smoke && self.only.is_empty() && self.targets.is_empty();
        if let Some(out) = self.out.clone().or_else(|| kept(full)) {
            flag("--out", Some(out.into()));
        }
        words
    }

    /// Whether a test was asked for.
    pub(crate) fn wants(&self, test: Test) -> bool {
        self.only.is_empty() || self.only.contains(&test)
    }

    /// Whether a proxy was asked for.
    pub(crate) fn wants_target(&self, name: &str) -> bool {
        self.targets.is_empty() || self.targets.iter().any(|wanted| name.starts_with(wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_outside_is_asked_inside() {
        let line = "steward-bench --quick --only conn,node-rt --targets haproxy --bin-dir /a --bin-dir /b --out /o";
        let outside = Arguments::parse_from(line.split(' ')).proxies;
        let words = outside.again();
        let inside = Arguments::parse_from(std::iter::once("steward-bench".into()).chain(words));
        let Some(Command::Inside(inside)) = inside.command else {
            panic!("not `inside`")
        };
        assert_eq!(inside.only, [Test::Conn, Test::NodeRt]);
        assert_eq!(inside.bin_dir, [PathBuf::from("/a"), PathBuf::from("/b")]);
        assert_eq!(
            (inside.quick, inside.out.clone()),
            (true, Some(PathBuf::from("/o")))
        );
        assert!(inside.wants_target("haproxy-again") && !inside.wants_target("nginx"));
    }
}
