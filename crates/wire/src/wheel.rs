//! Deadlines, cheaply: a wheel of coarse ticks.
//!
//! Every connection gets one deadline and almost none is ever reached, so
//! setting one must cost next to nothing and clearing one nothing at all. An
//! entry is not removed: when its tick comes, the owner looks whether the session
//! still exists and still waits.

use std::time::{Duration, Instant};

/// How coarse deadlines are. They guard against clients that say nothing for
/// seconds; a sixteenth of one more does no harm.
const TICK: Duration = Duration::from_millis(64);

/// Slots of the wheel: with the tick above, a turn is 65 s, longer than any
/// deadline given. Later ones come up early and are set again.
const SLOTS: u64 = 1024;

/// A point in time, in ticks since the wheel was made. Zero is "never".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Tick(u32);

#[derive(Debug)]
pub(crate) struct Wheel {
    epoch: Instant,
    /// All slots before this one are done.
    next: u64,
    slots: Vec<Vec<u64>>,
    entries: usize,
    /// No slot before this one has an entry.
    soonest: u64,
}

impl Tick {
    pub(crate) const NEVER: Self = Self(0);
}

impl Wheel {
    pub(crate) fn new(epoch: Instant) -> Self {
        let slots = (0..SLOTS).map(|_| Vec::new()).collect();
        Self {
            epoch,
            next: 1,
            slots,
            entries: 0,
            soonest: u64::MAX,
        }
    }

    /// The first tick that lies after `at`.
    pub(crate) fn tick(&self, at: Instant) -> Tick {
        let ticks = at.saturating_duration_since(self.epoch).as_millis() / TICK.as_millis() + 1;
        Tick(u32::try_from(ticks).unwrap_or(u32::MAX))
    }

    /// Puts `entry` where [`Wheel::expired`] finds it once `at` has passed.
    pub(crate) fn insert(&mut self, at: Tick, entry: u64) {
        let at = u64::from(at.0).clamp(self.next, self.next + SLOTS - 1);
        self.slots[slot(at)].push(entry);
        self.entries += 1;
        self.soonest = self.soonest.min(at);
    }

    /// How long until something may expire; `None` if nothing is set.
    pub(crate) fn wait(&self, now: Instant) -> Option<Duration> {
        if self.entries == 0 {
            return None;
        }
        let due = self.epoch + TICK * u32::try_from(self.soonest).unwrap_or(u32::MAX);
        Some(due.saturating_duration_since(now))
    }

    /// Takes out everything whose tick has passed.
    pub(crate) fn expired(&mut self, now: Instant, into: &mut Vec<u64>) {
        let passed = now.saturating_duration_since(self.epoch).as_millis() / TICK.as_millis();
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        if passed >= self.soonest {
            self.empty_until(passed, into);
        }
        self.next = self.next.max(passed + 1);
    }

    fn empty_until(&mut self, passed: u64, into: &mut Vec<u64>) {
        // After a long sleep one turn finds everything there is.
        let last = passed.min(self.next + SLOTS - 1);
        for tick in self.soonest.max(self.next)..=last {
            let slot = slot(tick);
            self.entries -= self.slots[slot].len();
            into.append(&mut self.slots[slot]);
            // A burst must not leave its memory in the slot for good.
            self.slots[slot].shrink_to(64);
        }
        self.soonest = if self.entries == 0 {
            u64::MAX
        } else {
            let ahead = last + 1..last + 1 + SLOTS;
            let full = |tick: &u64| !self.slots[slot(*tick)].is_empty();
            ahead.into_iter().find(full).unwrap_or(last + 1)
        };
    }
}

fn slot(tick: u64) -> usize {
    usize::try_from(tick % SLOTS).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_set_means_no_waiting_time() {
        assert_eq!(Wheel::new(Instant::now()).wait(Instant::now()), None);
    }

    #[test]
    fn an_entry_further_than_a_turn_comes_up_early_rather_than_never() {
        let epoch = Instant::now();
        let mut wheel = Wheel::new(epoch);
        wheel.insert(wheel.tick(epoch + Duration::from_hours(1)), 1);
        let mut found = Vec::new();
        wheel.expired(epoch + Duration::from_secs(70), &mut found);
        assert_eq!(found, [1]);
    }

    proptest! {
        #[test]
        fn entries_come_up_once_not_early_and_when_due(
            delays in proptest::collection::vec(0_u64..60_000, 1..50),
            steps in proptest::collection::vec(1_u64..9_000, 1..40),
        ) {
            let epoch = Instant::now();
            let mut wheel = Wheel::new(epoch);
            for (entry, delay) in (0_u64..).zip(&delays) {
                wheel.insert(wheel.tick(epoch + Duration::from_millis(*delay)), entry);
            }
            let mut at = 0;
            let mut seen = vec![false; delays.len()];
            for step in steps {
                at += step;
                let now = epoch + Duration::from_millis(at);
                let mut found = Vec::new();
                wheel.expired(now, &mut found);
                for entry in found {
                    let entry = usize::try_from(entry).unwrap();
                    prop_assert!(!seen[entry]);
                    seen[entry] = true;
                    prop_assert!(delays[entry] <= at);
                }
                for (entry, delay) in delays.iter().enumerate() {
                    prop_assert!(seen[entry] || delay + 128 > at);
                }
                prop_assert_eq!(wheel.wait(now).is_none(), seen.iter().all(|seen| *seen));
            }
        }
    }
}
