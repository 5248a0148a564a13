//! Steward's API: the custom resources, their rules, their conditions, and the foreign kinds we write.
//!
//! This crate owns what a user may write and what we answer in `status`. It decides nothing about
//! the objects a tenant consists of (that is `steward-plan`) and never talks to a server.
//!
//! `TenantControlPlane::crd()` as derived is only the raw schema. What is installed comes from
//! [`crds`], which adds the rules in [`rules`] and makes the schema small enough for `kubectl apply`.

pub mod conditions;
pub mod crds;
pub mod datastore;
pub mod duration;
mod embedded;
pub mod flags;
pub mod foreign;
pub mod hostnames;
pub mod metadata;
pub mod reserved;
pub mod rules;
pub mod schema_path;
pub mod tenant_control_plane;

pub use datastore::{DataStore, DataStoreSpec, DataStoreStatus};
pub use tenant_control_plane::{
    TenantControlPlane, TenantControlPlaneSpec, TenantControlPlaneStatus,
};

/// The API group of every kind in this crate.
pub const GROUP: &str = "steward.butlerlabs.dev";

/// The one served version.
pub const VERSION: &str = "v1alpha1";
