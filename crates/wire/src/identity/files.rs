//! Files that are followed: looked at every second, read again when they changed.
//!
//! Polling and not inotify, on purpose: it sees renames, `..data` symlink swaps, bind mounts and
//! network file systems alike, and costs two `stat`s per second. All files of one value are read
//! as a set, and a set that can't be used is looked at twice before anyone is told, since two
//! files can't be replaced at once and the set may be half new.

use std::{
    fmt, fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, SystemTime},
};

use super::Error;

/// How often files are looked at. Kubernetes takes up to a minute to bring a new Secret to a
/// node, so a second is nothing.
const INTERVAL: Duration = Duration::from_secs(1);

/// A value that can be loaded again.
pub(super) trait Follows: fmt::Debug + Send + Sync {
    /// Takes the new content over, or says why not and stays as it is.
    fn load(&self, content: &Content) -> Result<(), Error>;
}

/// What a set of files holds, in the order in which they were named.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Content(Vec<Vec<u8>>);

/// What tells that a file changed, without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    len: u64,
    modified: Option<SystemTime>,
    changed: (i64, i64),
}

/// A set of files and the value made from them.
#[derive(Debug)]
pub struct Followed {
    what: &'static str,
    paths: Vec<PathBuf>,
    value: Arc<dyn Follows>,
    /// How the files looked when they were read last; None after a failure to look.
    stamps: Option<Vec<Stamp>>,
    /// What the value was last loaded from, or last failed to load from.
    tried: Content,
    trouble: Trouble,
}

/// How bad it is that the files can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Trouble {
    /// The value is what the files say.
    None,
    /// Seen once: perhaps somebody is writing.
    Seen(Error),
    /// Told.
    Told(Error),
}

/// How often files were taken over, and how often they could not be.
#[derive(Debug, Default)]
pub struct Counts {
    reloads: AtomicU64,
    failures: AtomicU64,
}

/// The thread that looks after [`Followed`] files. Stops when dropped.
#[derive(Debug)]
pub struct Follower {
    counts: Arc<Counts>,
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<thread::JoinHandle<()>>,
}

// === impl Content ===

impl Content {
    pub(super) fn read(paths: &[PathBuf]) -> Result<Self, Error> {
        paths
            .iter()
            .map(|path| read(path))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub(super) fn file(&self, index: usize) -> &[u8] {
        self.0.get(index).map(Vec::as_slice).unwrap_or_default()
    }
}

impl fmt::Debug for Content {
    /// Without the bytes: they may be a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Content").field(&self.0.len()).finish()
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|error| Error::Read {
        path: path.to_owned(),
        reason: error.to_string(),
    })
}

fn stamps(paths: &[PathBuf]) -> Option<Vec<Stamp>> {
    let stamp = |path: &PathBuf| {
        let meta = fs::metadata(path).ok()?;
        Some(Stamp {
            device: meta.dev(),
            inode: meta.ino(),
            len: meta.len(),
            modified: meta.modified().ok(),
            changed: (meta.ctime(), meta.ctime_nsec()),
        })
    };
    paths.iter().map(stamp).collect()
}

// === impl Followed ===

impl Followed {
    pub(super) fn new(
        what: &'static str,
        paths: Vec<PathBuf>,
        content: Content,
        value: Arc<dyn Follows>,
    ) -> Self {
        // No stamps yet: they were not taken before the reading, so the first look reads again.
        Self {
            what,
            paths,
            value,
            stamps: None,
            tried: content,
            trouble: Trouble::None,
        }
    }

    /// Looks at the files once.
    pub(super) fn look(&mut self, counts: &Counts) {
        let stamps = stamps(&self.paths);
        let unchanged = stamps.is_some() && stamps == self.stamps;
        if unchanged && !matches!(self.trouble, Trouble::Seen(_)) {
            return;
        }
        // Taken before the reading: a change during it is seen by the next look.
        self.stamps = stamps;
        match Content::read(&self.paths).and_then(|content| self.take_over(content)) {
            Ok(Some(())) => {
                counts.reloads.fetch_add(1, Relaxed);
                tracing::info!(what = self.what, files = %self.names(), "files reloaded");
            }
            Ok(None) => {}
            Err(error) => self.complain(error, counts),
        }
    }

    /// Loads `content` if it is new; says whether it was.
    fn take_over(&mut self, content: Content) -> Result<Option<()>, Error> {
        if content == self.tried {
            return match &self.trouble {
                Trouble::None => Ok(None),
                // Missing files that came back as they were.
                Trouble::Seen(Error::Read { .. }) | Trouble::Told(Error::Read { .. }) => {
                    self.trouble = Trouble::None;
                    Ok(None)
                }
                Trouble::Seen(error) | Trouble::Told(error) => Err(error.clone()),
            };
        }
        let loaded = self.value.load(&content);
        self.tried = content;
        loaded?;
        self.trouble = Trouble::None;
        Ok(Some(()))
    }

    fn complain(&mut self, error: Error, counts: &Counts) {
        self.trouble = match &self.trouble {
            Trouble::Seen(seen) if *seen == error => {
                counts.failures.fetch_add(1, Relaxed);
                tracing::error!(
                    what = self.what,
                    error = %error,
                    "files can't be used: the old ones stay in use"
                );
                Trouble::Told(error)
            }
            Trouble::Told(told) if *told == error => return,
            _ => Trouble::Seen(error),
        };
    }

    fn names(&self) -> String {
        let names: Vec<_> = self
            .paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        names.join(" ")
    }
}

// === impl Counts ===

impl Counts {
    /// How often new files were taken over.
    pub fn reloads(&self) -> u64 {
        self.reloads.load(Relaxed)
    }

    /// How often new files could not be used.
    pub fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }
}

// === impl Follower ===

impl Follower {
    /// Starts to look after `files`.
    pub fn start(mut files: Vec<Followed>) -> std::io::Result<Self> {
        let counts = Arc::new(Counts::default());
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let (thread_counts, thread_stop) = (Arc::clone(&counts), Arc::clone(&stop));
        let run = move || {
            while !wait(&thread_stop) {
                for followed in &mut files {
                    followed.look(&thread_counts);
                }
            }
        };
        let thread = thread::Builder::new()
            .name("files".to_owned())
            // Parses certificates and logs; the default of 2 MiB is not touched either, but
            // counts in some limits.
            .stack_size(256 * 1024)
            .spawn(run)?;
        Ok(Self {
            counts,
            stop,
            thread: Some(thread),
        })
    }

    /// For metrics.
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }
}

/// Waits for the next look; true when there is none.
fn wait(stop: &(Mutex<bool>, Condvar)) -> bool {
    let (stopped, changed) = stop;
    let guard = stopped.lock().unwrap_or_else(PoisonError::into_inner);
    let (guard, _) = changed
        .wait_timeout_while(guard, INTERVAL, |stopped| !*stopped)
        .unwrap_or_else(PoisonError::into_inner);
    *guard
}

impl Drop for Follower {
    fn drop(&mut self) {
        let (stopped, changed) = &*self.stop;
        *stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It does not panic; if it did, there is nothing to do about it here.
            let _ = thread.join();
        }
    }
}
