//! The holder, as the keeper sees it: somebody in another container who keeps the listeners
//! too, and may come and go.
//!
//! Nothing here ever holds up a program: without a holder it serves as well, and whoever
//! comes later is given what there is.

use std::{
    io::{self, Read},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use super::{
    handles::{borrowed, receive, send},
    hold::MOMENT,
};

/// How often a holder that is not there is looked for.
const AGAIN: Duration = Duration::from_secs(1);

/// A holder that is there, or will be.
#[derive(Debug)]
pub(super) struct Holder {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    link: Option<UnixStream>,
    /// Nothing until the program listens.
    ours: Vec<OwnedFd>,
}

impl Holder {
    /// Looks for the holder. Returns what a program that is no more has left there.
    pub(super) fn find(path: &Path) -> io::Result<(Self, Vec<OwnedFd>)> {
        let found = connect(path).ok();
        let (link, left) = found.unzip();
        let waiting = link.as_ref().map(UnixStream::try_clone).transpose()?;
        let state = State {
            link,
            ours: Vec::new(),
        };
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            state: Mutex::new(state),
        });
        let holder = Self {
            shared: Arc::clone(&shared),
        };
        thread::Builder::new()
            .name("holder".to_owned())
            .spawn(move || shared.stay_in_touch(waiting))?;
        Ok((holder, left.unwrap_or_default()))
    }

    /// Gives the holder what the program listens on now.
    pub(super) fn give(&self, ours: &[OwnedFd]) {
        let ours = ours.iter().map(OwnedFd::try_clone);
        let mut state = self.shared.lock();
        match ours.collect() {
            Ok(ours) => state.ours = ours,
            Err(error) => tracing::warn!(%error, "a second container can't keep the listeners"),
        }
        state.tell();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the holder's end, then for the next one.
    fn stay_in_touch(&self, mut link: Option<UnixStream>) {
        loop {
            if let Some(mut link) = link {
                // It says nothing more.
                let _ = link.read(&mut [0]);
                self.lock().link = None;
            }
            thread::sleep(AGAIN);
            // What it holds is ours anyway, or of nobody.
            link = connect(&self.path).ok().map(|(link, _)| link);
            let mut state = self.lock();
            state.link = link.as_ref().and_then(|link| link.try_clone().ok());
            state.tell();
        }
    }
}

impl State {
    fn tell(&self) {
        let Some(link) = &self.link else { return };
        if self.ours.is_empty() {
            return;
        }
        match send(link, &borrowed(&self.ours)) {
            Ok(()) => tracing::info!("a second container keeps the listeners too"),
            // Its end is seen by the one that waits for it.
            Err(error) => tracing::warn!(%error, "a second container can't keep the listeners"),
        }
    }
}

fn connect(path: &Path) -> io::Result<(UnixStream, Vec<OwnedFd>)> {
    let link = UnixStream::connect(path)?;
    link.set_read_timeout(Some(MOMENT))?;
    link.set_write_timeout(Some(MOMENT))?;
    let left = receive(&link)?;
    link.set_read_timeout(None)?;
    Ok((link, left))
}
