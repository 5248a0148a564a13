//! Whether the API server can be reached from here: the truth behind `/readyz`.
//!
//! Bytes that come back through a live connection are the best proof and cost nothing. Without
//! any, a probe goes the whole way now and then. Only a probe says "down", so that one unlucky
//! connection does not, and every change is logged once.

mod probe;

use std::{
    io,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

pub(crate) use probe::Probe;

/// How long an answer counts as recent before a probe makes sure.
const FRESH: Duration = Duration::from_secs(30);
/// How soon a probe follows one that failed, growing to [`SLOWEST`].
const RETRY: Duration = Duration::from_millis(500);
const SLOWEST: Duration = Duration::from_secs(10);
/// How soon a probe follows another because a connection failed.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// What is known about the upstream.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Set by workers whenever bytes come back, cleared by the thread here.
    answered: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
    probes: AtomicU64,
    failures: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    verdict: Verdict,
    last_answer: Option<Instant>,
    suspect: bool,
}

/// How the upstream stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Not tried yet.
    #[default]
    Unknown,
    /// It answered recently, all the way.
    Up,
    /// It did not, for this reason.
    Down(String),
}

impl Health {
    /// Bytes came back from the API server.
    pub(crate) fn answered(&self) {
        // Read first: all workers would fight for the line otherwise.
        if !self.answered.load(Relaxed) {
            self.answered.store(true, Relaxed);
        }
    }

    /// A connection failed on the way: worth a look.
    pub(crate) fn suspect(&self) {
        let mut state = self.lock();
        if !state.suspect {
            state.suspect = true;
            self.changed.notify_all();
        }
    }

    pub(crate) fn verdict(&self) -> Verdict {
        self.lock().verdict.clone()
    }

    /// Seconds since the last answer, if there was one.
    pub(crate) fn age(&self) -> Option<Duration> {
        self.lock().last_answer.map(|at| at.elapsed())
    }

    /// How many probes there were, and how many failed.
    pub(crate) fn probes(&self) -> (u64, u64) {
        (self.probes.load(Relaxed), self.failures.load(Relaxed))
    }

    /// Watches for as long as the process lives.
    pub(crate) fn watch(self: &Arc<Self>, probe: Probe) -> io::Result<()> {
        let health = Arc::clone(self);
        thread::Builder::new()
            .name("health".to_owned())
            .spawn(move || {
                let mut retry = RETRY;
                loop {
                    let result = probe.run();
                    retry = health.conclude(result, retry, &probe);
                    health.rest(retry);
                }
            })?;
        Ok(())
    }

    /// Takes the result of a probe over; says how long to wait after a failure.
    fn conclude(&self, result: Result<(), String>, retry: Duration, probe: &Probe) -> Duration {
        self.probes.fetch_add(1, Relaxed);
        let (verdict, next) = match result {
            Ok(()) => (Verdict::Up, RETRY),
            Err(reason) => {
                self.failures.fetch_add(1, Relaxed);
                (Verdict::Down(reason), (retry * 2).min(SLOWEST))
            }
        };
        let mut state = self.lock();
        state.suspect = false;
        if verdict == Verdict::Up {
            state.last_answer = Some(Instant::now());
        }
        let changed = state.verdict != verdict;
        state.verdict = verdict.clone();
        drop(state);
        match verdict {
            Verdict::Down(reason) if changed => {
                tracing::warn!(upstream = %probe.target(), %reason, "API server can't be reached: trying again");
            }
            Verdict::Up if changed => {
                tracing::info!(upstream = %probe.target(), "API server reached");
            }
            _ => {}
        }
        next
    }

    /// Waits until the next probe is due.
    fn rest(&self, retry: Duration) {
        let began = Instant::now();
        let mut state = self.lock();
        loop {
            if self.answered.swap(false, Relaxed) {
                if state.verdict != Verdict::Up {
                    // Something passes after all: worth a look.
                    return;
                }
                state.last_answer = Some(Instant::now());
            }
            let due = match (&state.verdict, state.suspect) {
                (Verdict::Up, false) => state.last_answer.unwrap_or(began) + FRESH,
                (Verdict::Up, true) => began + AFTER_FAILURE,
                (Verdict::Down(_) | Verdict::Unknown, _) => began + retry,
            };
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            // Looked at every few seconds, for the answers that workers note.
            let nap = left.min(FRESH / 6);
            (state, _) = self
                .changed
                .wait_timeout(state, nap)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
