//! `spec.managed`: an etcd that the operator runs itself.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Affinity, ResourceRequirements, Toleration};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metadata::AdditionalMetadata;

/// Size of a member's volume when none is given.
pub const DEFAULT_STORAGE_SIZE: &str = "10Gi";
/// Database limit when none is given: below the default volume, as etcd needs room for its log.
pub const DEFAULT_QUOTA_BACKEND_BYTES: i64 = 8 * 1024 * 1024 * 1024;

/// An etcd that Steward runs, in the operator's namespace.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedEtcd {
    /// Members of the etcd cluster: 1, or 3 to go on when one fails. It can't be changed later.
    #[serde(default = "three")]
    pub replicas: i32,
    /// Volumes for the data, one per member. Excludes `emptyDir`; without both, volumes of 10Gi of
    /// the default storage class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<ManagedStorage>,
    /// Keep the data on the node, for laboratories: it is lost with the pod. Excludes `storage`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_dir: Option<ManagedEmptyDir>,
    /// CPU and memory of each member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::embedded::Embedded<ResourceRequirements>>")]
    pub resources: Option<ResourceRequirements>,
    /// Image of etcd, with tag. Without it, the one that belongs to the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// Bytes that the database may grow to before etcd refuses writes; 8 GiB without it. Keep it
    /// below the volume's size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 16_777_216, max = 107_374_182_400_i64))]
    pub quota_backend_bytes: Option<i64>,
    /// How long old versions of keys are kept; `5m` without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 24), regex(pattern = crate::duration::PATTERN))]
    pub compaction_retention: Option<String>,
    /// Labels of the nodes on which members may run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Node taints that members tolerate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<crate::embedded::Embedded<Toleration>>")]
    pub tolerations: Vec<Toleration>,
    /// Node and pod affinity of members. Without it, members prefer different nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::embedded::Embedded<Affinity>>")]
    pub affinity: Option<Affinity>,
    /// `PriorityClass` of members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub priority_class_name: Option<String>,
    /// Labels and annotations to add to the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_additional_metadata: Option<AdditionalMetadata>,
}

impl Default for ManagedEtcd {
    fn default() -> Self {
        Self {
            replicas: three(),
            storage: None,
            empty_dir: None,
            resources: None,
            image: None,
            quota_backend_bytes: None,
            compaction_retention: None,
            node_selector: BTreeMap::new(),
            tolerations: Vec::new(),
            affinity: None,
            priority_class_name: None,
            pod_additional_metadata: None,
        }
    }
}

/// Volumes for the data of an etcd.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedStorage {
    /// Size of each volume.
    #[serde(default = "default_size")]
    #[schemars(with = "crate::embedded::Embedded<Quantity>")]
    pub size: Quantity,
    /// Storage class of the volumes; the cluster's default without it. It can't be changed later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub storage_class_name: Option<String>,
}

impl Default for ManagedStorage {
    fn default() -> Self {
        Self {
            size: default_size(),
            storage_class_name: None,
        }
    }
}

/// Keep the data on the node.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedEmptyDir {
    /// How large the directory may grow before the pod is evicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::embedded::Embedded<Quantity>>")]
    pub size_limit: Option<Quantity>,
    /// Keep it in memory rather than on disk. It counts as the pod's memory.
    #[serde(default)]
    pub memory: bool,
}

fn three() -> i32 {
    3
}

fn default_size() -> Quantity {
    Quantity(DEFAULT_STORAGE_SIZE.into())
}
