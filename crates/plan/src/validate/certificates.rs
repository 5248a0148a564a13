//! Lifetimes and kinds of keys, and authorities that the user brought.

use std::time::Duration;

use steward_api::{
    conditions::{ConditionType, Reason},
    duration,
    tenant_control_plane::{CertificatesSpec, KeyAlgorithm},
};
use steward_pki::{Authority, KeyKind, Pair};

use crate::{names::Names, observed::Observed, problem::Problem, secret, settings::Settings};

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
}

/// Where an authority comes from.
#[derive(Debug, Clone)]
pub enum AuthoritySource {
    /// None is there: make one.
    New,
    /// This one, ours of earlier or the user's.
    Existing(Pair),
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
    let mut authority = |own: &str, given: Option<&String>, keys: [(&str, &str); 2]| {
        source(observed, names, own, given, keys).unwrap_or_else(|problem| {
            problems.push(problem);
            AuthoritySource::New
        })
    };
    let ca = authority(
        &names.ca(),
        spec.ca_secret_name.as_ref(),
        [("ca.crt", "ca.key"), ("tls.crt", "tls.key")],
    );
    let front_proxy_ca = authority(
        &names.front_proxy_ca(),
        spec.front_proxy_ca_secret_name.as_ref(),
        [
            ("front-proxy-ca.crt", "front-proxy-ca.key"),
            ("tls.crt", "tls.key"),
        ],
    );
    if !problems.is_empty() {
        return Err(problems);
    }
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
    })
}

/// The authority in our own Secret or in the one the user names. One that is there and
/// broken is never replaced by itself: every node and every client trusts it.
fn source(
    observed: &Observed,
    names: &Names,
    own: &str,
    given: Option<&String>,
    keys: [(&str, &str); 2],
) -> Result<AuthoritySource, Problem> {
    let name = given.map_or(own, String::as_str);
    let live = secret::read(&observed.live, &names.namespace, name);
    let Some(data) = live else {
        return match given {
            None => Ok(AuthoritySource::New),
            Some(name) => Err(Problem::new(
                ConditionType::CertificatesReady,
                Reason::SecretMissing,
                format!("Secret {}/{name}", names.namespace),
                "is not there: make it with tls.crt and tls.key of your authority",
            )),
        };
    };
    let mut fault = "it has no certificate and key".to_owned();
    for (certificate, key) in keys {
        let pair = data.get(certificate).zip(data.get(key));
        let Some((certificate, key)) = pair else {
            continue;
        };
        match Authority::from_pair(Pair {
            certificate: certificate.clone(),
            key: key.clone(),
        }) {
            Ok(authority) => return Ok(AuthoritySource::Existing(authority.pair().clone())),
            Err(error) => fault = error.to_string(),
        }
    }
    let (reason, advice) = match given {
        Some(_) => (
            Reason::CertificateAuthorityInvalid,
            "put a usable one there",
        ),
        None => (
            Reason::SecretInvalid,
            "restore it, or delete it to have a new one made: then every node must join again \
             and every kubeconfig be fetched anew",
        ),
    };
    Err(Problem::new(
        ConditionType::CertificatesReady,
        reason,
        format!("Secret {}/{name}", names.namespace),
        format!("holds no usable authority ({fault}): {advice}"),
    ))
}
