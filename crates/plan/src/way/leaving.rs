//! A way that was left: for how long it has to work on, and what is said of it meanwhile.

use std::time::Duration;

use jiff::SignedDuration;
use steward_api::{
    conditions::{ConditionType, Reason},
    metadata::annotations,
};

use super::Way;
use crate::{
    observed::{Inside, Observed},
    outcome::Wait,
    validate::wait,
};

/// How often to look whether replaced node proxies are gone: nothing tells.
const LOOK: Duration = Duration::from_secs(15);

/// A pod that is there for so much longer than it may take to leave is on a node that is lost.
const LOST: SignedDuration = SignedDuration::from_secs(30);

/// Whether something inside the tenant may still dial a way that was left: a workload of ours
/// that isn't rolled out to the new one yet, a node proxy that was replaced and serves its last
/// connections, or kubelets, which keep what they joined by.
pub(super) fn still_used(observed: &Observed, left: &Way, active: &Way) -> bool {
    let Inside::Reachable {
        nodes, workloads, ..
    } = &observed.inside
    else {
        return true;
    };
    let here = active.authority();
    let dials_elsewhere = workloads.values().any(|rollout| {
        let endpoint = rollout.endpoint.as_ref();
        endpoint.is_some_and(|endpoint| *endpoint != here || !rollout.done())
    });
    let kubelets = !nodes.is_empty() && !released(observed, left);
    dials_elsewhere || left.authority() != here && (kubelets || proxies_leave(observed))
}

/// Whether the user says that nothing uses it any more, and didn't mean an earlier time.
fn released(observed: &Observed, left: &Way) -> bool {
    said(observed).is_some_and(|said| *said == left.authority()) && acted_upon(observed).is_none()
}

/// What the user's word gave back. It holds once: otherwise an address that was released would
/// go at once the next time it is left.
pub(super) fn given_back(
    observed: &Observed,
    left: Option<&Way>,
    leaving: Option<&Way>,
) -> Option<String> {
    let gone = left.filter(|left| leaving.is_none() && released(observed, left));
    gone.map(Way::authority)
        .or_else(|| acted_upon(observed).cloned())
}

/// The user's word, if it was acted upon and is still there. Only taking it away ends that: when an
/// annotation was set can't be told from when its manifest was last applied.
fn acted_upon(observed: &Observed) -> Option<&String> {
    let exposure = observed.tenant.status.as_ref()?.exposure.as_ref()?;
    let before = exposure.released.as_ref()?;
    said(observed).filter(|said| *said == before)
}

/// What the user says can go.
fn said(observed: &Observed) -> Option<&String> {
    let notes = observed.tenant.metadata.annotations.as_ref()?;
    notes.get(annotations::RELEASE_ENDPOINT)
}

/// Whether node proxies that were replaced are still at work.
fn proxies_leave(observed: &Observed) -> bool {
    match &observed.inside {
        Inside::Reachable { leaving, .. } => leaving.is_some_and(|by| observed.now < by + LOST),
        Inside::NotTried | Inside::Unreachable { .. } => false,
    }
}

/// What is waited for before the old way goes, and what to do about it.
pub(crate) fn kept(observed: &Observed, left: &Way) -> Wait {
    let old = left.authority();
    let note = annotations::RELEASE_ENDPOINT;
    let message = match &observed.inside {
        Inside::Reachable { .. } if released(observed, left) => format!(
            "{old} goes as soon as the node proxies that were replaced have served their last \
             connections"
        ),
        Inside::Reachable { nodes, .. } if !nodes.is_empty() => {
            let how = match acted_upon(observed) {
                Some(before) if *before == old => format!(
                    "remove the annotation {note}, which is of an earlier time; you are asked for it then"
                ),
                _ => format!("set the annotation {note}={old}"),
            };
            format!(
                "{old} works on, because kubelets keep the endpoint they joined by: when no \
                 node's /etc/kubernetes/kubelet.conf names it any more, {how}"
            )
        }
        _ => format!("{old} works on until nothing inside the tenant uses it"),
    };
    let mut wait = wait(ConditionType::EndpointReady, Reason::EndpointKept, message);
    wait.retry = proxies_leave(observed).then_some(LOOK);
    wait
}
