//! Secrets with keys, certificates and kubeconfigs.
//!
//! What exists and is as it should be is kept to the byte; only what drifted is made
//! anew. The [`Workshop`] remembers when the next certificate is due.

mod kubeconfigs;
mod secrets;
mod together;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use serde_json::Value;
use steward_api::metadata::{annotations, labels};
use steward_pki::{
    Authority, Error, KeySource, Pair, Request, Validity, Wanted, drift, inspect, renew_at,
};

use super::meta::{meta, object};
use crate::{
    object::{Kind, Object, Stage},
    observed::Observed,
    secret,
    settings::Settings,
    validate::{AuthoritySource, Validated},
};

/// Where certificates are made, checked and kept.
pub(crate) struct Workshop<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) tenant: &'a Validated,
    pub(crate) observed: &'a Observed,
    keys: &'a dyn KeySource,
    /// What is due by then is renewed now.
    horizon: Timestamp,
    /// The cluster's authority.
    pub(crate) ca: Authority,
    /// The front proxy's authority.
    pub(crate) front_proxy: Authority,
    /// When the next certificate is due.
    pub(crate) due: Option<Timestamp>,
}

/// A Secret to write.
struct Content<'a> {
    name: String,
    component: &'a str,
    stage: Stage,
    because: &'static str,
    type_: &'a str,
    lifecycle: Option<&'a str>,
    data: BTreeMap<String, String>,
}

impl<'a> Workshop<'a> {
    /// Opens with the authorities, existing or new.
    pub(crate) fn open(
        settings: &'a Settings,
        tenant: &'a Validated,
        observed: &'a Observed,
        keys: &'a dyn KeySource,
    ) -> Result<Self, Error> {
        let certificates = &tenant.certificates;
        let validity = Validity::starting(observed.now, certificates.ca_lifetime);
        let authority = |source: &AuthoritySource, name: &str| match source {
            AuthoritySource::Existing(pair) => Authority::from_pair(pair.clone()),
            AuthoritySource::New => Authority::new(keys, certificates.key_kind, name, validity),
        };
        let ca = authority(&certificates.ca, "kubernetes")?;
        let front_proxy = authority(&certificates.front_proxy_ca, "front-proxy-ca")?;
        Ok(Self {
            settings,
            tenant,
            observed,
            keys,
            horizon: together::horizon(tenant, observed),
            ca,
            front_proxy,
            due: None,
        })
    }

    /// The certificate in the Secret if it is right, a new one otherwise.
    fn keep_or_issue(
        &mut self,
        secret_name: &str,
        found: Option<Pair>,
        request: &Request,
        authority: &Authority,
    ) -> Result<Pair, Error> {
        let wanted = Wanted {
            request,
            authority: &authority.pair().certificate,
            now: self.horizon,
            renew_before: self.tenant.certificates.renew_before,
        };
        let good = |pair: &Pair| drift(pair, &wanted).is_empty();
        let kept = found.filter(|pair| !self.rotation_asked(secret_name) && good(pair));
        let pair = match kept {
            Some(pair) => pair,
            None => self.issue(request, authority)?,
        };
        self.remember(&pair.certificate);
        Ok(pair)
    }

    fn issue(&self, request: &Request, authority: &Authority) -> Result<Pair, Error> {
        let certificates = &self.tenant.certificates;
        let validity = Validity::starting(self.observed.now, certificates.lifetime);
        authority.issue(self.keys, certificates.key_kind, request, validity)
    }

    /// Notes when a certificate is due.
    fn remember(&mut self, certificate: &str) {
        if let Ok(facts) = inspect(certificate) {
            let due = renew_at(&facts, self.tenant.certificates.renew_before);
            self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
        }
    }

    /// Two values of a live Secret.
    fn found(&self, name: &str, certificate: &str, key: &str) -> Option<Pair> {
        let mut data = self.live_data(name)?;
        Some(Pair {
            certificate: data.remove(certificate)?,
            key: data.remove(key)?,
        })
    }

    fn live_data(&self, name: &str) -> Option<BTreeMap<String, String>> {
        secret::read(&self.observed.live, &self.tenant.names.namespace, name)
    }

    fn rotate_note(&self, name: &str) -> Option<&str> {
        let live = self
            .observed
            .live
            .get(Kind::Secret, &self.tenant.names.namespace, name)?;
        live.pointer("/metadata/annotations")?
            .get(annotations::ROTATE)?
            .as_str()
    }

    /// Whether the user asked for a new certificate: the annotation is there, and it
    /// isn't our answer to an earlier request.
    fn rotation_asked(&self, name: &str) -> bool {
        self.rotate_note(name)
            .is_some_and(|note| note.parse::<Timestamp>().is_err())
    }

    /// The Secret as an object.
    fn secret(&self, content: Content<'_>) -> Object {
        let mut metadata = meta(self.tenant, content.name.clone(), content.component);
        if let Some(lifecycle) = content.lifecycle {
            let all = metadata.labels.get_or_insert_default();
            all.insert(labels::CERTIFICATE_LIFECYCLE.into(), lifecycle.into());
        }
        if let Some(note) = self.rotate_note(&content.name) {
            let done = note.parse::<Timestamp>().unwrap_or(self.observed.now);
            let note = (annotations::ROTATE.to_owned(), done.to_string());
            metadata.annotations.get_or_insert_default().extend([note]);
        }
        let bytes = |text: String| ByteString(text.into_bytes());
        let body = Secret {
            metadata,
            type_: Some(content.type_.into()),
            data: Some(
                content
                    .data
                    .into_iter()
                    .map(|(key, text)| (key, bytes(text)))
                    .collect(),
            ),
            ..Secret::default()
        };
        object(Kind::Secret, content.stage, content.because, &body)
    }
}

/// Checksum of what a Secret or `ConfigMap` holds, whatever its metadata says.
pub(crate) fn content_checksum(object: &Object) -> String {
    secret::checksum(object.body.get("data").unwrap_or(&Value::Null))
}
