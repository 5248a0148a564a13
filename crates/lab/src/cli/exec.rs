//! `exec`: becomes the command, so that signals, terminal and exit code are its own.

use std::{os::unix::process::CommandExt, process::ExitCode};

use clap::Args;

use super::Name;
use crate::{Error, HostId, Lab};

/// Run a command on a host: its network, its files, the lab's programs in PATH.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  steward-lab exec mgmt -- kubectl apply -f ./mine.yaml
  steward-lab exec client -- curl -k https://10.40.0.1
  steward-lab exec worker-1 -- bash")]
pub(super) struct Exec {
    /// mgmt, client, router, worker-1, ...
    host: HostId,
    /// The command and its arguments.
    #[arg(required = true, last = true)]
    command: Vec<String>,
    #[command(flatten)]
    name: Name,
}

impl Exec {
    pub(super) fn run(self) -> Result<ExitCode, Error> {
        super::need_root()?;
        let lab = Lab::find(&self.name.name)?;
        let host = lab.host(self.host)?;
        let words = host.enter()?;
        let failed = std::process::Command::new(&words[0])
            .args(&words[1..])
            .args(&self.command)
            .envs(host.environment())
            .exec();
        Err(Error::files("start", "nsenter")(failed))
    }
}
