//! Reading the routes file again when it changes.
//!
//! Looks at the file a few times per second rather than waiting for events: that
//! sees a file written in place, one renamed into its place and the `..data` link
//! of a Kubernetes volume alike, on every file system. A file that can't be used
//! changes nothing and is told once.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use crate::{
    file::{self, FileError},
    metrics::Metrics,
    table::Router,
};

/// A file, the table it feeds, and where that is counted.
#[derive(Debug)]
pub struct Reloader {
    path: PathBuf,
    router: Arc<Router>,
    metrics: Arc<Metrics>,
    seen: Option<Fingerprint>,
}

/// Ends the watching when dropped.
#[derive(Debug)]
pub struct Watching(Arc<AtomicBool>);

/// What differs when a file is not the same as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fingerprint {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

/// Often enough that a person does not wait, seldom enough to cost nothing.
const INTERVAL: Duration = Duration::from_millis(250);

impl Reloader {
    /// Reads the file for the first time.
    pub fn start(
        path: PathBuf,
        router: Arc<Router>,
        metrics: Arc<Metrics>,
    ) -> Result<Self, FileError> {
        let mut reloader = Self {
            path,
            router,
            metrics,
            seen: None,
        };
        reloader.seen = reloader.fingerprint();
        reloader.load()?;
        Ok(reloader)
    }

    /// Keeps looking in the background until the answer is dropped.
    pub fn watch(mut self) -> std::io::Result<Watching> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        thread::Builder::new()
            .name("reload".into())
            .spawn(move || {
                while !stopped.load(Relaxed) {
                    thread::sleep(INTERVAL);
                    self.check();
                }
            })?;
        Ok(Watching(stop))
    }

    /// Reads the file if it changed since the last look.
    pub fn check(&mut self) {
        let now = self.fingerprint();
        if now == self.seen {
            return;
        }
        self.seen = now;
        match self.load() {
            Ok(()) => {
                let routes = self.router.table().len();
                tracing::info!(file = %self.path.display(), routes, "routes reloaded");
            }
            Err(error) => {
                self.metrics.reload_failures.fetch_add(1, Relaxed);
                self.metrics.file_good.store(0, Relaxed);
                tracing::error!(%error, "routes file can't be used, the routes before it stay");
            }
        }
    }

    fn load(&self) -> Result<(), FileError> {
        self.metrics.reloads.fetch_add(1, Relaxed);
        let routes = file::load(&self.path)?;
        self.router
            .update(|table| table.replaced(routes.iter().map(|(host, spec)| (host.clone(), spec))));
        self.metrics.file_good.store(1, Relaxed);
        Ok(())
    }

    fn fingerprint(&self) -> Option<Fingerprint> {
        let metadata = fs::metadata(&self.path).ok()?;
        Some(Fingerprint {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        })
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn routes(name: &str) -> String {
        format!("routes:\n- host: {name}\n  backends: ['10.0.0.1:6443']\n")
    }

    fn start(path: PathBuf) -> Reloader {
        Reloader::start(path, Arc::default(), Arc::new(Metrics::new(10))).unwrap()
    }

    #[test]
    fn a_broken_file_keeps_the_old_routes_and_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("routes.yaml");
        fs::write(&path, routes("old.example.com")).unwrap();
        let mut reloader = start(path.clone());
        fs::write(&path, "routes: [").unwrap();
        reloader.check();
        reloader.check();
        assert!(reloader.router.lookup("old.example.com").is_some());
        assert_eq!(reloader.metrics.reload_failures.load(Relaxed), 1);
        assert_eq!(reloader.metrics.file_good.load(Relaxed), 0);
        fs::remove_file(&path).unwrap();
        reloader.check();
        assert!(reloader.router.lookup("old.example.com").is_some());
        fs::write(&path, routes("new.example.com")).unwrap();
        reloader.check();
        assert!(reloader.router.lookup("old.example.com").is_none());
        assert!(reloader.router.lookup("new.example.com").is_some());
        assert_eq!(reloader.metrics.file_good.load(Relaxed), 1);
    }

    #[test]
    fn the_data_link_of_a_kubernetes_volume_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        for (version, name) in [("v1", "one.example.com"), ("v2", "two.example.com")] {
            fs::create_dir(dir.path().join(version)).unwrap();
            fs::write(dir.path().join(version).join("routes.yaml"), routes(name)).unwrap();
        }
        let data = dir.path().join("..data");
        symlink("v1", &data).unwrap();
        let path = dir.path().join("routes.yaml");
        symlink("..data/routes.yaml", &path).unwrap();
        let mut reloader = start(path);
        let next = dir.path().join("..data_tmp");
        symlink("v2", &next).unwrap();
        fs::rename(&next, &data).unwrap();
        reloader.check();
        assert!(reloader.router.lookup("two.example.com").is_some());
    }
}
