//! Permissions that kubeadm gives to nodes, joining nodes, administrators and the API
//! server itself.

use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};

use super::{PUBLIC, SYSTEM, cluster_wide, make, named};
use crate::{
    object::{Kind, Object},
    validate::Validated,
};

const RBAC: &str = "rbac.authorization.k8s.io";
const JOINING: &str = "system:bootstrappers:kubeadm:default-node-token";
const NODES: &str = "system:nodes";

pub(super) fn objects(tenant: &Validated) -> Vec<Object> {
    let version = &tenant.version;
    let kubelet_map = version.kubelet_config_map();
    let kubelet_role = version.kubelet_config_role();
    let mut all = vec![
        binding(
            "kubeadm:cluster-admins",
            "cluster-admin",
            group("kubeadm:cluster-admins"),
        ),
        binding(
            "kubeadm:apiserver-kubelet-client",
            "system:kubelet-api-admin",
            user("kube-apiserver-kubelet-client"),
        ),
        binding(
            "kubeadm:kubelet-bootstrap",
            "system:node-bootstrapper",
            group(JOINING),
        ),
        binding(
            "kubeadm:node-autoapprove-bootstrap",
            "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
            group(JOINING),
        ),
        binding(
            "kubeadm:node-autoapprove-certificate-rotation",
            "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
            group(NODES),
        ),
        cluster_role(
            "kubeadm:get-nodes",
            vec![rule(&[""], &["nodes"], &["get"], &[])],
        ),
        binding("kubeadm:get-nodes", "kubeadm:get-nodes", group(JOINING)),
    ];
    all.extend(reader(
        SYSTEM,
        "kubeadm:nodes-kubeadm-config",
        "kubeadm-config",
        vec![group(JOINING), group(NODES)],
    ));
    all.extend(reader(
        SYSTEM,
        &kubelet_role,
        &kubelet_map,
        vec![group(NODES), group(JOINING)],
    ));
    all.extend(reader(
        PUBLIC,
        "kubeadm:bootstrap-signer-clusterinfo",
        "cluster-info",
        vec![user("system:anonymous")],
    ));
    all
}

/// A Role that reads one `ConfigMap`, and who has it.
pub(super) fn reader(
    namespace: &str,
    role: &str,
    config_map: &str,
    subjects: Vec<Subject>,
) -> [Object; 2] {
    let because = "joining nodes read their configuration";
    let body = Role {
        metadata: named(namespace, role),
        rules: Some(vec![rule(&[""], &["configmaps"], &["get"], &[config_map])]),
    };
    let bound = RoleBinding {
        metadata: named(namespace, role),
        role_ref: role_ref("Role", role),
        subjects: Some(subjects),
    };
    [
        make(Kind::Role, because, &body),
        make(Kind::RoleBinding, because, &bound),
    ]
}

pub(super) fn cluster_role(name: &str, rules: Vec<PolicyRule>) -> Object {
    let body = ClusterRole {
        metadata: cluster_wide(name),
        rules: Some(rules),
        ..ClusterRole::default()
    };
    make(
        Kind::ClusterRole,
        "it is what the binding of the same name grants",
        &body,
    )
}

pub(super) fn binding(name: &str, role: &str, subject: Subject) -> Object {
    let body = ClusterRoleBinding {
        metadata: cluster_wide(name),
        role_ref: role_ref("ClusterRole", role),
        subjects: Some(vec![subject]),
    };
    make(Kind::ClusterRoleBinding, "kubeadm grants it", &body)
}

pub(super) fn rule(
    groups: &[&str],
    resources: &[&str],
    verbs: &[&str],
    names: &[&str],
) -> PolicyRule {
    let list = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(list(groups)),
        resources: Some(list(resources)),
        verbs: list(verbs),
        resource_names: Some(list(names)).filter(|names| !names.is_empty()),
        ..PolicyRule::default()
    }
}

pub(super) fn group(name: &str) -> Subject {
    Subject {
        api_group: Some(RBAC.into()),
        kind: "Group".into(),
        name: name.into(),
        namespace: None,
    }
}

pub(super) fn user(name: &str) -> Subject {
    Subject {
        kind: "User".into(),
        ..group(name)
    }
}

pub(super) fn account(name: &str) -> Subject {
    Subject {
        api_group: None,
        kind: "ServiceAccount".into(),
        name: name.into(),
        namespace: Some(SYSTEM.into()),
    }
}

pub(super) fn role_ref(kind: &str, name: &str) -> RoleRef {
    RoleRef {
        api_group: RBAC.into(),
        kind: kind.into(),
        name: name.into(),
    }
}

/// Who may join.
pub(super) fn joining() -> Subject {
    group(JOINING)
}
