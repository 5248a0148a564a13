//! Rules of `spec.kubernetes`: which versions, and in which steps.

use super::Rule;

/// Oldest minor version of Kubernetes 1 that is accepted.
pub const OLDEST_MINOR: u32 = 23;
/// Newest minor version of Kubernetes 1 that is accepted.
pub const NEWEST_MINOR: u32 = 36;

const VERSION: &str = "^v?1[.][0-9]{1,3}[.][0-9]{1,3}(-[0-9A-Za-z.-]+)?([+][0-9A-Za-z.-]+)?$";

pub(super) fn rules() -> Vec<Rule> {
    let mut rules = vec![
        Rule::new(
            "spec.kubernetes.version",
            format!("self.matches('{VERSION}')"),
            "kubernetes.version: unable to parse the desired Kubernetes version; write it whole, as \
             v1.36.3",
        ),
        Rule::new(
            "spec.kubernetes.version",
            format!("!self.matches('{VERSION}') || int(self.split('.')[1]) <= {NEWEST_MINOR}"),
            format!(
                "kubernetes.version: greater than the supported one, actually v1.{NEWEST_MINOR}; \
                 write a version of v1.{NEWEST_MINOR} or older"
            ),
        ),
        Rule::new(
            "spec.kubernetes.version",
            format!("!self.matches('{VERSION}') || int(self.split('.')[1]) >= {OLDEST_MINOR}"),
            format!(
                "kubernetes.version: older than the oldest one supported, v1.{OLDEST_MINOR}; write a \
                 newer version"
            ),
        ),
        Rule::new(
            "spec.kubernetes.kubelet.configurationJSONPatches[]",
            "self.path == '' || self.path.startsWith('/')",
            "configurationJSONPatches[].path: not a JSON pointer; start it with '/', as /maxPods",
        )
        .field(".path"),
        Rule::new(
            "spec.kubernetes.kubelet.configurationJSONPatches[]",
            "!(self.op in ['move', 'copy']) || has(self.from)",
            "configurationJSONPatches[].from: missing; write where to move or copy from, as \
             /maxPods",
        )
        .field(".from")
        .required(),
    ];
    rules.extend(steps());
    rules
}

/// Steps are measured from the version that runs, so that a version which never came up (no such
/// image) can be corrected in any direction.
fn steps() -> Vec<Rule> {
    let installed = "oldSelf.status.kubernetesResources.version.version";
    let wanted = "self.spec.kubernetes.version";
    let exempt = format!(
        "{wanted} == oldSelf.spec.kubernetes.version || !has(oldSelf.status) || \
         !has(oldSelf.status.kubernetesResources) || \
         !has(oldSelf.status.kubernetesResources.version) || \
         !has({installed}) || \
         !{installed}.matches('{VERSION}') || !{wanted}.matches('{VERSION}')"
    );
    let minor = |version: &str| format!("int({version}.split('.')[1])");
    let patch = |version: &str| format!("int({version}.split('.')[2].split('-')[0].split('+')[0])");
    vec![
        Rule::new(
            "",
            format!(
                "{exempt} || {to} > {from} || ({to} == {from} && {to_patch} >= {from_patch})",
                to = minor(wanted),
                from = minor(installed),
                to_patch = patch(wanted),
                from_patch = patch(installed),
            ),
            "spec.kubernetes.version: unable to downgrade a TenantControlPlane below the version that \
             runs (status.kubernetesResources.version); write that version or a newer one",
        )
        .field(".spec.kubernetes.version")
        .forbidden(),
        Rule::new(
            "",
            format!(
                "{exempt} || {to} - {from} <= 1",
                to = minor(wanted),
                from = minor(installed)
            ),
            "spec.kubernetes.version: unable to upgrade to a minor version in a non-sequential mode; \
             write the next minor version after the one that runs \
             (status.kubernetesResources.version), and go on when it is installed",
        )
        .field(".spec.kubernetes.version")
        .forbidden(),
    ]
}
