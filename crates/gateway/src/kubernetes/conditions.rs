//! Conditions in the words of the Gateway API.
//!
//! Owns building them and comparing old with new. The time of a condition's last
//! change is kept while its status stays the same, so that writing twice is
//! writing once.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

/// One condition as we decided it, before it gets a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// `Accepted`, `Programmed`, …
    pub kind: &'static str,
    /// True or False.
    pub holds: bool,
    /// One word for programs.
    pub reason: &'static str,
    /// One sentence for people.
    pub message: String,
}

impl Said {
    /// A condition that holds.
    pub fn yes(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind,
            holds: true,
            reason,
            message: message.into(),
        }
    }

    /// A condition that does not.
    pub fn no(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind,
            holds: false,
            reason,
            message: message.into(),
        }
    }
}

/// Gives what was said a time and generation, keeping the old time where the
/// status did not flip. Conditions of other types that were there are kept.
pub fn merge(
    old: &[Condition],
    said: &[Said],
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let mut merged: Vec<Condition> = old
        .iter()
        .filter(|c| said.iter().all(|s| s.kind != c.type_))
        .cloned()
        .collect();
    for s in said {
        let status = if s.holds { "True" } else { "False" };
        let since = old
            .iter()
            .find(|c| c.type_ == s.kind && c.status == status)
            .map_or(Time(now), |c| c.last_transition_time.clone());
        merged.push(Condition {
            type_: s.kind.to_owned(),
            status: status.to_owned(),
            reason: s.reason.to_owned(),
            message: s.message.clone(),
            observed_generation: generation,
            last_transition_time: since,
        });
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn saying_the_same_again_changes_nothing() {
        let said = [Said::yes("Accepted", "Accepted", "fine")];
        let first = merge(&[], &said, Some(3), at(1));
        let second = merge(&first, &said, Some(3), at(99));
        assert_eq!(first, second);
    }

    #[test]
    fn a_flip_gets_a_new_time_and_foreign_conditions_stay() {
        let mut old = merge(
            &[],
            &[Said::yes("Accepted", "Accepted", "fine")],
            Some(1),
            at(1),
        );
        old.push(Condition {
            type_: "Foreign".into(),
            ..old[0].clone()
        });
        let new = merge(
            &old,
            &[Said::no("Accepted", "NotAllowedByListeners", "no")],
            Some(2),
            at(9),
        );
        let accepted = new.iter().find(|c| c.type_ == "Accepted").unwrap();
        assert_eq!(accepted.last_transition_time, Time(at(9)));
        assert!(new.iter().any(|c| c.type_ == "Foreign"));
    }
}
