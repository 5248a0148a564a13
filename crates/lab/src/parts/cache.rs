//! Where made parts live, and the rules that keep them whole.
//!
//! A part's folder appears by one rename, under a lock that other processes wait
//! for, after the disk was found large enough. An interrupted build leaves the Go
//! build cache behind, which is what lets the next one resume; a finished one
//! trims it. Nothing here knows how a part is made.

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
    process, thread,
    time::Duration,
};

use super::{Error, error::io};
use crate::progress::Progress;

/// Go's build cache above this size is removed once nobody builds: it would grow
/// to 9 GB with every part, and nothing is left to gain from it by then.
const GO_BUILD_LIMIT: u64 = 1 << 30;

/// How often a process that waits for another's build looks again.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The folder of everything that was made or fetched.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    root: PathBuf,
}

/// Something about to be made.
#[derive(Debug)]
pub(crate) struct Item<'a> {
    /// What people call it.
    pub(crate) label: &'a str,
    /// Its folder in the cache.
    pub(crate) name: &'a str,
    /// Free bytes it wants.
    pub(crate) room: u64,
}

impl Cache {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
        }
    }

    /// A finished folder.
    pub(crate) fn get(&self, name: &str) -> Option<PathBuf> {
        Some(self.parts().join(name)).filter(|folder| folder.is_dir())
    }

    /// Makes a folder by calling `fill` with an empty one to fill and a file to log
    /// into; whatever `fill` leaves in a subfolder `src` or `tmp` is thrown away.
    pub(crate) fn make(
        &self,
        item: &Item<'_>,
        progress: &Progress,
        fill: impl FnOnce(&Path, &Path) -> Result<(), Error>,
    ) -> Result<PathBuf, Error> {
        let parts = self.parts();
        fs::create_dir_all(&parts).map_err(io("create", &parts))?;
        let lock = parts.join(format!(".{}.lock", item.name));
        let _held = wait_for(&lock, item.label, progress)?;
        if let Some(folder) = self.get(item.name) {
            return Ok(folder);
        }
        self.check_room(item)?;
        let stage = parts.join(format!(".{}.making", item.name));
        let log = parts.join(format!(".{}.log", item.name));
        empty(&stage)?;
        let made = fill(&stage, &log).and_then(|()| self.finish(&stage, item.name));
        if made.is_err() {
            // Only the Go build cache is worth keeping from a build that failed.
            let _left = fs::remove_dir_all(&stage);
        }
        if !matches!(made, Err(Error::Build { .. })) {
            // Only that error sends the reader to the log.
            let _gone = fs::remove_file(&log);
        }
        made
    }

    fn finish(&self, stage: &Path, name: &str) -> Result<PathBuf, Error> {
        for scratch in ["src", "tmp"] {
            let scratch = stage.join(scratch);
            if scratch.exists() {
                fs::remove_dir_all(&scratch).map_err(io("remove", &scratch))?;
            }
        }
        let folder = self.parts().join(name);
        fs::rename(stage, &folder).map_err(io("move a finished part to", &folder))?;
        Ok(folder)
    }

    /// The folder for Go's build cache, held against trimming while the guard lives.
    pub(crate) fn go_build(&self) -> Result<(PathBuf, File), Error> {
        let folder = self.root.join("go-build");
        fs::create_dir_all(&folder).map_err(io("create", &folder))?;
        let path = self.root.join(".go-build.lock");
        let lock = open(&path)?;
        lock.lock_shared().map_err(io("lock", &path))?;
        Ok((folder, lock))
    }

    /// Removes Go's build cache if it is large and no process is building.
    pub(crate) fn trim_go_build(&self, progress: &Progress) {
        let folder = self.root.join("go-build");
        let Ok(lock) = open(&self.root.join(".go-build.lock")) else {
            return;
        };
        if lock.try_lock().is_err() {
            return;
        }
        let large = bytes_under(&folder);
        if large <= GO_BUILD_LIMIT {
            return;
        }
        // Renamed first: a trim that is interrupted must not leave half a cache.
        let old = self.root.join(format!(".go-build.old-{}", process::id()));
        if fs::rename(&folder, &old).is_ok() && fs::remove_dir_all(&old).is_ok() {
            progress.note(format_args!(
                "removed {} of Go's build cache, which is not needed any more",
                size(large)
            ));
        }
    }

    fn parts(&self) -> PathBuf {
        self.root.join("parts")
    }

    fn check_room(&self, item: &Item<'_>) -> Result<(), Error> {
        let at = self.parts();
        let have = room(&at)?;
        if have >= item.room {
            return Ok(());
        }
        Err(Error::Disk {
            part: item.label.to_owned(),
            need: item.room,
            have,
            at,
        })
    }
}

/// Free bytes where a path is.
fn room(path: &Path) -> Result<u64, Error> {
    let of = rustix::fs::statvfs(path)
        .map_err(|errno| io("measure the free disk at", path)(errno.into()))?;
    Ok(of.f_bavail.saturating_mul(of.f_frsize))
}

/// The lock of one item, once it is ours.
fn wait_for(path: &Path, label: &str, progress: &Progress) -> Result<File, Error> {
    let lock = open(path)?;
    let mut task = None;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) => {
                task.get_or_insert_with(|| progress.task(format!("{label}: another process")))
                    .at("is making it, waiting");
                thread::sleep(LOOK_EVERY);
            }
            Err(TryLockError::Error(source)) => return Err(io("lock", path)(source)),
        }
    }
}

fn open(path: &Path) -> Result<File, Error> {
    File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(io("open", path))
}

/// A folder with nothing in it.
fn empty(folder: &Path) -> Result<(), Error> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(io("empty", folder))?;
    }
    fs::create_dir_all(folder).map_err(io("create", folder))
}

/// Bytes of all files under a folder; what cannot be read counts nothing.
fn bytes_under(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => bytes_under(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Bytes as people say them.
#[expect(
    clippy::cast_precision_loss,
    reason = "one digit after the point is all that is shown"
)]
pub(crate) fn size(bytes: u64) -> String {
    const MB: u64 = 1_000_000;
    const GB: u64 = 1_000 * MB;
    if bytes >= GB {
        format!("{:.1} GB", bytes as f64 / GB as f64)
    } else {
        format!("{} MB", bytes / MB)
    }
}
