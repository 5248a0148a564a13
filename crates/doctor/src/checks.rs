//! The catalogue, and how it is run.

use crate::evidence::{Evidence, Seen, Unseen};
use crate::finding::{Finding, Group, Remedy, Severity};

mod control_plane;
mod datastore;
mod fix;
mod front_door;
mod inside;
mod names;
mod nodes;
mod tls;

/// Something is wrong: how bad, what was seen, and a command that helps.
pub(crate) struct Wrong {
    severity: Severity,
    seen: String,
    fix: String,
    remedy: Option<Remedy>,
}

/// What a check says of the evidence.
pub(crate) enum Verdict {
    /// As it should be, and what was seen.
    Fine(String),
    /// It is not.
    Wrong(Box<Wrong>),
    /// Nothing to look at here.
    Skip,
}

impl Verdict {
    /// Broken.
    pub(crate) fn problem(seen: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::Wrong(Box::new(Wrong {
            severity: Severity::Problem,
            seen: seen.into(),
            fix: fix.into(),
            remedy: None,
        }))
    }

    /// Will bite later.
    pub(crate) fn warning(seen: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::Wrong(Box::new(Wrong {
            severity: Severity::Warning,
            seen: seen.into(),
            fix: fix.into(),
            remedy: None,
        }))
    }

    /// As it should be.
    pub(crate) fn fine(seen: impl Into<String>) -> Self {
        Self::Fine(seen.into())
    }

    /// There is something safe to do about it, as long as the operator makes good what is
    /// removed: it has to run, and not be told to keep its hands off.
    pub(crate) fn safely(self, e: &Evidence, remedy: Remedy) -> Self {
        let looked_after = !e.paused && e.operator.as_ref().is_ok_and(|o| o.ready > 0);
        match self {
            Self::Wrong(wrong) if looked_after => Self::Wrong(Box::new(Wrong {
                remedy: Some(remedy),
                ..*wrong
            })),
            other => other,
        }
    }
}

/// One check.
pub struct Check {
    /// Stable name.
    pub id: &'static str,
    /// Where it looks.
    pub group: Group,
    /// The statement that should be true.
    pub what: &'static str,
    /// Why it matters.
    pub why: &'static str,
    /// Checks whose failure explains that this one fails too.
    pub follows: &'static [&'static str],
    judge: fn(&Evidence) -> Verdict,
}

/// Every check, from outside in.
pub fn all() -> impl Iterator<Item = &'static Check> {
    [
        names::CHECKS,
        front_door::CHECKS,
        tls::CHECKS,
        datastore::CHECKS,
        control_plane::CHECKS,
        inside::CHECKS,
        nodes::CHECKS,
    ]
    .into_iter()
    .flatten()
}

/// Judges the evidence: causes first, from outside in; then what follows from them; then
/// warnings; then what is fine.
pub fn run(evidence: &Evidence) -> Vec<Finding> {
    let mut findings: Vec<Finding> = all().filter_map(|check| judge(check, evidence)).collect();
    let broken: Vec<&'static str> = findings
        .iter()
        .filter(|f| f.severity == Severity::Problem)
        .map(|f| f.check)
        .collect();
    for finding in &mut findings {
        if finding.severity > Severity::Fine {
            finding.follows_from.retain(|cause| broken.contains(cause));
        } else {
            finding.follows_from.clear();
        }
    }
    findings.sort_by_key(|f| {
        let follows = f.severity == Severity::Problem && !f.follows_from.is_empty();
        (std::cmp::Reverse(f.severity), follows, f.group)
    });
    findings
}

fn judge(check: &Check, evidence: &Evidence) -> Option<Finding> {
    let finding = |severity, evidence, fix: Option<String>, remedy| Finding {
        check: check.id,
        group: check.group,
        severity,
        what: check.what,
        evidence,
        why: fix.is_some().then_some(check.why),
        fix,
        follows_from: check.follows.to_vec(),
        remedy,
    };
    match (check.judge)(evidence) {
        Verdict::Skip => None,
        Verdict::Fine(seen) => Some(finding(Severity::Fine, seen, None, None)),
        Verdict::Wrong(w) => Some(finding(w.severity, w.seen, Some(w.fix), w.remedy)),
    }
}

/// Turns what could not be seen into a verdict: a failure is a problem, something
/// not looked at is passed over.
pub(crate) fn seen<T>(value: &Seen<T>, fix: impl FnOnce() -> String) -> Result<&T, Verdict> {
    value.as_ref().map_err(|unseen| match unseen {
        Unseen::Failed(why) => Verdict::problem(why, fix()),
        Unseen::NotLooked(_) => Verdict::Skip,
    })
}

#[cfg(test)]
mod tests;
