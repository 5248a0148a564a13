//! Faults on demand. Each is a value: it lasts as long as the value does, and is
//! undone when the value is dropped or healed.
//!
//! Network faults live in the router, through which all traffic between hosts
//! passes, whatever its addresses: every packet is marked with the port it came in
//! by (see `net`), so that a rule can say "from this host to that one" and means
//! load balancer addresses and pods as well. Programs are killed and frozen with
//! [`Host::nudge`](crate::Host::nudge), names broken with
//! [`Lab::dns_mood`](crate::Lab::dns_mood). The clock of a host cannot be moved: the
//! kernel has one wall clock for all namespaces, and a lab may not touch the machine's.
//! A machine with a wrong clock is a [`Guest`](crate::Guest), which has its own kernel.

mod delay;
mod disk;
mod network;

use std::process::Command;

pub use self::{delay::serve as serve_delay, network::Allowed};
use crate::{Error, Host, host::last_words};

/// A fault that is in force.
#[derive(Debug)]
#[must_use = "a fault is undone when it is dropped"]
pub struct Fault {
    host: Host,
    undo: String,
    stop: Option<String>,
    healed: bool,
}

impl Fault {
    fn new(host: &Host, undo: String) -> Self {
        Self {
            host: host.clone(),
            undo,
            stop: None,
            healed: false,
        }
    }

    /// Undoes it.
    pub fn heal(mut self) -> Result<(), Error> {
        self.undo()
    }

    fn undo(&mut self) -> Result<(), Error> {
        if self.healed {
            return Ok(());
        }
        self.healed = true;
        if let Some(program) = &self.stop {
            self.host.stop(program)?;
        }
        shell(&self.host, &self.undo)
    }
}

impl Drop for Fault {
    fn drop(&mut self) {
        // With the lab already gone there is nothing to undo.
        if self.host.pid().is_some()
            && let Err(error) = self.undo()
        {
            eprintln!(
                "cannot undo a fault on {}: {}",
                self.host.id(),
                error.chain()
            );
        }
    }
}

/// Runs a script on a host and waits for it: a few milliseconds, also in `drop`.
pub(crate) fn shell(host: &Host, script: &str) -> Result<(), Error> {
    let words = host.enter()?;
    let output = Command::new(&words[0])
        .args(&words[1..])
        .args(["sh", "-euc", script])
        .envs(host.environment())
        .output()
        .map_err(Error::files("start", "nsenter"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Command {
        what: format!("changing a fault on {}", host.id()),
        status: output.status.to_string(),
        output: last_words(&output),
    })
}
