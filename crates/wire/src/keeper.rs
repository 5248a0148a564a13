//! A process that keeps the listening sockets of the one that serves, and starts it anew.
//!
//! A process that dies closes its listeners, and whoever connects next is refused until
//! somebody has started it again: seconds, in a cluster. With a keeper, the program runs
//! twice: once to serve, and once, above it, doing nothing but hold on to the listeners.
//! When the one that serves dies, clients wait in the kernel's queue for the few
//! milliseconds that the next one takes, and are served by it.
//!
//! A container may be ended with all its processes. Against that a [holder](hold) in another
//! container of the pod has the listeners too.
//!
//! The keeper acts on no other flag, opens nothing but the holder's socket and looks at no byte
//! of a client, so that there is little in it to fail. It refuses to hide what is broken for
//! good: bad flags, and a program that dies again and again, end it too.

mod handles;
pub mod hold;
mod holder;

use std::{
    cell::RefCell,
    collections::VecDeque,
    env, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{
            net::UnixStream,
            process::{CommandExt, ExitStatusExt},
        },
    },
    path::Path,
    process::{Child, Command, ExitCode, ExitStatus},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use signal_hook::{
    consts::{SIGCHLD, SIGINT, SIGTERM},
    iterator::Signals,
};

use crate::{
    Listen, ListenError,
    listener::{self, Listeners},
};
use handles::{borrowed, receive, send};
use holder::Holder;

/// Tells a process that it is the one that serves, and how many died before it.
const MARK: &str = "STEWARD_RESTARTED_IN_PLACE";

/// A program that dies more often than this within a minute is not worth starting again.
const PATIENCE: usize = 5;

/// What bad flags and files end with: starting again would not help.
const BAD_INPUT: i32 = 2;

/// What a program is to do after it asked for a keeper.
#[derive(Debug)]
pub enum Role {
    /// Serve, with what the keeper has.
    Serve(Keeper),
    /// End: it was the keeper, and whoever served is gone.
    End(ExitCode),
}

/// The keeper, as the process below it sees it; or that there is none.
#[derive(Debug, Default)]
pub struct Keeper {
    link: Option<OwnedFd>,
    /// Those of a process that died, until they are served.
    kept: RefCell<Vec<OwnedFd>>,
    heir: bool,
    restarts: u64,
}

/// Divides the program into keeper and server, if that is wanted. Comes first in `main`:
/// nothing that was made before is there in the server. A `holder` is the socket of one that
/// keeps the listeners too.
pub fn split(wanted: bool, holder: Option<&Path>) -> io::Result<Role> {
    match env::var(MARK) {
        _ if !wanted => Ok(Role::Serve(Keeper::default())),
        Ok(restarts) => Keeper::above(restarts.parse().unwrap_or(0)).map(Role::Serve),
        Err(_) => keep(holder).map(Role::End),
    }
}

// === impl Keeper ===

impl Keeper {
    fn above(restarts: u64) -> io::Result<Self> {
        // Without its keeper a server would go on unseen.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        let link = io::stdin().as_fd().try_clone_to_owned()?;
        let kept = receive(&link)?;
        Ok(Self {
            link: Some(link),
            heir: restarts > 0 || !kept.is_empty(),
            kept: RefCell::new(kept),
            restarts,
        })
    }

    /// How many processes served and died before this one.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Whether somebody served before this process, and died: what that one made, in this
    /// container or the one before it, is this one's to take away.
    pub fn heir(&self) -> bool {
        self.heir
    }

    /// The listeners: those of a process that died, or new ones, which are given to the
    /// keeper too.
    pub fn listeners(&self, listen: &[Listen], workers: usize) -> Result<Listeners, ListenError> {
        let Some(link) = &self.link else {
            return listener::bind_all(listen, workers);
        };
        let lost = |source| ListenError {
            address: listen.first().map_or_else(listener::nowhere, |l| l.address),
            source,
        };
        let mut listeners = match Listeners::again(self.kept.take(), listen, workers) {
            Some(listeners) => listeners,
            None => listener::bind_all(listen, workers)?,
        };
        listeners.restarts = self.restarts;
        send(link, &listeners.all()).map_err(lost)?;
        Ok(listeners)
    }
}

/// Starts the server until it ends well, and is told to.
fn keep(holder: Option<&Path>) -> io::Result<ExitCode> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGCHLD])?;
    let (holder, left) = holder.map(Holder::find).transpose()?.unzip();
    let mut kept = left.unwrap_or_default();
    let mut deaths = Deaths::default();
    loop {
        let (mut server, link) = start(deaths.count)?;
        // One that dies first takes nothing and gives nothing.
        if let Ok(listeners) = exchange(&link, &kept) {
            kept = listeners;
            if let Some(holder) = &holder {
                holder.give(&kept);
            }
        }
        let (status, asked) = wait(&mut server, &mut signals)?;
        let worth = !asked && !status.success() && status.code() != Some(BAD_INPUT);
        if !worth || !deaths.another(Instant::now()) {
            return Ok(code(status));
        }
        tracing::error!(
            %status,
            restarts = deaths.count,
            "the process that serves died; clients wait while it is started again"
        );
    }
}

/// Gives a server what is kept, and gets what it listens on.
fn exchange(link: &UnixStream, kept: &[OwnedFd]) -> io::Result<Vec<OwnedFd>> {
    send(link, &borrowed(kept))?;
    receive(link)
}

fn start(restarts: u64) -> io::Result<(Child, UnixStream)> {
    let (link, theirs) = UnixStream::pair()?;
    let mut words = env::args_os();
    let mut server = Command::new(env::current_exe()?);
    if let Some(name) = words.next() {
        server.arg0(name);
    }
    server
        .args(words)
        .env(MARK, restarts.to_string())
        .stdin(OwnedFd::from(theirs));
    Ok((server.spawn()?, link))
}

/// Waits for the end of the server, passing on every signal. Says whether it was asked to end.
fn wait(server: &mut Child, signals: &mut Signals) -> io::Result<(ExitStatus, bool)> {
    let mut asked = false;
    loop {
        if let Some(status) = server.try_wait()? {
            return Ok((status, asked));
        }
        for signal in signals.wait() {
            let passed = match signal {
                SIGTERM => Signal::TERM,
                SIGINT => Signal::INT,
                _ => continue,
            };
            asked = true;
            // One that is gone already is seen above.
            let _ = kill_process(Pid::from_child(server), passed);
        }
    }
}

fn code(status: ExitStatus) -> ExitCode {
    let killed = status.signal().map(|signal| 128 + signal);
    let code = status.code().or(killed).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// When servers died.
#[derive(Debug, Default)]
struct Deaths {
    count: u64,
    recent: VecDeque<Instant>,
}

impl Deaths {
    /// One more. Says whether it is worth another try.
    fn another(&mut self, now: Instant) -> bool {
        self.count += 1;
        self.recent.push_back(now);
        self.recent
            .retain(|then| now.saturating_duration_since(*then) < Duration::from_mins(1));
        self.recent.len() <= PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_dies_now_and_then_is_started_again_and_one_that_only_dies_is_not() {
        let start = Instant::now();
        let mut deaths = Deaths::default();
        for minute in 0..20 {
            assert!(deaths.another(start + Duration::from_mins(minute)));
        }
        let mut deaths = Deaths::default();
        let tries = (0..20).filter(|second| deaths.another(start + Duration::from_secs(*second)));
        assert_eq!(tries.count(), PATIENCE);
    }
}
