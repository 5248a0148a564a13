//! The pure half of leader election: from what is seen to the next step.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;

/// The part of a Lease that says who holds it and whether the holder is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Who holds it, if anyone.
    pub holder: Option<String>,
    /// How long a silent holder keeps it.
    pub duration: Duration,
    /// The holder's last sign of life. Only ever compared for equality.
    pub renewed: Option<Timestamp>,
}

impl View {
    /// Reads a Lease.
    pub fn of(lease: &Lease) -> Self {
        let spec = lease.spec.as_ref();
        let seconds = spec
            .and_then(|spec| spec.lease_duration_seconds)
            .unwrap_or(15);
        Self {
            holder: spec
                .and_then(|spec| spec.holder_identity.clone())
                .filter(|holder| !holder.is_empty()),
            duration: Duration::from_secs(u64::try_from(seconds).unwrap_or(15)),
            renewed: spec
                .and_then(|spec| spec.renew_time.as_ref())
                .map(|time| time.0),
        }
    }
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is no Lease: make one, ours.
    Create,
    /// Nobody holds it, or the holder fell silent: write ourselves in.
    Take,
    /// We hold it: say that we live.
    Renew,
    /// Another holds it.
    Wait {
        /// Who.
        holder: String,
        /// How long until it is stale, if nothing changes.
        at_most: Duration,
    },
}

/// Decides the next step of `me`, who has seen the Lease unchanged for `unchanged`. A Lease that is gone keeps others
/// out for `duration`, as long as its holder may have gone on without noticing.
pub fn decide(lease: Option<&View>, me: &str, duration: Duration, unchanged: Duration) -> Step {
    let Some(lease) = lease else {
        if unchanged >= duration {
            return Step::Create;
        }
        return Step::Wait {
            holder: "a replica whose Lease was deleted".into(),
            at_most: duration.saturating_sub(unchanged),
        };
    };
    match &lease.holder {
        None => Step::Take,
        Some(holder) if holder == me => Step::Renew,
        Some(_) if unchanged >= lease.duration => Step::Take,
        Some(holder) => Step::Wait {
            holder: holder.clone(),
            at_most: lease.duration.saturating_sub(unchanged),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DURATION: Duration = Duration::from_secs(15);

    fn held_by(holder: Option<&str>) -> View {
        View {
            holder: holder.map(Into::into),
            duration: DURATION,
            renewed: None,
        }
    }

    #[test]
    fn the_first_candidate_makes_the_lease() {
        assert_eq!(decide(None, "a", DURATION, Duration::MAX), Step::Create);
    }

    #[test]
    fn a_lease_that_was_deleted_is_made_again_when_its_holder_has_noticed() {
        let early = decide(None, "a", DURATION, Duration::from_secs(14));
        assert!(matches!(early, Step::Wait { .. }), "{early:?}");
        assert_eq!(decide(None, "a", DURATION, DURATION), Step::Create);
    }

    #[test]
    fn a_lease_that_was_given_back_is_taken_at_once() {
        assert_eq!(
            decide(Some(&held_by(None)), "a", DURATION, Duration::ZERO),
            Step::Take
        );
    }

    #[test]
    fn the_holder_renews_however_old_the_record() {
        assert_eq!(
            decide(Some(&held_by(Some("a"))), "a", DURATION, DURATION * 3),
            Step::Renew
        );
    }

    #[test]
    fn a_living_holder_is_waited_for() {
        let step = decide(
            Some(&held_by(Some("b"))),
            "a",
            DURATION,
            Duration::from_secs(14),
        );
        assert_eq!(
            step,
            Step::Wait {
                holder: "b".into(),
                at_most: Duration::from_secs(1)
            }
        );
    }

    #[test]
    fn a_silent_holder_loses_it_after_the_whole_duration() {
        assert_eq!(
            decide(Some(&held_by(Some("b"))), "a", DURATION, DURATION),
            Step::Take
        );
    }

    #[test]
    fn a_lease_without_spec_is_free() {
        assert_eq!(View::of(&Lease::default()).holder, None);
    }
}
