//! Names inside a tenant's pod that are Steward's own. Users' containers, volumes and mounts must
//! use others, and the rules say so at `kubectl apply`.

/// Containers and init containers.
pub const CONTAINERS: &[&str] = &[
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kine",
    "konnectivity-server",
    "steward-gate",
    "gate",
    "steward-trustd",
    "chmod",
];

/// Volumes.
pub const VOLUMES: &[&str] = &[
    "etc-kubernetes-pki",
    "etc-ca-certificates",
    "usr-share-ca-certificates",
    "usr-local-share-ca-certificates",
    "scheduler-kubeconfig",
    "controller-manager-kubeconfig",
    "kine-uds",
    "kine-config",
    "kine-certs",
    "konnectivity-uds",
    "egress-selector-configuration",
    "konnectivity-server-kubeconfig",
    "konnectivity-server-certificate",
    "steward-gate-certificate",
];

/// Folders in Steward's own containers that are taken.
pub const MOUNT_PATHS: &[&str] = &[
    "/etc/kubernetes",
    "/etc/kubernetes/pki",
    "/etc/kubernetes/konnectivity/configurations",
    "/etc/kubernetes/konnectivity-server",
    "/etc/konnectivity/pki",
    "/etc/steward/gate",
    "/etc/ca-certificates",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
    "/run/konnectivity",
    "/uds",
];

/// Ports of the Service.
pub const SERVICE_PORTS: &[&str] = &["kube-apiserver", "konnectivity-server", "steward-trustd"];

/// A list as CEL writes it: `['a', 'b']`.
pub(crate) fn cel_list(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("'{name}'")).collect();
    format!("[{}]", quoted.join(", "))
}
