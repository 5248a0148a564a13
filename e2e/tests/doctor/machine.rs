//! A machine whose own clock is an hour ahead, for whoever runs doctor to sit at.
//!
//! It has a kernel of its own, and systemd: here the command for a wrong clock can be
//! pasted, and does what it does on anybody's machine. This machine's clock is not touched,
//! which is looked at.

use std::path::Path;
use std::process::Output;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, ensure};
use steward_lab::Guest;
use steward_lab::progress::Progress;

use crate::scene::Scene;

const HOUR: Duration = Duration::from_hours(1);

/// The machine, with what doctor needs there.
pub(crate) struct Machine {
    guest: Guest,
    steward: String,
    kubeconfig: String,
    began: (SystemTime, Instant),
}

impl Machine {
    /// `steward …` there, against the management cluster.
    pub(crate) async fn steward(&self, words: &[&str]) -> Result<Output> {
        let (steward, kubeconfig) = (&self.steward, &self.kubeconfig);
        let line = format!("{steward} --kubeconfig {kubeconfig} {}", words.join(" "));
        Ok(self.guest.exec(&line).await?)
    }

    /// Runs what doctor says to paste, as a person at this machine would.
    pub(crate) async fn paste(&self, fix: &str) -> Result<String> {
        let folder = Path::new(&self.steward).parent().unwrap_or(Path::new("/"));
        let script = format!(
            "export KUBECONFIG={} PATH={}:$PATH\n{fix}",
            self.kubeconfig,
            folder.display()
        );
        Ok(self.guest.script(&script).await?)
    }

    /// Whether the clock of the machine that runs the test has only gone on meanwhile.
    fn ours_was_left_alone(&self) -> Result<()> {
        let (clock, counter) = (self.began.0.elapsed()?, self.began.1.elapsed());
        ensure!(
            clock.abs_diff(counter) < HOUR / 2,
            "the machine's own clock was moved: it went on by {clock:?} in {counter:?}"
        );
        Ok(())
    }
}

impl Scene {
    /// Sits down at a machine with a wrong clock: from now on, doctor is run there.
    pub(crate) async fn sit_at_a_wrong_clock(&self) -> Result<()> {
        let began = (SystemTime::now(), Instant::now());
        let guest = self.stage.lab.guest(HOUR, &Progress::stderr()).await?;
        let machine = Machine {
            steward: guest.put(&self.steward)?,
            kubeconfig: guest.put(&self.kubeconfig)?,
            guest,
            began,
        };
        *self.machine.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(machine));
        Ok(())
    }

    /// The machine that doctor is run on, if it is not the client's host.
    pub(crate) fn machine(&self) -> Option<Arc<Machine>> {
        let machine = self.machine.lock();
        machine.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Goes back to the client's host, and ends the machine.
    pub(crate) fn get_up(&self) -> Result<()> {
        let machine = self.machine.lock();
        let left = machine.unwrap_or_else(PoisonError::into_inner).take();
        left.map_or(Ok(()), |machine| machine.ours_was_left_alone())
    }
}
