//! The command line. Refuses to hold any logic: it only says what was asked.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{backend, netns, run};

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
    /// Where RESULTS.md and results.svg go; without it they are not written.
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
}

impl Arguments {
    /// Does what the arguments ask for.
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self.command {
            None => netns::enter(&self.proxies),
            Some(Command::Inside(arguments)) => run::run(&arguments).map(|()| ExitCode::SUCCESS),
            Some(Command::Backend(arguments)) => backend::serve(&arguments),
        }
    }
}

impl ProxyArguments {
    /// Whether a test was asked for.
    pub(crate) fn wants(&self, test: Test) -> bool {
        self.only.is_empty() || self.only.contains(&test)
    }

    /// Whether a proxy was asked for.
    pub(crate) fn wants_target(&self, name: &str) -> bool {
        self.targets.is_empty() || self.targets.iter().any(|wanted| name.starts_with(wanted))
    }
}
