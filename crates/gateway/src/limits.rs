//! What limits are made of, without locks: connections at a time, handshakes per second.

use std::{
    sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

/// Time since the gateway started. Cheap to compare and to keep in an atomic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Clock(u64);

/// Counts connections against a limit.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU32);

/// Lets through so many per second, and a second's worth at once.
#[derive(Debug, Default)]
pub struct Bucket {
    /// When the bucket will be full again.
    full_at: AtomicU64,
}

const SECOND: u64 = 1_000_000_000;

impl Clock {
    /// The moment of the start.
    pub const fn zero() -> Self {
        Self(0)
    }

    /// `now`, given when the gateway started.
    pub fn since(start: Instant, now: Instant) -> Self {
        let passed = now.saturating_duration_since(start).as_nanos();
        Self(u64::try_from(passed).unwrap_or(u64::MAX))
    }

    /// A later moment.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }

    pub(crate) fn nanos(self) -> u64 {
        self.0
    }
}

impl Gauge {
    /// Counts one more, unless `limit` is reached.
    pub fn try_enter(&self, limit: Option<u32>) -> bool {
        let limit = limit.unwrap_or(u32::MAX);
        self.0
            .fetch_update(Relaxed, Relaxed, |live| (live < limit).then_some(live + 1))
            .is_ok()
    }

    /// Counts one less.
    pub fn leave(&self) {
        self.0.fetch_sub(1, Relaxed);
    }

    /// How many there are.
    pub fn get(&self) -> u32 {
        self.0.load(Relaxed)
    }
}

impl Bucket {
    /// Whether a second's worth could be taken at once.
    pub fn full(&self, now: Clock) -> bool {
        self.full_at.load(Relaxed) <= now.0
    }

    /// Takes one token of a bucket that fills at `rate` per second.
    pub fn try_take(&self, rate: u32, now: Clock) -> bool {
        let step = SECOND / u64::from(rate.max(1));
        self.full_at
            .fetch_update(Relaxed, Relaxed, |full_at| {
                let next = full_at.max(now.0) + step;
                (next <= now.0 + SECOND.max(step)).then_some(next)
            })
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_stops_at_its_limit_and_without_one_never() {
        let gauge = Gauge::default();
        assert!(gauge.try_enter(Some(1)));
        assert!(!gauge.try_enter(Some(1)));
        assert!(gauge.try_enter(None));
        gauge.leave();
        gauge.leave();
        assert!(gauge.try_enter(Some(1)));
    }

    #[test]
    fn a_bucket_gives_its_rate_in_every_second_and_one_second_ahead() {
        let bucket = Bucket::default();
        let mut now = Clock::zero();
        assert!(bucket.full(now));
        let taken = |now| (0..1000).filter(|_| bucket.try_take(10, now)).count();
        assert_eq!(taken(now), 10);
        assert!(!bucket.full(now));
        now = now.after(Duration::from_millis(500));
        assert_eq!(taken(now), 5);
        now = now.after(Duration::from_mins(1));
        assert_eq!(taken(now), 10);
    }

    #[test]
    fn a_rate_of_one_lets_one_through() {
        let bucket = Bucket::default();
        assert!(bucket.try_take(1, Clock::zero()));
        assert!(!bucket.try_take(1, Clock::zero()));
    }
}
