//! What to tell: conditions, status and events, as a function of what was seen and done.

mod conditions;
mod status;

pub(crate) use status::exposure;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;
use steward_api::{
    TenantControlPlaneStatus,
    conditions::{ConditionType, Finding, Reason, find, merge},
    tenant_control_plane::{KubernetesResourcesStatus, TenantState, VersionStatus},
};

use crate::{
    build::inside::WRITE_PERMISSIONS,
    object::Kind,
    observed::Observed,
    outcome::{Applied, Change, Event, EventKind, InsideApplied, Plan, Report},
    problem::Problem,
    settings::Settings,
    validate::Validated,
};

/// Tells what came of a plan.
pub fn report(
    settings: &Settings,
    tenant: &Validated,
    observed: &Observed,
    plan: &Plan,
    applied: &Applied,
) -> Report {
    // What was applied is newer than what was read before.
    let after = Observed {
        live: applied.live.clone(),
        ..observed.clone()
    };
    let facts = status::Facts::gather(settings, tenant, &after, plan);
    let findings = conditions::findings(tenant, &after, plan, applied, &facts);
    let mut status = status::status(tenant, &after, plan, &facts);
    let old = observed.tenant.status.clone().unwrap_or_default();
    let generation = observed.tenant.metadata.generation;
    status.conditions = merge(&old.conditions, &findings, generation, observed.now);
    status.observed_generation = generation;
    let mut events = tidings(changes(applied), news(&old, &status), &old);
    events.extend(restored(&old, generation, applied));
    Report {
        status,
        events,
        next_check: plan.next_check,
    }
}

/// All events. What a new tenant achieves with its first look is one: it is made, and is so far.
fn tidings(
    mut changes: Vec<Event>,
    mut news: Vec<Event>,
    old: &TenantControlPlaneStatus,
) -> Vec<Event> {
    if let Some(created) = changes.first_mut().filter(|_| old.conditions.is_empty()) {
        let calm = |event: &mut Event| event.kind == EventKind::Normal;
        let so_far: Vec<String> = news
            .extract_if(.., calm)
            .map(|event| event.reason)
            .collect();
        if !so_far.is_empty() {
            created.note = format!("{}; {}", created.note, so_far.join(", "));
        }
    }
    changes.extend(news);
    changes
}

/// When to look again for what somebody else has to give up or put back.
const LOOK_AGAIN: jiff::SignedDuration = jiff::SignedDuration::from_secs(10);

/// Tells why nothing could be planned. What is known from before stays.
pub fn report_problems(settings: &Settings, observed: &Observed, problems: &[Problem]) -> Report {
    let _ = settings;
    let old = observed.tenant.status.clone().unwrap_or_default();
    let mut findings: Vec<Finding> = Vec::new();
    for problem in problems {
        let text = problem.to_string();
        match findings
            .iter_mut()
            .find(|finding| finding.type_ == problem.condition)
        {
            Some(finding) => finding.message = format!("{}. {text}", finding.message),
            None => findings.push(Finding::no(problem.condition, problem.reason, text)),
        }
    }
    let reason = findings
        .first()
        .map_or(Reason::Invalid, |finding| finding.reason);
    let all: Vec<&str> = findings
        .iter()
        .map(|finding| finding.message.as_str())
        .collect();
    let message = all.join(". ");
    // A running tenant goes on running with what it has: whether it is available didn't
    // change because of a bad change to its spec. Without a pod it isn't.
    let mut kept: Vec<Finding> = Vec::new();
    let known = find(&old.conditions, ConditionType::Available);
    if known.is_none_or(|known| known.status == "True" && !serving(observed)) {
        kept.push(Finding::no(
            ConditionType::Available,
            reason,
            message.clone(),
        ));
    }
    kept.push(Finding::no(ConditionType::Progressing, reason, message));
    let untouched = old.conditions.iter().filter(|condition| {
        let ours = |finding: &Finding| finding.type_.as_str() == condition.type_;
        !findings.iter().any(ours) && !kept.iter().any(ours)
    });
    let untouched: Vec<_> = untouched.cloned().collect();
    kept.extend(findings);
    let generation = observed.tenant.metadata.generation;
    let mut status = old.clone();
    status.conditions = merge(&old.conditions, &kept, generation, observed.now);
    for condition in untouched {
        if status
            .conditions
            .iter()
            .all(|other| other.type_ != condition.type_)
        {
            status.conditions.push(condition);
        }
    }
    status.observed_generation = generation;
    if status.kubernetes_resources.is_none() {
        status.kubernetes_resources = Some(KubernetesResourcesStatus {
            version: Some(VersionStatus::default()),
            ..KubernetesResourcesStatus::default()
        });
    }
    let events = news(&old, &status);
    // Nothing of this tenant changes when somebody else gives a hostname or an object's name up, or puts a
    // Secret back without our labels.
    let elsewhere = |problem: &Problem| {
        matches!(
            problem.reason,
            Reason::HostnameTaken | Reason::ObjectNotOurs | Reason::KeyLost
        )
    };
    let next_check = problems
        .iter()
        .any(elsewhere)
        .then(|| observed.now + LOOK_AGAIN);
    Report {
        status,
        events,
        next_check,
    }
}

/// Whether a pod of the tenant is ready.
fn serving(observed: &Observed) -> bool {
    let tenant = &observed.tenant;
    let namespace = tenant.namespace().unwrap_or_default();
    observed
        .live
        .get(Kind::Deployment, &namespace, &tenant.name_any())
        .and_then(|live| live.pointer("/status/readyReplicas")?.as_i64())
        .is_some_and(|ready| ready > 0)
}

/// Creations and removals; updates are too many to tell one by one.
fn changes(applied: &Applied) -> Vec<Event> {
    let mut created = 0_usize;
    let mut removed = Vec::new();
    let mut updated = Vec::new();
    for change in &applied.changes {
        match change {
            Change::Created(_) => created += 1,
            Change::Updated(key) => updated.push(key.to_string()),
            Change::Removed(key) => removed.push(key.to_string()),
        }
    }
    let mut events = Vec::new();
    let mut tell = |reason: &str, action: &'static str, note: String| {
        events.push(Event {
            kind: EventKind::Normal,
            reason: reason.into(),
            action,
            note,
        });
    };
    if created > 0 {
        tell("Created", "Create", format!("made {created} objects"));
    }
    if !updated.is_empty() {
        tell(
            "Updated",
            "Update",
            format!("changed {}", updated.join(", ")),
        );
    }
    if !removed.is_empty() {
        tell(
            "Removed",
            "Remove",
            format!("removed {}", removed.join(", ")),
        );
    }
    events
}

/// That limits on writes were lifted inside the tenant and are in force again. Its administrators can
/// lift them for a moment; nobody can keep them from knowing that it was noticed.
fn restored(
    old: &TenantControlPlaneStatus,
    generation: Option<i64>,
    applied: &Applied,
) -> Option<Event> {
    let version = old.kubernetes_resources.as_ref()?.version.as_ref()?;
    let in_force = version.status == TenantState::WriteLimited;
    if !in_force || old.observed_generation != generation {
        return None;
    }
    let InsideApplied::Done { changes } = &applied.inside else {
        return None;
    };
    let what = changes.iter().find_map(|change| match change {
        Change::Created(key) if key.name == WRITE_PERMISSIONS => Some("was deleted"),
        Change::Updated(key) if key.name == WRITE_PERMISSIONS => Some("was not as it should be"),
        _ => None,
    })?;
    Some(Event {
        kind: EventKind::Warning,
        reason: "WritePermissionsRestored".into(),
        action: "Restore",
        note: format!(
            "the policy {WRITE_PERMISSIONS} of spec.writePermissions {what} inside the tenant, and \
             is back; who did it may have written what is limited meanwhile"
        ),
    })
}

/// An event for every condition that changed its status or reason.
fn news(old: &TenantControlPlaneStatus, new: &TenantControlPlaneStatus) -> Vec<Event> {
    let before = |type_: &str| {
        old.conditions
            .iter()
            .find(|condition| condition.type_ == type_)
    };
    new.conditions
        .iter()
        .filter(|now| {
            before(&now.type_)
                .is_none_or(|was| (&was.status, &was.reason) != (&now.status, &now.reason))
        })
        // At the beginning everything is false, and some of it true for want of a question: only
        // what says more than "not yet" and "nothing to do" is news.
        .filter(|now| before(&now.type_).is_some() || achieved(now) || loud(&now.reason))
        .filter(|now| now.type_ != ConditionType::Progressing.as_str())
        .map(|now| Event {
            kind: if now.status == "True" || !loud(&now.reason) {
                EventKind::Normal
            } else {
                EventKind::Warning
            },
            reason: format!(
                "{}{}",
                if now.status == "True" { "" } else { "Not" },
                now.type_
            ),
            action: "Reconcile",
            note: if now.message.is_empty() {
                now.reason.clone()
            } else {
                format!("{}: {}", now.reason, now.message)
            },
        })
        .collect()
}

/// Whether a condition that is new says that something was done.
fn achieved(now: &Condition) -> bool {
    now.status == "True"
        && now.reason != Reason::NotRequested.as_str()
        && now.type_ != ConditionType::VersionSkewSupported.as_str()
}

/// Reasons that someone should look at, as opposed to those that pass by themselves.
fn loud(reason: &str) -> bool {
    const QUIET: [Reason; 12] = [
        Reason::Ready,
        Reason::Reconciled,
        Reason::Reconciling,
        Reason::Provisioning,
        Reason::Upgrading,
        Reason::Moving,
        Reason::Sleeping,
        Reason::Paused,
        Reason::NotRequested,
        Reason::WaitingForPods,
        Reason::WaitingForAddress,
        Reason::WaitingForRoute,
    ];
    QUIET.iter().all(|quiet| quiet.as_str() != reason)
}

/// Times of a status entry stay while its checksum does.
pub(crate) fn since(
    old: Option<(
        &Option<String>,
        &Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>,
    )>,
    checksum: &str,
    now: Timestamp,
) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::Time {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    old.filter(|(sum, _)| sum.as_deref() == Some(checksum))
        .and_then(|(_, time)| time.clone())
        .unwrap_or(Time(now))
}

/// Whether the word in the status means that it never ran yet.
pub(crate) fn never_ran(state: TenantState) -> bool {
    matches!(state, TenantState::Provisioning | TenantState::Unknown)
}
