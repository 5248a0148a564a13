//! What every container of ours has: a security context that the `restricted` standard
//! accepts, mounts, and a way to leave quietly.

use k8s_openapi::api::core::v1::{
    Capabilities, Lifecycle, LifecycleHandler, PodSecurityContext, SeccompProfile, SecurityContext,
    SleepAction, VolumeMount,
};

/// Nobody in particular, but always the same, so that files can be shared in the pod.
const USER: i64 = 65532;

/// Of the pod.
pub(super) fn security_context() -> PodSecurityContext {
    PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: Some(USER),
        run_as_group: Some(USER),
        fs_group: Some(USER),
        fs_group_change_policy: Some("OnRootMismatch".into()),
        seccomp_profile: Some(SeccompProfile {
            type_: "RuntimeDefault".into(),
            ..SeccompProfile::default()
        }),
        ..PodSecurityContext::default()
    }
}

/// Of a container. The API server's image marks its program with the capability to bind
/// low ports: without that capability in reach the kernel refuses to start it.
pub(super) fn restricted(add: &[&str]) -> SecurityContext {
    let add: Vec<String> = add.iter().map(ToString::to_string).collect();
    SecurityContext {
        allow_privilege_escalation: Some(false),
        read_only_root_filesystem: Some(true),
        capabilities: Some(Capabilities {
            drop: Some(vec!["ALL".into()]),
            add: Some(add).filter(|list| !list.is_empty()),
        }),
        ..SecurityContext::default()
    }
}

/// A mount that only reads.
pub(super) fn mount(name: &str, path: &str) -> VolumeMount {
    VolumeMount {
        name: name.into(),
        mount_path: path.into(),
        read_only: Some(true),
        ..VolumeMount::default()
    }
}

/// A mount to write to.
pub(super) fn writable(name: &str, path: &str) -> VolumeMount {
    VolumeMount {
        name: name.into(),
        mount_path: path.into(),
        ..VolumeMount::default()
    }
}

/// Goes on for so long after the pod was told to stop: until then new connections come.
pub(super) fn linger(seconds: i64) -> Lifecycle {
    Lifecycle {
        pre_stop: Some(LifecycleHandler {
            sleep: Some(SleepAction { seconds }),
            ..LifecycleHandler::default()
        }),
        ..Lifecycle::default()
    }
}
