//! Keys that can't be made again: the authorities and the keys of service account tokens.
//!
//! Owns: whether each is there, whole, this tenant's, and the one that what is in use was made with. Refuses:
//! making another by itself. Every node, kubeconfig and token hangs on them, so one that is missing is new only
//! while nothing shows that it was ever there. What follows is written after all keys are, so a certificate or a
//! Deployment shows that they were.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use serde_json::Value;
use steward_api::{
    conditions::{self, ConditionType, Reason},
    metadata::annotations,
    tenant_control_plane::{CertificatesStatus, SecretRefStatus},
};
use steward_pki::{
    Authority, Pair, Reading, ServiceAccountKeys, inspect, is_from, service_account_drift,
};

use crate::{
    names::Names,
    object::{Kind, ObjectKey},
    observed::Observed,
    ownership::{Owner, Standing},
    problem::Problem,
    secret,
};

/// Where an authority comes from.
#[derive(Debug, Clone)]
pub enum AuthoritySource {
    /// None is there: make one.
    New,
    /// This one, ours of earlier or the user's.
    Existing(Pair),
}

/// The user's wish for a new key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// There is none.
    None,
    /// It is being fulfilled.
    UnderWay,
    /// It has been: nothing is lost any more.
    Done,
}

/// What is wrong with a key.
enum Fault {
    /// Its Secret is gone.
    Gone,
    /// Its Secret holds nothing usable.
    Damaged(String),
    /// It is not the one in use.
    Other,
}

/// An authority that is looked for.
struct Wanted<'a> {
    /// The Secret of ours.
    own: String,
    /// The Secret that the user brought.
    given: Option<&'a String>,
    /// Under which keys certificate and key are found.
    files: [(&'static str, &'static str); 2],
    /// Secrets with what it signed.
    signed: Vec<String>,
    /// What a lost one means.
    loss: &'static str,
    /// What the status says of it.
    known: Option<&'a SecretRefStatus>,
}

/// The keys of one tenant.
pub(super) struct Keys<'a> {
    observed: &'a Observed,
    names: &'a Names,
    status: CertificatesStatus,
    /// Whether the annotation allowed something that was refused otherwise.
    replacing: bool,
}

impl<'a> Keys<'a> {
    pub(super) fn of(observed: &'a Observed, names: &'a Names) -> Self {
        let status = observed.tenant.status.as_ref();
        Self {
            observed,
            names,
            status: status
                .and_then(|status| status.certificates.clone())
                .unwrap_or_default(),
            replacing: false,
        }
    }

    /// The cluster's authority.
    pub(super) fn ca(&mut self, given: Option<&String>) -> Result<AuthoritySource, Problem> {
        let known = self.status.ca.clone();
        self.authority(&Wanted {
            own: self.names.ca(),
            given,
            files: [("ca.crt", "ca.key"), ("tls.crt", "tls.key")],
            signed: signed_by_ca(self.names),
            loss: "every node must join again and every kubeconfig be fetched again",
            known: known.as_ref(),
        })
    }

    /// The front proxy's authority.
    pub(super) fn front_proxy(
        &mut self,
        given: Option<&String>,
    ) -> Result<AuthoritySource, Problem> {
        let known = self.status.front_proxy_ca.clone();
        self.authority(&Wanted {
            own: self.names.front_proxy_ca(),
            given,
            files: [
                ("front-proxy-ca.crt", "front-proxy-ca.key"),
                ("tls.crt", "tls.key"),
            ],
            signed: vec![self.names.front_proxy_client()],
            loss: "aggregated API servers refuse requests until they have read it from the ConfigMap \
                   kube-system/extension-apiserver-authentication, as most do by themselves",
            known: known.as_ref(),
        })
    }

    /// The keys of service account tokens; none when they are to be made.
    pub(super) fn tokens(&mut self) -> Result<Option<ServiceAccountKeys>, Problem> {
        let name = self.names.service_account();
        let loss = "every token of a service account is refused until it is renewed: restart the pods \
                    that use one";
        let fault = match self.own_secret(&name)? {
            None if !self.existed(self.status.sa.as_ref()) => return Ok(None),
            None => Fault::Gone,
            Some(data) => match usable(&data) {
                Ok(keys) if self.in_use(&keys) => return Ok(Some(keys)),
                Ok(keys) if self.asked(&name) => {
                    self.replacing = true;
                    return Ok(Some(keys));
                }
                Ok(_) => Fault::Other,
                Err(why) => Fault::Damaged(why),
            },
        };
        self.refuse(&name, &fault, loss)?;
        Ok(None)
    }

    /// What became of the user's wish, when all keys have been looked for.
    pub(super) fn wish(&self) -> Wish {
        let note = self.note().unwrap_or_default();
        let all = named(self.observed, self.names);
        if self.replacing {
            Wish::UnderWay
        } else if all.iter().any(|name| name == note) {
            Wish::Done
        } else {
            Wish::None
        }
    }

    fn authority(&mut self, wanted: &Wanted<'_>) -> Result<AuthoritySource, Problem> {
        let name = wanted.given.unwrap_or(&wanted.own);
        let data = match wanted.given {
            Some(given) => Some(self.brought(given)?),
            None => self.own_secret(name)?,
        };
        let fault = match data {
            None if !self.existed(wanted.known) => return Ok(AuthoritySource::New),
            None => Fault::Gone,
            Some(data) => {
                let (found, why) = authorities(&data, &wanted.files);
                let signed = self.certificates(&wanted.signed);
                let right = |pair: &&Pair| {
                    signed.is_empty() || signed.iter().any(|leaf| is_from(leaf, &pair.certificate))
                };
                match (found.iter().find(right), found.first(), wanted.given) {
                    (Some(pair), _, _) => return Ok(AuthoritySource::Existing(pair.clone())),
                    (None, Some(pair), _) if self.asked(name) => {
                        self.replacing = true;
                        return Ok(AuthoritySource::Existing(pair.clone()));
                    }
                    (None, Some(_), _) => Fault::Other,
                    (None, None, Some(given)) => return Err(self.unusable(given, &why)),
                    (None, None, None) => Fault::Damaged(why),
                }
            }
        };
        self.refuse(name, &fault, wanted.loss)?;
        Ok(AuthoritySource::New)
    }

    /// Says what is lost, unless the user wants a new one.
    fn refuse(&mut self, name: &str, fault: &Fault, loss: &str) -> Result<(), Problem> {
        if self.asked(name) {
            self.replacing = true;
            return Ok(());
        }
        let what = match fault {
            Fault::Gone => "is gone".to_owned(),
            Fault::Damaged(why) => format!("holds no usable key ({why})"),
            Fault::Other => "holds another key than the one in use".to_owned(),
        };
        let (tenant, namespace) = (&self.names.tenant, &self.names.namespace);
        let note = annotations::REPLACE_LOST_KEY;
        let message = format!(
            "{what}. Running pods go on with the key that they have; nothing of this tenant is \
             written, nothing can be renewed, and a pod that ends can't start again. Put it back \
             from a backup; while a pod runs, its key can be read there: \"A lost key\" in \
             docs/tenant.md has the command. If it is lost for good: kubectl annotate tcp -n \
             {namespace} {tenant} {note}={name}; then {loss}"
        );
        Err(self.problem(name, Reason::KeyLost, message))
    }

    fn problem(&self, name: &str, reason: Reason, message: impl Into<String>) -> Problem {
        Problem::new(
            ConditionType::CertificatesReady,
            reason,
            format!("Secret {}/{name}", self.names.namespace),
            message,
        )
    }

    /// What the user brought.
    fn brought(&self, name: &str) -> Result<BTreeMap<String, String>, Problem> {
        let live = secret::read(&self.observed.live, &self.names.namespace, name);
        live.ok_or_else(|| {
            let message = "is not there: make it with tls.crt and tls.key of your authority";
            self.problem(name, Reason::SecretMissing, message)
        })
    }

    fn unusable(&self, name: &str, why: &str) -> Problem {
        let message = format!("holds no usable authority ({why}): put a usable one there");
        self.problem(name, Reason::CertificateAuthorityInvalid, message)
    }

    /// A Secret of ours. Somebody else's of that name is not used.
    fn own_secret(&self, name: &str) -> Result<Option<BTreeMap<String, String>>, Problem> {
        let Some(found) = self.live(Kind::Secret, name) else {
            return Ok(None);
        };
        let owner = Owner::tenant(&self.observed.tenant);
        if owner.standing(found) == Standing::Foreign {
            let key = ObjectKey::new(Kind::Secret, &self.names.namespace, name);
            let message = owner.refusal(&key, found);
            return Err(self.problem(name, Reason::ObjectNotOurs, message));
        }
        Ok(Some(secret::data(found)))
    }

    fn live(&self, kind: Kind, name: &str) -> Option<&Value> {
        self.observed.live.get(kind, &self.names.namespace, name)
    }

    /// Whether anything shows that the keys have been there.
    fn existed(&self, known: Option<&SecretRefStatus>) -> bool {
        let mut made_with_keys = signed_by_ca(self.names);
        made_with_keys.push(self.names.front_proxy_client());
        known.is_some()
            || self.live(Kind::Deployment, &self.names.tenant).is_some()
            || made_with_keys
                .iter()
                .any(|name| self.live(Kind::Secret, name).is_some())
    }

    /// Certificates in these Secrets, also those in kubeconfigs.
    fn certificates(&self, secrets: &[String]) -> Vec<String> {
        secrets
            .iter()
            .filter_map(|name| self.live(Kind::Secret, name))
            .flat_map(|found| secret::data(found).into_values())
            .filter_map(|text| {
                let certificate = match inspect(&text) {
                    Ok(_) => text,
                    Err(_) => Reading::parse(&text)?.client?.certificate,
                };
                let leaf = inspect(&certificate).is_ok_and(|facts| !facts.is_ca);
                leaf.then_some(certificate)
            })
            .collect()
    }

    /// Whether tokens in use were signed with these keys, as far as that can be told. Several public keys are a
    /// change of keys that keeps old tokens valid; a status of another maker has other checksums.
    fn in_use(&self, keys: &ServiceAccountKeys) -> bool {
        let status = self.observed.tenant.status.as_ref();
        let ours = status.is_some_and(|status| {
            conditions::find(&status.conditions, ConditionType::CertificatesReady).is_some()
        });
        let known = self.status.sa.as_ref().filter(|_| ours);
        let Some(known) = known.and_then(|sa| sa.checksum.as_deref()) else {
            return true;
        };
        let several = keys.public.matches("-----BEGIN").count() > 1;
        several || secret::checksum(&secret::encoded(&token_files(keys))) == known
    }

    fn note(&self) -> Option<&str> {
        let notes = self.observed.tenant.annotations();
        notes.get(annotations::REPLACE_LOST_KEY).map(String::as_str)
    }

    fn asked(&self, name: &str) -> bool {
        self.note() == Some(name)
    }
}

/// Files of the Secret with the keys of service account tokens.
pub(crate) fn token_files(keys: &ServiceAccountKeys) -> BTreeMap<String, String> {
    [("sa.pub", &keys.public), ("sa.key", &keys.private)]
        .map(|(file, text)| (file.to_owned(), text.clone()))
        .into()
}

/// Secrets that hold a key.
fn named(observed: &Observed, names: &Names) -> Vec<String> {
    let mut all = vec![names.ca(), names.front_proxy_ca(), names.service_account()];
    if let Some(spec) = &observed.tenant.spec.certificates {
        all.extend(spec.ca_secret_name.clone());
        all.extend(spec.front_proxy_ca_secret_name.clone());
    }
    all
}

/// Secrets with what the cluster's authority signed.
fn signed_by_ca(names: &Names) -> Vec<String> {
    vec![
        names.api_server(),
        names.kubelet_client(),
        names.admin_kubeconfig(),
        names.controller_manager_kubeconfig(),
        names.scheduler_kubeconfig(),
        names.konnectivity_certificate(),
        names.konnectivity_kubeconfig(),
        names.gate_certificate(),
        names.tcp_proxy_certificate(),
    ]
}

/// Authorities in a Secret, which may hold the same one twice, and what is wrong with the last that isn't one.
fn authorities(data: &BTreeMap<String, String>, files: &[(&str, &str)]) -> (Vec<Pair>, String) {
    let mut why = "it has no certificate and key".to_owned();
    let mut found = Vec::new();
    for (certificate, key) in files {
        let Some((certificate, key)) = data.get(*certificate).zip(data.get(*key)) else {
            continue;
        };
        match Authority::from_pair(Pair {
            certificate: certificate.clone(),
            key: key.clone(),
        }) {
            Ok(authority) => found.push(authority.pair().clone()),
            Err(error) => why = error.to_string(),
        }
    }
    (found, why)
}

/// The token keys in a Secret. A lost public key follows from the private one; tokens stay valid.
fn usable(data: &BTreeMap<String, String>) -> Result<ServiceAccountKeys, String> {
    let private = data.get("sa.key").ok_or("it has no sa.key")?.clone();
    let public = data.get("sa.pub").cloned().unwrap_or_default();
    let found = ServiceAccountKeys { public, private };
    if service_account_drift(&found).is_empty() {
        return Ok(found);
    }
    ServiceAccountKeys::from_private(&found.private).map_err(|error| error.to_string())
}
