//! Stand-ins for the API's types until they exist. Goes away.

/// The tenant.
pub type TenantControlPlane = serde_json::Value;
/// Its status.
pub type TenantControlPlaneStatus = serde_json::Value;
