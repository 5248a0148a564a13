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

/// Users and schemas that a datastore, or Steward in it, has for itself. In etcd the user and the role `root` may
/// do anything, and a tenant's role is called like its schema.
pub const DATASTORE_NAMES: &[&str] = &[
    "root",
    "steward",
    "steward-probe",
    "postgres",
    "template0",
    "template1",
    "mysql",
    "sys",
    "information_schema",
    "performance_schema",
];

/// Whether a user or schema is reserved, in whatever case it is written.
pub fn is_datastore_name(name: &str) -> bool {
    DATASTORE_NAMES
        .iter()
        .any(|reserved| reserved.eq_ignore_ascii_case(name))
}

/// A list as CEL writes it: `['a', 'b']`.
pub(crate) fn cel_list(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("'{name}'")).collect();
    format!("[{}]", quoted.join(", "))
}
