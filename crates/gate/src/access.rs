//! Who may come in, and how fast: source ranges, a number at a time, a number per second.
//!
//! Decided before anything of the client is parsed (or as soon as the PROXY header names it), so
//! that a refused client costs next to nothing.

use std::{
    net::IpAddr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use ipnet::IpNet;

/// A set of source ranges.
#[derive(Debug, Default)]
pub(crate) struct Ranges(Vec<IpNet>);

/// Limits for all connections together: one gate, one tenant.
#[derive(Debug)]
pub(crate) struct Limits {
    most: Option<u64>,
    live: AtomicU64,
    rate: Option<Mutex<Bucket>>,
}

/// A token bucket: full at first, refilled continuously, one second deep.
#[derive(Debug)]
struct Bucket {
    per_second: u64,
    /// In millionths, so that slow rates refill evenly too.
    tokens: u64,
    refilled: Instant,
}

/// Why a connection is one too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excess {
    /// Too many at a time.
    Connections,
    /// Too many per second.
    Rate,
}

const ONE: u64 = 1_000_000;

impl Ranges {
    pub(crate) fn new(ranges: &[IpNet]) -> Self {
        Self(ranges.to_vec())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// An IPv4 client of a socket that listens on IPv6 is still an IPv4 client.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|range| range.contains(&address))
    }
}

impl Limits {
    pub(crate) fn new(most: Option<u64>, per_second: Option<u64>, now: Instant) -> Self {
        let bucket = |per_second: u64| {
            Mutex::new(Bucket {
                per_second,
                tokens: per_second.saturating_mul(ONE),
                refilled: now,
            })
        };
        Self {
            most,
            live: AtomicU64::new(0),
            rate: per_second.map(bucket),
        }
    }

    /// Counts one connection in, or says why not.
    pub(crate) fn enter(&self, now: Instant) -> Result<(), Excess> {
        let before = self.live.fetch_add(1, Relaxed);
        if self.most.is_some_and(|most| before >= most) {
            self.leave();
            return Err(Excess::Connections);
        }
        let Some(rate) = &self.rate else {
            return Ok(());
        };
        if rate
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take(now)
        {
            return Ok(());
        }
        self.leave();
        Err(Excess::Rate)
    }

    /// Counts it out again.
    pub(crate) fn leave(&self) {
        self.live.fetch_sub(1, Relaxed);
    }
}

impl Bucket {
    fn take(&mut self, now: Instant) -> bool {
        let passed = now
            .saturating_duration_since(self.refilled)
            .min(Duration::from_secs(1));
        let micros = u64::try_from(passed.as_micros()).unwrap_or(ONE);
        self.refilled = self.refilled.max(now);
        let full = self.per_second.saturating_mul(ONE);
        self.tokens = full.min(
            self.tokens
                .saturating_add(micros.saturating_mul(self.per_second)),
        );
        let Some(left) = self.tokens.checked_sub(ONE) else {
            return false;
        };
        self.tokens = left;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv4_range_holds_mapped_addresses() {
        let ranges = Ranges::new(&["192.0.2.0/24".parse().unwrap()]);
        assert!(ranges.contains("192.0.2.9".parse().unwrap()));
        assert!(ranges.contains("::ffff:192.0.2.9".parse().unwrap()));
        assert!(!ranges.contains("192.0.3.9".parse().unwrap()));
        assert!(!ranges.contains("2001:db8::1".parse().unwrap()));
    }

    #[test]
    fn the_one_too_many_is_refused_until_another_leaves() {
        let now = Instant::now();
        let limits = Limits::new(Some(2), None, now);
        assert_eq!(limits.enter(now), Ok(()));
        assert_eq!(limits.enter(now), Ok(()));
        assert_eq!(limits.enter(now), Err(Excess::Connections));
        limits.leave();
        assert_eq!(limits.enter(now), Ok(()));
    }

    #[test]
    fn a_second_holds_so_many_and_refills_evenly() {
        let start = Instant::now();
        let limits = Limits::new(None, Some(4), start);
        let entered = |now| (0..10).filter(|_| limits.enter(now).is_ok()).count();
        assert_eq!(entered(start), 4);
        assert_eq!(entered(start + Duration::from_millis(249)), 0);
        assert_eq!(entered(start + Duration::from_millis(251)), 1);
        assert_eq!(entered(start + Duration::from_secs(100)), 4);
    }

    #[test]
    fn a_refused_connection_is_not_counted() {
        let now = Instant::now();
        let limits = Limits::new(Some(1), Some(1), now);
        assert_eq!(limits.enter(now), Ok(()));
        limits.leave();
        for _ in 0..5 {
            assert_eq!(limits.enter(now), Err(Excess::Rate));
        }
        assert_eq!(limits.enter(now + Duration::from_secs(1)), Ok(()));
    }
}
