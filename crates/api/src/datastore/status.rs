//! `status` of a `DataStore`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// State of a datastore.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DataStoreStatus {
    /// Generation of the spec that this status answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Whether tenants can use it.
    #[serde(default)]
    pub ready: bool,
    /// State of the datastore, step by step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<crate::embedded::Embedded<Condition>>")]
    pub conditions: Vec<Condition>,
    /// Tenants that use it, as `namespace/name`. It isn't removed while there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used_by: Vec<String>,
    /// Where it is, each as `host:port`: those of the spec, or those of the etcd that Steward runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<String>,
    /// Version that the datastore says it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The etcd that Steward runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed: Option<ManagedEtcdStatus>,
}

/// The etcd that Steward runs.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedEtcdStatus {
    /// Namespace of its objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of its `StatefulSet`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stateful_set: Option<String>,
    /// Members that there should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Members that are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Version of etcd that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How members trust each other: `Own` when by an authority of their own. An etcd from before is moved
    /// there in steps: `Shared`, `TrustBoth`, `NewCertificates`, `Own`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peers: Option<String>,
    /// Bytes that the database takes on disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_bytes: Option<i64>,
}
