//! The way into a datastore that someone else runs: addresses, and certificates from Secrets.

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use steward_api::{DataStore, conditions::Reason, datastore::ContentRef};

use super::Complaint;
use crate::{context::Context, datastore::etcd::Access, error::Error};

/// Resolves addresses and certificates of a datastore that someone else runs.
pub(super) async fn access(
    context: &Context,
    store: &DataStore,
) -> Result<Result<(Access, String), Complaint>, Error> {
    let missing = |field: &str| {
        (
            Reason::SecretMissing,
            format!("spec.{field} is missing; etcd needs it"),
        )
    };
    let Some(tls) = &store.spec.tls_config else {
        return Ok(Err(missing("tlsConfig")));
    };
    let Some(client) = &tls.client_certificate else {
        return Ok(Err(missing("tlsConfig.clientCertificate")));
    };
    let Some(ca_key) = &tls.certificate_authority.private_key else {
        return Ok(Err(missing("tlsConfig.certificateAuthority.privateKey")));
    };
    let wanted = [
        (
            "tlsConfig.certificateAuthority.certificate",
            &tls.certificate_authority.certificate,
        ),
        ("tlsConfig.certificateAuthority.privateKey", ca_key),
        (
            "tlsConfig.clientCertificate.certificate",
            &client.certificate,
        ),
        (
            "tlsConfig.clientCertificate.privateKey",
            &client.private_key,
        ),
    ];
    let mut texts = Vec::with_capacity(wanted.len());
    for (field, reference) in wanted {
        match content(context, reference).await? {
            Ok(text) => texts.push(text),
            Err(why) => return Ok(Err((Reason::SecretMissing, format!("spec.{field}: {why}")))),
        }
    }
    let mut texts = texts.into_iter();
    let mut next = || texts.next().unwrap_or_default();
    let (ca, ca_key, certificate, key) = (next(), next(), next(), next());
    Ok(Ok((
        Access {
            endpoints: store.spec.endpoints.clone(),
            ca,
            certificate,
            key,
        },
        ca_key,
    )))
}

/// The text behind a reference, or why there is none.
async fn content(
    context: &Context,
    reference: &ContentRef,
) -> Result<Result<String, String>, Error> {
    let text = |bytes: &[u8]| {
        String::from_utf8(bytes.to_vec()).map_err(|_| "it is not text; PEM is".to_owned())
    };
    if let Some(content) = &reference.content {
        return Ok(text(&content.0.0));
    }
    let Some(secret) = &reference.secret_reference else {
        return Ok(Err("neither content nor secretReference is given".into()));
    };
    let namespace = secret
        .namespace
        .as_deref()
        .unwrap_or(&context.settings.namespace);
    let Some(name) = secret.name.as_deref() else {
        return Ok(Err("secretReference.name is missing".into()));
    };
    let api: Api<Secret> = Api::namespaced(context.client.clone(), namespace);
    let found = api.get_opt(name).await.map_err(|error| Error::Read {
        what: format!("Secret {namespace}/{name}"),
        error,
    })?;
    let Some(found) = found else {
        return Ok(Err(format!(
            "there is no Secret {namespace}/{name}; make it"
        )));
    };
    let entry = found
        .data
        .as_ref()
        .and_then(|data| data.get(&secret.key_path));
    Ok(match entry {
        Some(bytes) => text(&bytes.0),
        None => Err(format!(
            "Secret {namespace}/{name} has no key {}; add it",
            secret.key_path
        )),
    })
}
