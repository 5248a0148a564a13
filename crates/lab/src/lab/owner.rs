//! Ties a lab to the process that made it for a test.
//!
//! The process holds a lock on a file; a janitor waits for that lock. The kernel
//! gives it up when the process ends in whatever way, and the janitor removes the
//! lab.

use std::{
    fs::File,
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
};

use rustix::fs::{FlockOperation, flock};

use crate::{Error, LabName, Layout, host::MARK};

/// Held for as long as the lab should exist.
#[derive(Debug)]
pub(crate) struct Owner {
    _lock: File,
    janitor: std::process::Child,
}

impl Owner {
    /// Takes the lock and starts the janitor. The lab's folder exists.
    pub(super) fn take(layout: &Layout, program: &Path) -> Result<Self, Error> {
        let path = layout.folder().join("owner");
        let lock = File::create(&path).map_err(Error::files("make", &path))?;
        flock(&lock, FlockOperation::LockExclusive)
            .map_err(|e| Error::files("lock", &path)(e.into()))?;
        let janitor = Command::new("setsid")
            .arg(program)
            .args(["janitor", "--name", layout.name().as_str()])
            .env(MARK, layout.name().as_str())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(Error::files("start", program))?;
        Ok(Self {
            _lock: lock,
            janitor,
        })
    }

    /// Lets the lab live on.
    pub(super) fn release(mut self) {
        let _ = self.janitor.kill();
        let _ = self.janitor.wait();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Swept with the lab, or killed above; either way it should not stay a zombie.
        let _ = self.janitor.try_wait();
    }
}

/// What the janitor does: waits for the owner's end, then removes the lab.
pub(crate) fn clean_up_after_owner(name: &LabName) -> Result<(), Error> {
    let layout = Layout::new(name.clone());
    let path = layout.folder().join("owner");
    let lock = File::open(&path).map_err(Error::files("open", &path))?;
    flock(&lock, FlockOperation::LockShared).map_err(|e| Error::files("lock", &path)(e.into()))?;
    crate::sweep::sweep(&layout)
}
