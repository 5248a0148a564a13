//! Lifetimes and kinds of keys, and the keys that are there.

use std::time::Duration;

use steward_api::{
    duration,
    tenant_control_plane::{CertificatesSpec, KeyAlgorithm},
};
use steward_pki::{KeyKind, ServiceAccountKeys};

use super::keys::{AuthoritySource, Keys, Wish};
use crate::{names::Names, observed::Observed, problem::Problem, settings::Settings};

/// Certificates shorter than this are renewed more often than pods can follow.
const SHORTEST: Duration = Duration::from_mins(10);

/// How certificates are made.
#[derive(Debug, Clone)]
pub struct Certificates {
    /// Kind of new keys.
    pub key_kind: KeyKind,
    /// How long certificates are valid.
    pub lifetime: Duration,
    /// How long authorities are valid.
    pub ca_lifetime: Duration,
    /// How long before its end one is renewed; a third of its life without it.
    pub renew_before: Option<Duration>,
    /// The cluster's authority.
    pub ca: AuthoritySource,
    /// The front proxy's authority.
    pub front_proxy_ca: AuthoritySource,
    /// The keys of service account tokens; none when they are to be made.
    pub token_keys: Option<ServiceAccountKeys>,
    /// What became of the user's wish for a new key.
    pub key_wish: Wish,
}

pub(super) fn parse(
    settings: &Settings,
    observed: &Observed,
    names: &Names,
) -> Result<Certificates, Vec<Problem>> {
    let default = CertificatesSpec::default();
    let spec = observed
        .tenant
        .spec
        .certificates
        .as_ref()
        .unwrap_or(&default);
    let mut problems = Vec::new();
    let mut time = |field: &str, text: &Option<String>| {
        let parsed = text.as_deref().map(duration::parse).transpose();
        parsed.unwrap_or_else(|error| {
            problems.push(Problem::invalid(
                format!("spec.certificates.{field}"),
                error.to_string(),
            ));
            None
        })
    };
    let lifetime = time("validity", &spec.validity).unwrap_or(settings.certificate_lifetime);
    let ca_lifetime = time("caValidity", &spec.ca_validity).unwrap_or(settings.ca_lifetime);
    let renew_before = time("renewBefore", &spec.renew_before).or(settings.renew_before);
    if lifetime < SHORTEST {
        problems.push(Problem::invalid(
            "spec.certificates.validity",
            "use at least 10m",
        ));
    }
    let mut keys = Keys::of(observed, names);
    let ca = keys.ca(spec.ca_secret_name.as_ref());
    let front_proxy_ca = keys.front_proxy(spec.front_proxy_ca_secret_name.as_ref());
    let token_keys = keys.tokens();
    let (ca, front_proxy_ca, token_keys) = match (ca, front_proxy_ca, token_keys) {
        (Ok(ca), Ok(front_proxy_ca), Ok(token_keys)) if problems.is_empty() => {
            (ca, front_proxy_ca, token_keys)
        }
        (ca, front_proxy_ca, token_keys) => {
            problems.extend(ca.err());
            problems.extend(front_proxy_ca.err());
            problems.extend(token_keys.err());
            return Err(problems);
        }
    };
    let key_kind = match spec.key_algorithm {
        KeyAlgorithm::Ecdsa => KeyKind::EcdsaP256,
        KeyAlgorithm::Rsa => KeyKind::Rsa2048,
    };
    Ok(Certificates {
        key_kind,
        lifetime,
        ca_lifetime,
        renew_before,
        ca,
        front_proxy_ca,
        token_keys,
        key_wish: keys.wish(),
    })
}
