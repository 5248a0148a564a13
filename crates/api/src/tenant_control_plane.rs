//! `TenantControlPlane`: one Kubernetes control plane, as its owner asks for it and as it is.
//!
//! The doc comments in here are the reference manual (`kubectl explain tcp.spec…`): each says what
//! the field does, what happens without it, and nothing about how we do it.

#![expect(
    clippy::duplicated_attributes,
    reason = "printed columns of one type repeat its name"
)]

mod addons;
mod certificates;
mod control_plane;
mod egress;
mod exposure;
mod kubernetes;
mod network;
mod pods;
mod status;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use addons::*;
pub use certificates::*;
pub use control_plane::*;
pub use egress::*;
pub use exposure::*;
pub use kubernetes::*;
pub use network::*;
pub use pods::*;
pub use status::*;

/// What the tenant's control plane should be.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "steward.butlerlabs.dev",
    version = "v1alpha1",
    kind = "TenantControlPlane",
    plural = "tenantcontrolplanes",
    singular = "tenantcontrolplane",
    shortname = "tcp",
    category = "steward",
    namespaced,
    status = "TenantControlPlaneStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A Kubernetes control plane that runs as pods of this cluster.",
    scale(
        spec_replicas_path = ".spec.controlPlane.deployment.replicas",
        status_replicas_path = ".status.kubernetesResources.deployment.replicas",
        label_selector_path = ".status.kubernetesResources.deployment.selector"
    ),
    printcolumn(
        name = "Version",
        type_ = "string",
        description = "Kubernetes version asked for",
        json_path = ".spec.kubernetes.version"
    ),
    printcolumn(
        name = "Installed Version",
        type_ = "string",
        description = "Kubernetes version that runs",
        json_path = ".status.kubernetesResources.version.version"
    ),
    printcolumn(
        name = "Status",
        type_ = "string",
        description = "State of the control plane",
        json_path = ".status.kubernetesResources.version.status"
    ),
    printcolumn(
        name = "Control-Plane endpoint",
        type_ = "string",
        description = "Where clients and nodes reach the API server",
        json_path = ".status.controlPlaneEndpoint"
    ),
    printcolumn(
        name = "Kubeconfig",
        type_ = "string",
        description = "Secret with the administrator's kubeconfig",
        json_path = ".status.kubeconfig.admin.secretName"
    ),
    printcolumn(
        name = "Datastore",
        type_ = "string",
        description = "DataStore that holds the tenant's data",
        json_path = ".status.storage.dataStoreName"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct TenantControlPlaneSpec {
    /// Kinds of writes that the tenant's API server refuses, for example while an unpaid tenant is
    /// limited. Objects in kube-system and the nodes' leases are exempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_permissions: Option<WritePermissions>,
    /// Name of the `DataStore` that holds this tenant's data. Without it, the one the operator was
    /// told to use by default (`default` unless configured otherwise); `status.storage.dataStoreName`
    /// shows which. Once set it can't be unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub data_store: Option<String>,
    /// Name of the schema or key prefix inside the datastore. Made from the tenant's identity when
    /// not set. It can't be changed later: the data would stay under the old name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = "^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$")
    )]
    pub data_store_schema: Option<String>,
    /// Name of the user inside the datastore. Made from the tenant's identity when not set. It can't
    /// be changed later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = "^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$")
    )]
    pub data_store_username: Option<String>,
    /// Kinds of objects to keep in another `DataStore`, for example events in a separate etcd.
    /// Only for the etcd driver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub data_store_overrides: Vec<DataStoreOverride>,
    /// How the control plane runs and how it is reached.
    pub control_plane: ControlPlane,
    /// Kubernetes version and how nodes are configured.
    pub kubernetes: KubernetesSpec,
    /// Addresses, ports and address ranges of the tenant cluster.
    #[serde(default)]
    pub network_profile: NetworkProfile,
    /// What is installed inside the tenant cluster.
    #[serde(default)]
    pub addons: Addons,
    /// Keys and certificates of the tenant cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificates: Option<CertificatesSpec>,
}

/// Writes that the tenant's API server refuses.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WritePermissions {
    /// Refuse to create objects.
    #[serde(default)]
    pub block_creation: bool,
    /// Refuse to change objects.
    #[serde(default)]
    pub block_update: bool,
    /// Refuse to delete objects.
    #[serde(default)]
    pub block_deletion: bool,
}

impl WritePermissions {
    /// Whether anything is refused at all.
    pub fn limited(self) -> bool {
        self.block_creation || self.block_update || self.block_deletion
    }

    /// What whoever is refused reads.
    pub fn refusal(self) -> String {
        let verbs: Vec<&str> = [
            (self.block_creation, "created"),
            (self.block_update, "changed"),
            (self.block_deletion, "deleted"),
        ]
        .into_iter()
        .filter_map(|(blocked, verb)| blocked.then_some(verb))
        .collect();
        format!(
            "the current Control Plane has limited write permissions: nothing may be {} here until \
             spec.writePermissions of its TenantControlPlane says otherwise",
            verbs.join(" or ")
        )
    }
}

/// One kind of object and the `DataStore` that keeps it.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DataStoreOverride {
    /// Resource as kube-apiserver names it: `/events` for a core resource, `apps/deployments` for
    /// one of a group.
    #[schemars(length(min = 2, max = 253))]
    pub resource: String,
    /// Name of the `DataStore` that keeps it.
    #[schemars(length(min = 1, max = 253))]
    pub data_store: String,
}
