//! How long to wait after a failure: longer each time, per object, so that one broken tenant costs the
//! others nothing.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// The first retry comes quickly: most failures are conflicts or a restart somewhere.
const FIRST: Duration = Duration::from_millis(500);
/// The longest wait; what heals is noticed at the latest after this.
const LONGEST: Duration = Duration::from_mins(2);

/// Failures in a row, by object.
#[derive(Default)]
pub struct Backoff<K>(Mutex<HashMap<K, u32>>);

impl<K: Hash + Eq + Clone> Backoff<K> {
    /// Notes one more failure and says how long to wait.
    pub fn failed(&self, key: &K) -> Duration {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failures.entry(key.clone()).or_default();
        *count = count.saturating_add(1);
        delay(key, *count)
    }

    /// Notes success: the next failure starts anew.
    pub fn succeeded(&self, key: &K) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(key);
    }
}

fn delay<K: Hash>(key: &K, failures: u32) -> Duration {
    let doubled = FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16));
    spread(key, doubled.min(LONGEST))
}

/// Up to a tenth more, always the same for the same object, so that a thousand of them do not come back
/// at the same moment.
pub fn spread<K: Hash>(key: &K, delay: Duration) -> Duration {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let thousandth = u32::try_from(hasher.finish() % 100).unwrap_or(0);
    delay + delay / 1000 * thousandth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_waits_longer_up_to_two_minutes_and_success_starts_anew() {
        let backoff = Backoff::default();
        let waits: Vec<Duration> = (0..12).map(|_| backoff.failed(&"a")).collect();
        assert!(waits[0] < Duration::from_secs(1));
        assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!(waits[11] >= LONGEST && waits[11] <= LONGEST + LONGEST / 10);
        backoff.succeeded(&"a");
        assert_eq!(backoff.failed(&"a"), waits[0]);
    }

    #[test]
    fn one_object_does_not_make_another_wait() {
        let backoff = Backoff::default();
        for _ in 0..10 {
            backoff.failed(&"a");
        }
        assert!(backoff.failed(&"b") < Duration::from_secs(1));
    }
}
