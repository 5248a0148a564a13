//! `DataStore`: where tenants' data is kept: someone else's etcd or database, or an etcd of ours.

mod managed;
mod status;

use k8s_openapi::ByteString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use managed::*;
pub use status::*;

/// Where and how tenants' data is kept.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "steward.butlerlabs.dev",
    version = "v1alpha1",
    kind = "DataStore",
    plural = "datastores",
    singular = "datastore",
    category = "steward",
    status = "DataStoreStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A place where tenants' data is kept: an etcd or a database that exists, or an etcd that Steward runs.",
    printcolumn(
        name = "Driver",
        type_ = "string",
        description = "Kind of datastore",
        json_path = ".spec.driver"
    ),
    printcolumn(
        name = "Ready",
        type_ = "boolean",
        description = "Whether tenants can use it",
        json_path = ".status.ready"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct DataStoreSpec {
    /// Kind of datastore: `etcd`, or `MySQL`, `PostgreSQL` or `NATS` through kine. It can't be
    /// changed later.
    pub driver: Driver,
    /// Where the datastore is, each as `host:port` without a scheme. Required unless `managed`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 3, max = 259)))]
    pub endpoints: Vec<String>,
    /// User and password. Not for etcd, which knows Steward by its client certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basic_auth: Option<BasicAuth>,
    /// Certificates for the connection. Required for an etcd that isn't `managed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_config: Option<TlsConfig>,
    /// Let Steward run this etcd itself, with certificates, users, compaction and defragmentation.
    /// Excludes `endpoints`, `basicAuth` and `tlsConfig`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed: Option<ManagedEtcd>,
}

/// Kinds of datastores.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
pub enum Driver {
    /// etcd.
    #[default]
    #[serde(rename = "etcd")]
    Etcd,
    /// MySQL or `MariaDB`, through kine.
    MySQL,
    /// PostgreSQL, through kine.
    PostgreSQL,
    /// NATS `JetStream`, through kine.
    NATS,
}

impl Driver {
    /// As it is written in the spec.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::MySQL => "MySQL",
            Self::PostgreSQL => "PostgreSQL",
            Self::NATS => "NATS",
        }
    }
}

/// User and password.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BasicAuth {
    /// Name of the user.
    pub username: ContentRef,
    /// Password of the user.
    pub password: ContentRef,
}

/// Certificates for the connection.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TlsConfig {
    /// CA that signed the datastore's certificate. For etcd its key is needed too, to give each
    /// tenant a client certificate of its own.
    pub certificate_authority: CertificateAuthority,
    /// Certificate with which Steward connects. For etcd it must be root's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_certificate: Option<ClientCertificate>,
}

/// A CA.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateAuthority {
    /// Certificate, PEM.
    pub certificate: ContentRef,
    /// Private key, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_key: Option<ContentRef>,
}

/// A certificate and its key.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientCertificate {
    /// Certificate, PEM.
    pub certificate: ContentRef,
    /// Private key, PEM.
    pub private_key: ContentRef,
}

/// A piece of data, given here or in a Secret. If both are there, `content` is used.
#[derive(Clone, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContentRef {
    /// The data, base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 65536))]
    pub content: Option<ContentBytes>,
    /// A Secret that holds the data. Better than `content`, which everyone who may read the
    /// `DataStore` can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_reference: Option<SecretReference>,
}

/// Bytes given in place. Their `Debug` is silent, because they may be a key.
#[derive(Clone, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct ContentBytes(pub ByteString);

impl std::fmt::Debug for ContentRef {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ContentRef")
            .field("content", &self.content.as_ref().map(|_| "…"))
            .field("secret_reference", &self.secret_reference)
            .finish()
    }
}

impl JsonSchema for ContentBytes {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ContentBytes".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "byte" })
    }
}

/// A key of a Secret.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretReference {
    /// Name of the Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub name: Option<String>,
    /// Namespace of the Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
    /// Key in the Secret's data.
    #[schemars(length(min = 1, max = 253))]
    pub key_path: String,
}
