//! `up` and `parts`.

use std::path::PathBuf;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use super::Name;
use crate::{
    Error, KUBERNETES, Lab,
    parts::{self, Part},
    progress::Progress,
    supplies,
};

/// Make a lab: a management cluster, worker hosts, a client and a name server.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  steward-lab up
  steward-lab up --name two --workers 2
  steward-lab up --bin-dir ~/kubernetes/bin")]
pub(super) struct Up {
    /// Hosts that are in no cluster yet: worker-1, worker-2, ...
    #[arg(long, value_name = "K", default_value_t = 2)]
    workers: u8,
    /// The management cluster's Kubernetes.
    #[arg(long, value_name = "V", default_value = KUBERNETES)]
    kubernetes: String,
    /// Take programs from here instead of building them.
    #[arg(long, value_name = "D")]
    bin_dir: Option<PathBuf>,
    #[command(flatten)]
    name: Name,
}

/// Fetch or build the programs that labs are made of, ahead of time.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  steward-lab parts                everything a lab needs
  steward-lab parts traefik kine   these too")]
pub(super) struct Parts {
    /// Which; everything a lab needs if none is named.
    parts: Vec<String>,
    /// Take programs from here instead of building them.
    #[arg(long, value_name = "D")]
    bin_dir: Option<PathBuf>,
}

impl Up {
    pub(super) async fn run(self) -> Result<(), Error> {
        let name = self.name.name.to_string();
        let mut builder = Lab::builder()
            .name(&name)
            .workers(self.workers)
            .kubernetes(self.kubernetes)
            .stays()
            .progress(Progress::stderr());
        if let Some(folder) = self.bin_dir {
            builder = builder.bin_dir(folder);
        }
        let lab = tokio::select! {
            lab = builder.up() => lab?,
            () = interrupted() => {
                Lab::down(&self.name.name)?;
                return Err(Error::Invalid("stopped before it was done; nothing of it is left".into()));
            }
        };
        println!("lab {name} is up. Try next:");
        let flag = if name == "demo" {
            String::new()
        } else {
            format!("--name {name} ")
        };
        println!("  steward-lab exec {flag}mgmt -- kubectl get pods -A");
        println!("  {}", format!("steward-lab status {flag}").trim_end());
        println!("  {}", format!("steward-lab down {flag}").trim_end());
        lab.keep();
        Ok(())
    }
}

/// Ctrl-C, or somebody's wish that this process ends.
async fn interrupted() {
    let terminate = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signal) => signal.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate => {}
    }
}

impl Parts {
    pub(super) fn run(self) -> Result<(), Error> {
        let parts = match self.parts.as_slice() {
            [] => Part::LAB.to_vec(),
            names => names
                .iter()
                .map(|name| name.parse())
                .collect::<Result<_, _>>()?,
        };
        let options = supplies::options(self.bin_dir.as_deref())?;
        let all = parts::ensure_all(&parts, &options, &Progress::stderr())?;
        for (name, path) in all.values().flat_map(parts::Programs::iter) {
            println!("{name} {}", path.display());
        }
        Ok(())
    }
}
