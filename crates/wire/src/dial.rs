//! Where an upstream is: all addresses of a name, best first, followed as they change.
//!
//! Owns names, never sockets: the engine connects, tells [`Upstream::failed`] and asks for the
//! next. Names are resolved on a thread of their own, because the system's resolver blocks, for
//! seconds when it wants to. A connection works on the list as it was when it started; the list
//! itself is an immutable value that is swapped.
//!
//! Order: what the name resolves to (or is said to be, by an alias), then pinned addresses, then
//! the internal endpoint. An address that did not answer goes to the end until the thread finds
//! that it answers again, so that it costs one connection its timeout and not every one.

mod resolve;
mod target;
#[cfg(test)]
mod tests;

use std::{
    io, mem,
    net::SocketAddr,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;

use crate::inbox::Waker;

pub use resolve::{Resolve, System};
pub use target::{Alias, BadTarget, Endpoint, Target};

/// How long addresses are used before the name is resolved again. The system's resolver does not
/// tell how long an answer may be kept; half a minute is what front doors are moved with.
const REFRESH: Duration = Duration::from_secs(30);
/// How soon a name that did not resolve is tried again, growing to [`SLOWEST`]: a node that
/// starts has no time to lose.
const RETRY: Duration = Duration::from_millis(500);
const SLOWEST: Duration = Duration::from_secs(5);
/// How soon a name is resolved again because an address failed.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// Addresses in the order in which to try them.
pub type Addresses = Arc<Vec<SocketAddr>>;

/// An upstream, followed by a thread that stops when this is dropped.
#[derive(Debug)]
pub struct Upstream {
    shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
}

/// One connection's way through the addresses.
#[derive(Debug, Clone, Default)]
pub struct Attempt {
    addresses: Option<Addresses>,
    next: usize,
}

/// What [`Upstream::next`] answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Try this one.
    Connect(SocketAddr),
    /// The name is being resolved for the first time: the waker will be used.
    Wait,
    /// Nothing is left to try.
    Exhausted,
}

/// How the name stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// Not tried yet.
    Pending,
    /// Resolved, or there is nothing to resolve.
    Known,
    /// The last try failed. What was known before is still used.
    Failed(String),
}

#[derive(Debug)]
struct Shared {
    target: Target,
    addresses: ArcSwap<Vec<SocketAddr>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    resolution: Resolution,
    /// What the name resolved to last.
    resolved: Vec<SocketAddr>,
    /// Those that did not answer, until they do.
    failed: Vec<SocketAddr>,
    /// When the name was last asked for, and when it will be next.
    last: Instant,
    due: Instant,
    retry: Duration,
    waiting: Vec<Waker>,
    stop: bool,
}

// === impl Upstream ===

impl Upstream {
    /// Starts to follow `target`. Never fails for what can't be resolved yet.
    pub fn start(target: Target, resolver: impl Resolve + 'static) -> io::Result<Self> {
        let now = Instant::now();
        let state = State {
            resolution: if target.needs_resolving() {
                Resolution::Pending
            } else {
                Resolution::Known
            },
            resolved: Vec::new(),
            failed: Vec::new(),
            last: now,
            due: now,
            retry: RETRY,
            waiting: Vec::new(),
            stop: false,
        };
        let shared = Arc::new(Shared {
            addresses: ArcSwap::from_pointee(target.addresses(&[])),
            target,
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let follower = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("resolver".to_owned())
            .spawn(move || while follower.turn(&resolver) {})?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// The next address for a connection. Does not block; `waker` is used once if the answer is
    /// [`Step::Wait`].
    pub fn next(&self, attempt: &mut Attempt, waker: impl FnOnce() -> Waker) -> Step {
        if attempt.addresses.is_none() && self.shared.addresses.load().is_empty() {
            let mut state = self.shared.lock();
            if state.resolution == Resolution::Pending {
                state.waiting.push(waker());
                return Step::Wait;
            }
        }
        let addresses = attempt
            .addresses
            .get_or_insert_with(|| self.shared.addresses.load_full());
        let Some(&address) = addresses.get(attempt.next) else {
            self.shared.hurry(&mut self.shared.lock());
            return Step::Exhausted;
        };
        attempt.next += 1;
        Step::Connect(address)
    }

    /// `address` did not answer, or not as it should: others come before it for a while, and the
    /// name is resolved again soon.
    pub fn failed(&self, address: SocketAddr) {
        let mut state = self.shared.lock();
        if !state.failed.contains(&address) {
            state.failed.push(address);
            self.shared.publish(&state);
        }
        self.shared.hurry(&mut state);
    }

    /// The addresses as they would be tried now.
    pub fn addresses(&self) -> Addresses {
        self.shared.addresses.load_full()
    }

    /// How the name stands.
    pub fn resolution(&self) -> Resolution {
        self.shared.lock().resolution.clone()
    }

    /// What is followed.
    pub fn target(&self) -> &Target {
        &self.shared.target
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
        // Not joined: it may sit in the system's resolver for many seconds, and it holds nothing
        // that anyone waits for.
        drop(self.thread.take());
    }
}

// === impl Shared ===

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the list out: those that failed come last, in the same order otherwise.
    fn publish(&self, state: &State) {
        let mut addresses = self.target.addresses(&state.resolved);
        addresses.sort_by_key(|address| state.failed.contains(address));
        self.addresses.store(Arc::new(addresses));
    }

    /// Brings the next resolution forward, but not closer than [`AFTER_FAILURE`] to the last.
    fn hurry(&self, state: &mut State) {
        let soon = state.last + AFTER_FAILURE;
        if soon < state.due {
            state.due = soon;
            self.changed.notify_all();
        }
    }

    /// Waits until it is time, resolves once, publishes. False when there is no more to do.
    fn turn(&self, resolver: &impl Resolve) -> bool {
        let mut state = self.lock();
        loop {
            if state.stop {
                return false;
            }
            let Some(wait) = state.due.checked_duration_since(Instant::now()) else {
                break;
            };
            if wait.is_zero() {
                break;
            }
            (state, _) = self
                .changed
                .wait_timeout(state, wait)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let failed = state.failed.clone();
        drop(state);
        let answer = self.target.resolve(resolver);
        let recovered: Vec<_> = failed
            .into_iter()
            .filter(|&address| resolver.answers(address))
            .collect();
        let mut state = self.lock();
        state.last = Instant::now();
        state.take(answer);
        let known = self.target.addresses(&state.resolved);
        state
            .failed
            .retain(|address| known.contains(address) && !recovered.contains(address));
        state.due = state.last + state.retry;
        self.publish(&state);
        for waker in mem::take(&mut state.waiting) {
            waker.wake();
        }
        true
    }
}

impl State {
    fn take(&mut self, answer: io::Result<Vec<SocketAddr>>) {
        match answer {
            Ok(resolved) => {
                self.resolved = resolved;
                self.resolution = Resolution::Known;
                self.retry = REFRESH;
            }
            Err(error) => {
                let backing_off = matches!(self.resolution, Resolution::Failed(_));
                self.retry = if backing_off {
                    (self.retry * 2).min(SLOWEST)
                } else {
                    RETRY
                };
                self.resolution = Resolution::Failed(error.to_string());
            }
        }
    }
}
