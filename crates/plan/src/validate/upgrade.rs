//! Which version to run now: the wanted one, unless the way there is not open.

use steward_api::conditions::{ConditionType, Reason};

use super::wait;
use crate::{
    observed::{Inside, Observed},
    outcome::Wait,
    problem::Problem,
    version::{Version, minor_of},
};

const FIELD: &str = "spec.kubernetes.version";

/// The version to run. A wrong one is a problem; one that nodes don't allow yet is a
/// wait, during which the installed one goes on.
pub(super) fn version(observed: &Observed, waits: &mut Vec<Wait>) -> Result<Version, Vec<Problem>> {
    let text = &observed.tenant.spec.kubernetes.version;
    let wanted: Version = text
        .parse()
        .map_err(|fault: String| vec![Problem::invalid(FIELD, fault)])?;
    let Some(installed) = installed(observed) else {
        return Ok(wanted);
    };
    if wanted.minor() < installed.minor() {
        let message = format!("{wanted} is below the {installed} that runs: that way is closed");
        return Err(vec![Problem::invalid(FIELD, message)]);
    }
    if wanted.minor() > installed.minor() + 1 {
        let next = installed.minor() + 1;
        let message = format!("{wanted} skips v1.{next}: go from {installed} one minor at a time");
        return Err(vec![Problem::invalid(FIELD, message)]);
    }
    let old = too_old(observed, &wanted);
    if old.is_empty() || wanted.minor() == installed.minor() {
        return Ok(wanted);
    }
    let message = format!(
        "{wanted} is held up, {installed} goes on: kubelets may be at most {} minors behind, and \
         {} run older ones. Upgrade or remove those nodes",
        wanted.allowed_skew(),
        old.join(", "),
    );
    waits.push(wait(
        ConditionType::VersionSkewSupported,
        Reason::NodesTooOld,
        message,
    ));
    Ok(installed)
}

/// What runs, as an earlier report said.
pub(crate) fn installed(observed: &Observed) -> Option<Version> {
    let status = observed.tenant.status.as_ref()?;
    let version = status
        .kubernetes_resources
        .as_ref()?
        .version
        .as_ref()?
        .version
        .as_ref()?;
    version.parse().ok()
}

fn too_old(observed: &Observed, wanted: &Version) -> Vec<String> {
    let Inside::Reachable { nodes, .. } = &observed.inside else {
        return Vec::new();
    };
    nodes
        .iter()
        .filter(|node| {
            minor_of(&node.kubelet)
                .is_some_and(|minor| minor + wanted.allowed_skew() < wanted.minor())
        })
        .map(|node| format!("{} ({})", node.name, node.kubelet))
        .collect()
}
