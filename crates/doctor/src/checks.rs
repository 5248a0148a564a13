//! The catalogue, and how it is run.

use crate::evidence::{Evidence, Seen, Unseen};
use crate::finding::{Finding, Group, Severity};

mod control_plane;
mod front_door;
mod inside;
mod names;
mod tls;

/// What a check says of the evidence.
pub(crate) enum Verdict {
    /// As it should be, and what was seen.
    Fine(String),
    /// Wrong: how bad, what was seen, and a command that helps.
    Wrong(Severity, String, String),
    /// Nothing to look at here.
    Skip,
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
    judge: fn(&Evidence) -> Verdict,
}

/// Every check, from outside in.
pub fn all() -> impl Iterator<Item = &'static Check> {
    [
        names::CHECKS,
        front_door::CHECKS,
        tls::CHECKS,
        control_plane::CHECKS,
        inside::CHECKS,
    ]
    .into_iter()
    .flatten()
}

/// Judges the evidence: problems first, from outside in; then warnings; then what is fine.
pub fn run(evidence: &Evidence) -> Vec<Finding> {
    let mut findings: Vec<Finding> = all().filter_map(|check| judge(check, evidence)).collect();
    findings.sort_by_key(|f| (std::cmp::Reverse(f.severity), f.group));
    findings
}

fn judge(check: &Check, evidence: &Evidence) -> Option<Finding> {
    let (severity, seen, fix) = match (check.judge)(evidence) {
        Verdict::Skip => return None,
        Verdict::Fine(seen) => (Severity::Fine, seen, None),
        Verdict::Wrong(severity, seen, fix) => (severity, seen, Some(fix)),
    };
    Some(Finding {
        check: check.id,
        group: check.group,
        severity,
        what: check.what,
        evidence: seen,
        why: fix.is_some().then_some(check.why),
        fix,
    })
}

/// Turns what could not be seen into a verdict: a failure is a problem, something
/// not looked at is only mentioned.
pub(crate) fn seen<'e, T>(
    value: &'e Seen<T>,
    fix: impl FnOnce() -> String,
) -> Result<&'e T, Verdict> {
    value.as_ref().map_err(|unseen| match unseen {
        Unseen::Failed(why) => Verdict::Wrong(Severity::Problem, why.clone(), fix()),
        Unseen::NotLooked(_) => Verdict::Skip,
    })
}

#[cfg(test)]
mod tests;
