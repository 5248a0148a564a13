//! Certificates that are due at about the same time are renewed at the same time.
//!
//! Each renewal makes new pods. Certificates of one tenant are made within minutes, when what they need
//! is known, so without this they would fall due one after another and replace the pods each time.

use jiff::Timestamp;
use serde_json::Value;
use steward_api::metadata::labels;
use steward_pki::{Facts, Reading, inspect, renew_at};

use crate::{object::Kind, observed::Observed, secret, validate::Validated};

/// Of its life, how much earlier than it must a certificate may be renewed.
const EARLIER: u32 = 20;

/// The moment by which to judge what is due: now, or somewhat later if anything is due now.
pub(super) fn horizon(tenant: &Validated, observed: &Observed) -> Timestamp {
    let now = observed.now;
    let renew_before = tenant.certificates.renew_before;
    let secrets = observed.live.0.iter().filter(|(key, body)| {
        key.kind == Kind::Secret
            && key.namespace.as_ref() == Some(&tenant.names.namespace)
            && has_life(body)
    });
    secrets
        .flat_map(|(_, body)| certificates(body))
        .find(|facts| renew_at(facts, renew_before) <= now)
        .and_then(|due| now.checked_add(due.life() / EARLIER).ok())
        .unwrap_or(now)
}

fn has_life(secret: &Value) -> bool {
    secret
        .pointer("/metadata/labels")
        .is_some_and(|all| all.get(labels::CERTIFICATE_LIFECYCLE).is_some())
}

/// What a Secret's files say, of kubeconfigs too. Authorities are not renewed with the rest.
fn certificates(secret: &Value) -> impl Iterator<Item = Facts> {
    secret::data(secret).into_values().filter_map(|text| {
        let facts = inspect(&text).ok().or_else(|| {
            let client = Reading::parse(&text)?.client?;
            inspect(&client.certificate).ok()
        });
        facts.filter(|facts| !facts.is_ca)
    })
}
