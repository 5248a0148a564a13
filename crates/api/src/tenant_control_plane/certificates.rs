//! `spec.certificates`: keys and certificates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Keys and certificates of the tenant cluster.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificatesSpec {
    /// Kind of the keys: `ECDSA` (P-256) or `RSA` (2048 bit). A change applies to each certificate
    /// when it is issued the next time, and never to the CAs.
    #[serde(default)]
    pub key_algorithm: KeyAlgorithm,
    /// Secret in the tenant's namespace with the cluster CA to use (`tls.crt` and `tls.key`), instead
    /// of one that Steward makes. It can't be changed later: every node and client trusts that CA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub ca_secret_name: Option<String>,
    /// Secret in the tenant's namespace with the CA for the front proxy (`tls.crt` and `tls.key`),
    /// instead of one that Steward makes. It can't be changed later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub front_proxy_ca_secret_name: Option<String>,
    /// How long certificates and kubeconfigs are valid, as hours, minutes and seconds; one year
    /// (`8760h`) without it. At least `10m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 24), regex(pattern = crate::duration::PATTERN))]
    pub validity: Option<String>,
    /// How long CAs that Steward makes are valid; ten years (`87600h`) without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 24), regex(pattern = crate::duration::PATTERN))]
    pub ca_validity: Option<String>,
    /// How long before its end a certificate is renewed, at most half of its validity; a third
    /// without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 24), regex(pattern = crate::duration::PATTERN))]
    pub renew_before: Option<String>,
}

/// Kinds of keys.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum KeyAlgorithm {
    /// ECDSA on P-256: small and fast.
    #[default]
    Ecdsa,
    /// RSA with 2048 bits, for clients that know nothing else.
    Rsa,
}
