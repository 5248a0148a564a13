//! What a lab should be like.

use std::path::PathBuf;

use super::{KUBERNETES, Lab, make};
use crate::{Error, LabName, host_id::MOST_WORKERS, progress::Progress};

/// Settings of a lab. Everything has a default.
#[derive(Debug, Clone)]
pub struct Builder {
    pub(super) name: String,
    pub(super) workers: u8,
    pub(super) kubernetes: String,
    pub(super) bin_dir: Option<PathBuf>,
    pub(super) stays: bool,
    pub(super) progress: Progress,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            // Unique per process, so that test binaries do not meet.
            name: format!("t{}", std::process::id()),
            workers: 0,
            kubernetes: KUBERNETES.into(),
            bin_dir: None,
            stays: false,
            progress: Progress::silent(),
        }
    }
}

impl Builder {
    /// Its name; without one it is called after this process.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// How many worker hosts it has; none unless said.
    #[must_use]
    pub fn workers(mut self, workers: u8) -> Self {
        self.workers = workers;
        self
    }

    /// The management cluster's release, as `1.36.3`.
    #[must_use]
    pub fn kubernetes(mut self, version: impl Into<String>) -> Self {
        self.kubernetes = version.into();
        self
    }

    /// A folder with ready programs.
    #[must_use]
    pub fn bin_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.bin_dir = Some(folder.into());
        self
    }

    /// Lets the lab live on after this process. Otherwise it is removed when the
    /// [`Lab`] is dropped and when the process ends, however it ends.
    #[must_use]
    pub fn stays(mut self) -> Self {
        self.stays = true;
        self
    }

    /// Where to tell how far it is.
    #[must_use]
    pub fn progress(mut self, progress: Progress) -> Self {
        self.progress = progress;
        self
    }

    /// Makes it. If that fails, nothing of it is left.
    pub async fn up(self) -> Result<Lab, Error> {
        let name: LabName = self.name.parse()?;
        if self.workers > MOST_WORKERS {
            return Err(Error::Invalid(format!(
                "--workers {} is too many: ask for at most {MOST_WORKERS}",
                self.workers
            )));
        }
        make::up(self, name).await
    }
}
