//! What the Pod Security Standards refuse, said at `kubectl apply`.
//!
//! The pods are made by a Deployment, so Pod Security's own refusal would be an event of a `ReplicaSet`
//! that nobody reads. This module knows the parts of the two standards that bear on fields which a
//! tenant has; Pod Security itself still decides about the pods.

use super::rights::value;
use super::{Validation, Variable, named};
use crate::reserved::cel_list;

const LABEL: &str = "pod-security.kubernetes.io/enforce";
const DEPLOYMENT: &str = "controlPlane.deployment";

/// Capabilities that `baseline` lets a container add.
const CAPABILITIES: &[&str] = &[
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Kernel parameters that `baseline` lets a pod set.
const SYSCTLS: &[&str] = &[
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
];

/// `SELinux` types that `baseline` lets a container have.
const SELINUX_TYPES: &[&str] = &[
    "",
    "container_engine_t",
    "container_init_t",
    "container_kvm_t",
    "container_t",
];

/// What a volume has besides what `restricted` refuses.
const VOLUMES: &[&str] = &[
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "name",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

pub(super) fn variables() -> Vec<Variable> {
    vec![
        named(
            "enforced",
            format!("namespaceObject.metadata.?labels[?'{LABEL}'].orValue('')"),
        ),
        named("containers", containers()),
        named("contexts", contexts()),
        named("podContexts", pod_contexts()),
        named("privileged", privileged()),
        named("unrestricted", unrestricted()),
    ]
}

/// The containers that the tenant adds, each with its place in the spec.
fn containers() -> String {
    let list = |field: &str| {
        let field = format!("{DEPLOYMENT}.{field}");
        format!(
            "{}.map(c, {{'at': dyn('spec.{field}[' + c.name + ']'), 'container': dyn(c)}})",
            value("spec", &field, "[]")
        )
    };
    format!(
        "{} + {}",
        list("additionalContainers"),
        list("additionalInitContainers")
    )
}

/// The security contexts of containers: of added ones, and of ours where the tenant replaces them.
fn contexts() -> String {
    let mut all = vec![
        "variables.containers.map(c, {'at': dyn(c.at + '.securityContext'), \
         'context': dyn(c.container.?securityContext.orValue({}))})"
            .to_owned(),
    ];
    let replaced = ["apiServer", "controllerManager", "scheduler"]
        .map(|name| format!("{DEPLOYMENT}.containerSecurityContexts.{name}"));
    for field in replaced
        .iter()
        .map(String::as_str)
        .chain(["addons.konnectivity.server.securityContext"])
    {
        all.push(given(field));
    }
    all.join(" + ")
}

/// One context in a list, or none if the field isn't there.
fn given(field: &str) -> String {
    let steps = field.replace('.', ".?");
    format!(
        "(variables.spec.?{steps}.hasValue() ? [{{'at': dyn('spec.{field}'), \
         'context': dyn({})}}] : [])",
        value("spec", field, "{}")
    )
}

fn pod_contexts() -> String {
    given(&format!("{DEPLOYMENT}.podSecurityContext"))
}

/// Places in these contexts where the condition on `s.context` holds.
fn found(contexts: &str, field: &str, condition: &str) -> String {
    format!("variables.{contexts}.filter(s, {condition}).map(s, string(s.at) + '.{field}')")
}

/// Volumes for which the condition on `v` holds.
fn volumes(field: &str, condition: &str) -> String {
    let at = format!("{DEPLOYMENT}.additionalVolumes");
    format!(
        "{}.filter(v, {condition}).map(v, 'spec.{at}[' + string(v.name) + ']{field}')",
        value("spec", &at, "[]")
    )
}

/// Places in the spec that `baseline` refuses.
fn privileged() -> String {
    let mut all = vec![
        volumes(".hostPath", "has(v.hostPath)"),
        "variables.containers.filter(c, c.container.?ports.orValue([]).exists(p, \
         p.?hostPort.orValue(0) != 0)).map(c, string(c.at) + '.ports[].hostPort')"
            .into(),
    ];
    for (field, condition) in [
        (
            "privileged",
            "s.context.?privileged.orValue(false)".to_owned(),
        ),
        (
            "capabilities.add",
            format!(
                "s.context.?capabilities.?add.orValue([]).exists(c, !(c in {}))",
                cel_list(CAPABILITIES)
            ),
        ),
        (
            "procMount",
            "s.context.?procMount.orValue('Default') != 'Default'".into(),
        ),
    ] {
        all.push(found("contexts", field, &condition));
    }
    for contexts in ["contexts", "podContexts"] {
        for (field, condition) in [
            (
                "seccompProfile.type",
                "s.context.?seccompProfile.?type.orValue('') == 'Unconfined'".to_owned(),
            ),
            (
                "appArmorProfile.type",
                "s.context.?appArmorProfile.?type.orValue('') == 'Unconfined'".into(),
            ),
            (
                "seLinuxOptions",
                format!(
                    "!(s.context.?seLinuxOptions.?type.orValue('') in {}) || \
                     s.context.?seLinuxOptions.?user.orValue('') != '' || \
                     s.context.?seLinuxOptions.?role.orValue('') != ''",
                    cel_list(SELINUX_TYPES)
                ),
            ),
            (
                "windowsOptions.hostProcess",
                "s.context.?windowsOptions.?hostProcess.orValue(false)".into(),
            ),
        ] {
            all.push(found(contexts, field, &condition));
        }
    }
    all.push(found(
        "podContexts",
        "sysctls",
        &format!(
            "s.context.?sysctls.orValue([]).exists(x, !(x.name in {}))",
            cel_list(SYSCTLS)
        ),
    ));
    all.push(app_armor_annotations());
    all.join(" + ")
}

/// The annotation by which `AppArmor` was switched off before there was a field.
fn app_armor_annotations() -> String {
    let at = format!("{DEPLOYMENT}.podAdditionalMetadata.annotations");
    let notes = value("spec", &at, "{}");
    format!(
        "({notes}.exists(k, k.startsWith('container.apparmor.security.beta.kubernetes.io/') && \
         {notes}[k] != 'runtime/default' && !{notes}[k].startsWith('localhost/')) ? \
         ['spec.{at}'] : [])"
    )
}

/// Places in the spec that `restricted` refuses and `baseline` doesn't. What is not said in the
/// context of a container is said in that of the pod, which is ours unless the tenant replaces it.
fn unrestricted() -> String {
    let seccomp = "['RuntimeDefault', 'Localhost']";
    let mut all = vec![volumes(
        "",
        &format!("v.exists(k, !(k in {}))", cel_list(VOLUMES)),
    )];
    for (field, condition) in [
        (
            "allowPrivilegeEscalation",
            "s.context.?allowPrivilegeEscalation.orValue(true)".to_owned(),
        ),
        (
            "capabilities.drop",
            "!('ALL' in s.context.?capabilities.?drop.orValue([]))".into(),
        ),
        (
            "capabilities.add",
            "s.context.?capabilities.?add.orValue([]).exists(c, c != 'NET_BIND_SERVICE')".into(),
        ),
        (
            "runAsNonRoot",
            "!s.context.?runAsNonRoot.orValue(true)".into(),
        ),
        ("runAsUser", "s.context.?runAsUser.orValue(1) == 0".into()),
        (
            "seccompProfile.type",
            format!("!(s.context.?seccompProfile.?type.orValue('RuntimeDefault') in {seccomp})"),
        ),
    ] {
        all.push(found("contexts", field, &condition));
    }
    for (field, condition) in [
        (
            "runAsNonRoot",
            "!s.context.?runAsNonRoot.orValue(false)".to_owned(),
        ),
        ("runAsUser", "s.context.?runAsUser.orValue(1) == 0".into()),
        (
            "seccompProfile.type",
            format!("!(s.context.?seccompProfile.?type.orValue('') in {seccomp})"),
        ),
    ] {
        all.push(found("podContexts", field, &condition));
    }
    all.join(" + ")
}

pub(super) fn validations() -> Vec<Validation> {
    let sentence = |places: &str| {
        format!(
            "variables.{places}.join(', ') + ': namespace ' + request.namespace + ' enforces the Pod \
             Security Standard ' + variables.enforced + ', which refuses this, so that no pod of the \
             control plane would start; change it, or ask the administrator of this cluster for \
             another namespace'"
        )
    };
    vec![
        Validation::forbidden(
            "variables.pods.size() == 0 || !(variables.enforced in ['baseline', 'restricted']) || \
             variables.privileged.size() == 0",
            "spec: the Pod Security Standard that the namespace enforces refuses such pods",
            sentence("privileged"),
        ),
        Validation::forbidden(
            "variables.pods.size() == 0 || variables.enforced != 'restricted' || \
             variables.unrestricted.size() == 0",
            "spec: the Pod Security Standard restricted, which the namespace enforces, refuses such \
             pods",
            sentence("unrestricted"),
        ),
    ]
}
