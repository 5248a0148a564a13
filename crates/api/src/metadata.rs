//! Labels, annotations and finalizers that are part of the API, and extra metadata users may add.
//!
//! Names that only the planner needs (object suffixes, Secret keys) are not here.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Labels that clients and scripts may rely on.
pub mod labels {
    /// `steward` on every object we make for a tenant.
    pub const PROJECT: &str = "steward.butlerlabs.dev/project";
    /// Name of the `TenantControlPlane` an object belongs to.
    pub const NAME: &str = "steward.butlerlabs.dev/name";
    /// Which part of the tenant an object is.
    pub const COMPONENT: &str = "steward.butlerlabs.dev/component";
    /// `x509` or `kubeconfig` on Secrets that are renewed before they expire.
    pub const CERTIFICATE_LIFECYCLE: &str =
        "steward.butlerlabs.dev/certificate_lifecycle_controller";
    /// Name of the datastore, on the tenant's pods.
    pub const DATASTORE: &str = "steward.butlerlabs.dev/datastore";
    /// `true` on a namespace whose pods may read metrics of tenants, datastores, operator and gateway
    /// where the network enforces `NetworkPolicies`.
    pub const METRICS: &str = "steward.butlerlabs.dev/metrics";
}

/// Annotations that users set, and the few that we answer with.
pub mod annotations {
    /// On a `TenantControlPlane`, `DataStore` or Secret: leave it alone while present.
    pub const PAUSED: &str = "steward.butlerlabs.dev/paused";
    /// On a certificate Secret: issue it anew; replaced by the time it was done.
    pub const ROTATE: &str = "certs.steward.butlerlabs.dev/rotate";
    /// Checksum of what an object was made from.
    pub const CHECKSUM: &str = "steward.butlerlabs.dev/checksum";
    /// Base domain from which a tenant's hostnames are made.
    pub const INGRESS_DOMAIN: &str = "steward.butlerlabs.dev/ingress.domain";
    /// The same annotation under the name the Kamaji ingress addon uses.
    pub const KAMAJI_INGRESS_DOMAIN: &str = "kamaji.clastix.io/ingress.domain";
    /// Who may connect to a route, as ranges separated by commas; our own gateway enforces it.
    pub const ALLOWED_SOURCE_RANGES: &str = "steward.butlerlabs.dev/allowed-source-ranges";
    /// On a `TenantControlPlane` that moved: nothing uses the endpoint before this one any more, not
    /// even kubelets. The value is that endpoint, as `host:port`.
    pub const RELEASE_ENDPOINT: &str = "steward.butlerlabs.dev/release-endpoint";
    /// On workloads inside a tenant that dial its API server: where.
    pub const ENDPOINT: &str = "steward.butlerlabs.dev/endpoint";
    /// On a `TenantControlPlane` being deleted whose datastore is gone for good: finish without
    /// cleaning it. The value must be the tenant's name.
    pub const ABANDON_DATASTORE: &str = "steward.butlerlabs.dev/abandon-datastore";
    /// On an object that is nobody's, or was made for an earlier owner of the same name: hands it over to
    /// the `TenantControlPlane` or `DataStore` that the value names. Removed when that is done.
    pub const ADOPT: &str = "steward.butlerlabs.dev/adopt";
    /// On a `TenantControlPlane` that has lost a key for good: make a new one, or go on with the one that
    /// is there now. The value is the name of the key's Secret. Removed when that is done.
    pub const REPLACE_LOST_KEY: &str = "steward.butlerlabs.dev/replace-lost-key";
    /// On a `DataStore` whose etcd does not keep tenants apart: let more than one tenant use it all the same.
    /// The value is the version that this is accepted for, as `status.version` shows it.
    pub const ACCEPT_VULNERABLE: &str = "steward.butlerlabs.dev/accept-vulnerable-version";
    /// On a Lease that records who has a hostname: which one.
    pub const HOSTNAME: &str = "steward.butlerlabs.dev/hostname";
    /// On a Namespace: hostnames that its tenants may claim, separated by commas; `*.example.com` is
    /// every name below example.com. Without it, all. The same for the three below.
    pub const ALLOWED_DOMAINS: &str = "steward.butlerlabs.dev/allowed-domains";
    /// On a Namespace: `DataStores` that its tenants may use.
    pub const ALLOWED_DATASTORES: &str = "steward.butlerlabs.dev/allowed-datastores";
    /// On a Namespace: `IngressClasses` that its tenants may use.
    pub const ALLOWED_INGRESS_CLASSES: &str = "steward.butlerlabs.dev/allowed-ingress-classes";
    /// On a Namespace: Gateways that its tenants may attach to, as `namespace/name`.
    pub const ALLOWED_GATEWAYS: &str = "steward.butlerlabs.dev/allowed-gateways";
}

/// Finalizers that keep an object until we have cleaned up behind it.
pub mod finalizers {
    /// On a `TenantControlPlane`: its data and user are still in the datastore.
    pub const DATASTORE: &str = "finalizer.steward.butlerlabs.dev/datastore";
    /// On a `DataStore`: tenants still use it.
    pub const IN_USE: &str = "finalizer.steward.butlerlabs.dev/in-use";
}

/// Labels and annotations to add to an object that Steward makes.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdditionalMetadata {
    /// Labels to add. Labels of Steward itself (`steward.butlerlabs.dev/…`) can't be replaced.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations to add.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}
