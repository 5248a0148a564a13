//! How a tenant's API server is dialled: which address, which name is verified, with which credentials.
//!
//! Owns: the operator's own client certificate in each tenant. The tenant's authority signs it, it is short-lived
//! and it never leaves memory. Refuses: kubeconfigs. Users of the namespace can write the Secrets there, so of what
//! is in them only certificates and keys of the tenant's authority are used, never settings of a client: a
//! kubeconfig could send the operator's own token elsewhere, or run a program.

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::Uri;
use jiff::Timestamp;
use kube::{Client, Config, config::AuthInfo};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use steward_pki::{Authority, KeyKind, Pair, Request, SystemKeys, Usage, Validity};
use steward_plan::OPERATOR_USER;

use crate::{apply::owned, client::client, error::Error};

/// A tenant whose API server is not there is known to be so after this.
const CONNECT: Duration = Duration::from_secs(5);

/// How long the operator's own certificate is valid. A session is opened again after half of it.
const LIFETIME: Duration = Duration::from_hours(12);

/// How long the certificate is valid with which the operator gives itself its rights.
const GRANTING: Duration = Duration::from_mins(5);

/// Where a tenant is dialled.
#[derive(Clone)]
pub struct Place {
    /// What is dialled.
    pub url: Uri,
    /// The name its certificate must have, when not that of the URL.
    pub server_name: Option<String>,
}

/// Where a tenant is dialled, and who signs there.
#[derive(Clone)]
pub struct Target {
    /// Where.
    pub place: Place,
    /// The tenant's authority: it signed what the tenant shows, and signs what we show.
    pub authority: Pair,
}

/// Who the operator is inside a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Itself, with the rights that its `ClusterRole` lists.
    Operator,
    /// A member of `system:masters`, for as long as it takes to write that `ClusterRole`.
    Granting,
}

/// Why a tenant can't be dialled.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(String);

impl From<Unusable> for Error {
    fn from(Unusable(reason): Unusable) -> Self {
        Self::TenantAccess { reason }
    }
}

impl Target {
    /// Changes with address or authority.
    pub fn fingerprint(&self) -> String {
        let Place { url, server_name } = &self.place;
        let Pair { certificate, key } = &self.authority;
        let parts = serde_json::json!([url.to_string(), server_name, certificate, key]);
        owned::digest(&parts)
    }

    /// A client that keeps one HTTP/2 connection, so that a dozen watches cost one.
    ///
    /// # Errors
    /// When the authority can't be used.
    pub fn client(&self, identity: Identity) -> Result<Client, Unusable> {
        let unusable = |reason: String| Unusable(format!("its authority can't be used: {reason}"));
        let authority = Authority::from_pair(self.authority.clone())
            .map_err(|error| unusable(error.to_string()))?;
        let pair = identity
            .certificate(&authority)
            .map_err(|error| unusable(error.to_string()))?;
        let trusted = CertificateDer::pem_slice_iter(self.authority.certificate.as_bytes())
            .map(|found| found.map(|der| der.to_vec()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| unusable(error.to_string()))?;
        let mut config = Config::new(self.place.url.clone());
        config.root_cert = Some(trusted);
        config.auth_info = AuthInfo {
            client_certificate_data: Some(BASE64_STANDARD.encode(pair.certificate)),
            client_key_data: Some(BASE64_STANDARD.encode(pair.key).into()),
            ..AuthInfo::default()
        };
        config.tls_server_name.clone_from(&self.place.server_name);
        config.connect_timeout = Some(CONNECT);
        // Whether to try again is for the reconcile to say.
        config.default_retry = false;
        // Settings of the operator's own surroundings are none of a tenant's.
        config.proxy_url = None;
        client(config).map_err(|error| unusable(error.to_string()))
    }
}

impl Identity {
    fn certificate(self, authority: &Authority) -> Result<Pair, steward_pki::Error> {
        let (organization, lifetime) = match self {
            Self::Operator => (None, LIFETIME),
            Self::Granting => (Some("system:masters".to_owned()), GRANTING),
        };
        let request = Request {
            common_name: OPERATOR_USER.into(),
            organization,
            usage: Usage::Client,
            sans: vec![],
        };
        let validity = Validity::starting(Timestamp::now(), lifetime);
        authority.issue(&SystemKeys, KeyKind::EcdsaP256, &request, validity)
    }
}

/// How long a session may be used: it has to end before its certificate does. Tenants differ, so that a thousand
/// sessions do not end at once.
pub(super) fn session_age(key: &super::Key) -> Duration {
    crate::backoff::spread(key, LIFETIME / 2)
}

#[cfg(test)]
mod tests {
    use steward_pki::inspect;

    use super::*;

    fn authority() -> Authority {
        let validity = Validity::starting(Timestamp::now(), Duration::from_hours(24));
        Authority::new(&SystemKeys, KeyKind::EcdsaP256, "kubernetes", validity).unwrap()
    }

    #[test]
    fn the_operator_is_no_master_but_while_it_grants_itself_its_rights() {
        let authority = authority();
        let own = Identity::Operator.certificate(&authority).unwrap();
        let facts = inspect(&own.certificate).unwrap();
        assert_eq!(facts.common_name, OPERATOR_USER);
        assert_eq!(facts.organization, None);
        let granting = Identity::Granting.certificate(&authority).unwrap();
        let facts = inspect(&granting.certificate).unwrap();
        assert_eq!(facts.organization.as_deref(), Some("system:masters"));
        let life = facts.not_after.duration_since(Timestamp::now());
        assert!(life <= jiff::SignedDuration::from_mins(5), "{life:?}");
    }

    #[test]
    fn sessions_end_before_their_certificate_does() {
        for number in 0..100 {
            let age = session_age(&("tenants".into(), format!("t{number}")));
            assert!(age < LIFETIME, "{age:?}");
        }
    }

    #[test]
    fn a_secret_that_holds_no_authority_is_said_to_hold_none() {
        let target = Target {
            place: Place {
                url: "https://127.0.0.1:1".parse().unwrap(),
                server_name: None,
            },
            authority: Pair {
                certificate: "apiVersion: v1\nkind: Config".into(),
                key: "tokenFile: /var/run/secrets".into(),
            },
        };
        let error = target.client(Identity::Operator).map(drop).unwrap_err();
        assert!(error.to_string().contains("authority"), "{error}");
    }
}
