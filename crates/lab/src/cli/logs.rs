//! `logs`.

use std::io::{self, Write};

use clap::Args;

use super::Name;
use crate::{Error, HostId, Lab, logs};

/// Show what a program of a host said.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  steward-lab logs                 errors of all programs, and which logs there are
  steward-lab logs worker-1        the same of one host
  steward-lab logs mgmt/kubelet    all of one program")]
pub(super) struct Logs {
    /// HOST or HOST/PROGRAM.
    #[arg(value_name = "HOST/PROGRAM")]
    which: Option<String>,
    #[command(flatten)]
    name: Name,
}

impl Logs {
    pub(super) fn run(self) -> Result<(), Error> {
        super::need_root()?;
        let lab = Lab::find(&self.name.name)?;
        let which = self.which.unwrap_or_default();
        let (host, program) = which.split_once('/').unwrap_or((&which, ""));
        if !program.is_empty() {
            return whole(&lab, host.parse()?, program);
        }
        let hosts = if host.is_empty() {
            lab.hosts()
        } else {
            vec![lab.host(host.parse()?)?]
        };
        print!("{}", logs::digest(&hosts));
        for host in hosts {
            for program in logs::programs(&host) {
                println!("{}/{program}", host.id());
            }
        }
        Ok(())
    }
}

fn whole(lab: &Lab, host: HostId, program: &str) -> Result<(), Error> {
    let host = lab.host(host)?;
    let known = logs::programs(&host);
    if !known.iter().any(|name| name == program) {
        return Err(Error::Invalid(format!(
            "{} has no log of {program:?}: it has {}",
            host.id(),
            known.join(", ")
        )));
    }
    let path = host.log(program);
    let text = std::fs::read(&path).map_err(Error::files("read", &path))?;
    // A reader that has seen enough is no error.
    let _ = io::stdout().write_all(&text);
    Ok(())
}
