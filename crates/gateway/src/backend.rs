//! One address behind a route: how busy it is, and whether it answers.
//!
//! Health is learned from real connections only. An address that did not answer
//! rests for a while, longer each time; the first one that succeeds clears it.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use crate::limits::Clock;

/// A backend's address and state; the state outlives changes of its route.
#[derive(Debug)]
pub struct Backend {
    address: SocketAddr,
    live: AtomicU32,
    failures: AtomicU32,
    /// When it may be tried again.
    rests_until: AtomicU64,
}

/// The first rest; it doubles with every failure in a row.
const FIRST_REST: Duration = Duration::from_secs(1);

/// The longest rest: how late a repaired backend may be noticed while others work.
const LONGEST_REST: Duration = Duration::from_secs(30);

impl Backend {
    /// A backend about which nothing is known.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            live: AtomicU32::new(0),
            failures: AtomicU32::new(0),
            rests_until: AtomicU64::new(0),
        }
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections it carries now, those being opened included.
    pub fn live(&self) -> u32 {
        self.live.load(Relaxed)
    }

    /// Whether it may be tried.
    pub fn healthy(&self, now: Clock) -> bool {
        self.rests_until.load(Relaxed) <= now.nanos()
    }

    /// A connection to it begins.
    pub(crate) fn begin(&self) {
        self.live.fetch_add(1, Relaxed);
    }

    /// A connection to it ended, or never came about.
    pub(crate) fn end(&self) {
        self.live.fetch_sub(1, Relaxed);
    }

    /// It did not answer. Says whether it was thought healthy until now.
    pub(crate) fn failed(&self, now: Clock) -> bool {
        let before = self.failures.fetch_add(1, Relaxed);
        let rest = FIRST_REST
            .saturating_mul(1 << before.min(5))
            .min(LONGEST_REST);
        self.rests_until.store(now.after(rest).nanos(), Relaxed);
        before == 0
    }

    /// It answered. Says whether it was thought unhealthy until now.
    pub(crate) fn answered(&self) -> bool {
        if self.failures.load(Relaxed) == 0 {
            return false;
        }
        self.rests_until.store(0, Relaxed);
        self.failures.swap(0, Relaxed) != 0
    }

    fn rests_until(&self) -> u64 {
        self.rests_until.load(Relaxed)
    }
}

/// The backend to try next: of those not tried yet, a healthy one with the fewest
/// connections; if none is healthy, the one that rested longest. Equal ones take
/// turns, by `turn`. Backends past the 64th are tried by turn alone.
pub(crate) fn choose<B: AsRef<Backend>>(
    backends: &[B],
    tried: u64,
    turn: usize,
    now: Clock,
) -> Option<(usize, &B)> {
    let count = backends.len();
    (0..count)
        .map(|step| (step + turn) % count)
        .filter(|place| *place < 64 && tried & 1 << place == 0)
        .map(|place| (place, &backends[place]))
        .min_by_key(|(_, backend)| {
            let backend = backend.as_ref();
            let healthy = backend.healthy(now);
            let rest = if healthy { 0 } else { backend.rests_until() };
            (!healthy, rest, backend.live())
        })
}

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, sync::Arc};

    use super::*;

    fn backends(count: u16) -> Vec<Arc<Backend>> {
        (1..=count)
            .map(|port| Arc::new(Backend::new((Ipv4Addr::LOCALHOST, port).into())))
            .collect()
    }

    fn chosen(backends: &[Arc<Backend>], tried: u64, now: Clock) -> Option<usize> {
        choose(backends, tried, 0, now).map(|(place, _)| place)
    }

    #[test]
    fn the_least_busy_backend_is_chosen_and_equal_ones_take_turns() {
        let backends = backends(3);
        backends[0].begin();
        assert_eq!(chosen(&backends, 0, Clock::zero()), Some(1));
        assert_eq!(
            choose(&backends, 0, 2, Clock::zero()).map(|(place, _)| place),
            Some(2)
        );
    }

    #[test]
    fn a_resting_backend_is_tried_only_when_no_other_is_left() {
        let backends = backends(2);
        let now = Clock::zero();
        assert!(backends[0].failed(now));
        assert_eq!(chosen(&backends, 0, now), Some(1));
        assert_eq!(chosen(&backends, 0b10, now), Some(0));
        assert_eq!(chosen(&backends, 0b11, now), None);
    }

    #[test]
    fn rests_get_longer_and_end_with_an_answer() {
        let backend = Backend::new((Ipv4Addr::LOCALHOST, 1).into());
        let now = Clock::zero();
        for failure in 0..20 {
            assert_eq!(backend.failed(now), failure == 0);
        }
        assert!(!backend.healthy(now.after(LONGEST_REST / 2)));
        assert!(backend.healthy(now.after(LONGEST_REST)));
        assert!(backend.answered() && backend.healthy(now));
        assert!(!backend.answered());
    }
}
