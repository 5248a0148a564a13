//! A `DataStore` that Steward runs itself: an etcd of one or three members with its own
//! authority, in the operator's namespace.
//!
//! Users and roles inside etcd are not decided here: the operator turns authentication
//! on with the root certificate that the plan gives it.

mod advisories;
mod members;
mod peers;

use std::collections::BTreeMap;

pub use advisories::keeps_tenants_apart;
use jiff::Timestamp;
use k8s_openapi::{
    ByteString,
    api::core::v1::Secret,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::ResourceExt as _;
use steward_api::{
    DataStore,
    conditions::{ConditionType, Reason},
    datastore::{ManagedEtcd, ManagedEtcdStatus},
    metadata::{annotations, labels},
};
use steward_pki::{
    Authority, KeyKind, KeySource, Pair, Request, San, Usage, Validity, Wanted, drift, inspect,
    renew_at,
};

use crate::{
    build::meta::object,
    names::PROJECT,
    object::{Kind, Object, Stage},
    observed::Live,
    outcome::Prune,
    problem::Problem,
    secret,
    settings::Settings,
};

/// Port for clients.
pub const CLIENT_PORT: u16 = 2379;

/// A managed `DataStore` and its objects, at one moment.
#[derive(Debug, Clone)]
pub struct Observed {
    /// When this was read.
    pub now: Timestamp,
    /// The `DataStore`.
    pub store: DataStore,
    /// Its objects in the operator's namespace: all of [`managed_kinds`] that carry
    /// [`selector`], with their bodies.
    pub live: Live,
}

/// What a managed `DataStore` should look like.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Objects in the operator's namespace, ordered by stage.
    pub objects: Vec<Object>,
    /// What else of ours may go.
    pub prune: Prune,
    /// How to reach it, as root.
    pub access: Access,
    /// Whether enough members are ready to serve.
    pub serving: bool,
    /// For the `DataStore`'s status.
    pub status: ManagedEtcdStatus,
    /// When a certificate is due.
    pub next_check: Option<Timestamp>,
}

/// How to reach a managed etcd.
#[derive(Debug, Clone)]
pub struct Access {
    /// `host:port` of every member.
    pub endpoints: Vec<String>,
    /// Certificate and key of its authority: signs tenants' client certificates.
    pub authority: Pair,
    /// Client certificate of the user `root`.
    pub root: Pair,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something the user has to look at.
    #[error("{0}")]
    Unusable(Problem),
    /// The cryptographic library failed.
    #[error("make the certificates of the DataStore {name}")]
    Certificates {
        /// Name of the `DataStore`.
        name: String,
        /// What went wrong.
        #[source]
        source: steward_pki::Error,
    },
}

/// Kinds that a managed `DataStore` consists of.
pub fn managed_kinds() -> Vec<Kind> {
    vec![
        Kind::Secret,
        Kind::Service,
        Kind::StatefulSet,
        Kind::PodDisruptionBudget,
        Kind::NetworkPolicy,
    ]
}

/// Labels of its objects.
pub fn selector(name: &str) -> BTreeMap<String, String> {
    [
        (labels::PROJECT.to_owned(), PROJECT.to_owned()),
        (labels::COMPONENT.to_owned(), "etcd".to_owned()),
        (labels::DATASTORE.to_owned(), name.to_owned()),
    ]
    .into()
}

/// What it should look like; `None` if it isn't managed.
pub fn plan(
    settings: &Settings,
    observed: &Observed,
    keys: &dyn KeySource,
) -> Result<Option<Plan>, Error> {
    let Some(spec) = &observed.store.spec.managed else {
        return Ok(None);
    };
    let name = observed.store.name_any();
    let etcd = Etcd {
        settings,
        observed,
        spec,
        name: name.clone(),
        keys,
    };
    let authorities = Authorities {
        clients: etcd.authority("ca", true)?,
        peers: etcd.authority("peer-ca", etcd.has_own_peers())?,
    };
    etcd.plan(&authorities)
        .map(Some)
        .map_err(|source| Error::Certificates { name, source })
}

/// Who signs for an etcd. Members have an authority of their own: what tenants show to the etcd must mean nothing
/// to its members.
struct Authorities {
    /// Signs servers, tenants and the operator.
    clients: Authority,
    /// Signs members for each other.
    peers: Authority,
}

/// An etcd in the making.
pub(crate) struct Etcd<'a> {
    settings: &'a Settings,
    observed: &'a Observed,
    spec: &'a ManagedEtcd,
    name: String,
    keys: &'a dyn KeySource,
}

impl Etcd<'_> {
    /// Name of Service and `StatefulSet`.
    fn set(&self) -> String {
        format!("{}-etcd", self.name)
    }

    fn secret_name(&self, what: &str) -> String {
        format!("{}-etcd-{what}", self.name)
    }

    fn replicas(&self) -> i32 {
        if self.spec.replicas <= 1 { 1 } else { 3 }
    }

    /// DNS name under which a member is known.
    fn member(&self, index: i32) -> String {
        let set = self.set();
        let domain = &self.settings.cluster_domain;
        format!(
            "{set}-{index}.{set}.{}.svc.{domain}",
            self.settings.namespace
        )
    }

    fn members(&self) -> Vec<String> {
        (0..self.replicas())
            .map(|index| self.member(index))
            .collect()
    }

    fn found(&self, what: &str, certificate: &str, key: &str) -> Option<Pair> {
        let name = self.secret_name(what);
        let mut data = secret::read(&self.observed.live, &self.settings.namespace, &name)?;
        Some(Pair {
            certificate: data.remove(certificate)?,
            key: data.remove(key)?,
        })
    }

    /// An authority, existing or new. One that is `used` and lost or damaged is never replaced by itself: what
    /// members and tenants trust hangs on it. Members are made after it, so that there are members means that
    /// there was an authority.
    fn authority(&self, what: &str, used: bool) -> Result<Authority, Error> {
        let name = self.secret_name(what);
        let live = self
            .observed
            .live
            .get(Kind::Secret, &self.settings.namespace, &name);
        let Some(live) = live else {
            if used && self.live_set().is_some() && !self.replaced_on_purpose(&name) {
                return Err(self.lost(&name));
            }
            let validity = Validity::starting(self.observed.now, self.settings.ca_lifetime);
            let common_name = name.clone();
            return Authority::new(self.keys, KeyKind::EcdsaP256, &common_name, validity).map_err(
                |source| Error::Certificates {
                    name: self.name.clone(),
                    source,
                },
            );
        };
        let mut data = secret::data(live);
        let mut text = |key: &str| data.remove(key).unwrap_or_default();
        let pair = Pair {
            certificate: text("ca.crt"),
            key: text("ca.key"),
        };
        Authority::from_pair(pair).map_err(|error| {
            Error::Unusable(Problem::new(
                ConditionType::Ready,
                Reason::SecretInvalid,
                format!("Secret {}/{name}", self.settings.namespace),
                format!("holds no usable authority ({error}): restore it from a backup"),
            ))
        })
    }

    /// Whether an authority can be replaced at once, as far as members are concerned. Members that trust different
    /// authorities have no quorum.
    fn replaceable(&self, name: &str) -> bool {
        name == self.secret_name("ca") || self.replicas() == 1
    }

    fn replaced_on_purpose(&self, name: &str) -> bool {
        let notes = self.observed.store.annotations();
        let asked = notes.get(annotations::REPLACE_LOST_KEY);
        self.replaceable(name) && asked.is_some_and(|secret| secret == name)
    }

    fn lost(&self, name: &str) -> Error {
        let advice = if self.replaceable(name) {
            format!(
                " If it is lost for good, annotate the DataStore with {}={name} to have a new one made: \
                 every tenant of it is then without its data until its pods have the new certificates",
                annotations::REPLACE_LOST_KEY
            )
        } else {
            String::new()
        };
        Error::Unusable(Problem::new(
            ConditionType::Ready,
            Reason::KeyLost,
            format!("Secret {}/{name}", self.settings.namespace),
            format!(
                "is gone, and with it the authority that members and tenants trust. They go on with the \
                 certificates that they have, which can't be renewed: put the Secret back from a \
                 backup.{advice}"
            ),
        ))
    }

    /// The members as they are.
    fn live_set(&self) -> Option<&serde_json::Value> {
        let namespace = &self.settings.namespace;
        let live = &self.observed.live;
        live.get(Kind::StatefulSet, namespace, &self.set())
    }

    fn plan(&self, authorities: &Authorities) -> Result<Plan, steward_pki::Error> {
        let authority = &authorities.clients;
        let server = self.leaf("server", &self.server_request(), authority)?;
        let root = self.leaf("root", &client("root"), authority)?;
        let peer = self.leaf("peer", &self.peer_request(), &authorities.peers)?;
        let ca = authority.pair();
        let peer_ca = authorities.peers.pair();
        let data = |entries: [(&str, &String); 2]| {
            entries
                .map(|(key, text)| (key.to_owned(), text.clone()))
                .into()
        };
        let pair = |pair: &Pair| data([("tls.crt", &pair.certificate), ("tls.key", &pair.key)]);
        let mut objects = vec![
            self.secret(
                "ca",
                "members and tenants trust this authority",
                data([("ca.crt", &ca.certificate), ("ca.key", &ca.key)]),
            ),
            self.secret("server", "members show it to clients", pair(&server)),
            self.secret("root", "the operator manages users with it", pair(&root)),
            self.secret(
                "peer-ca",
                "members trust this authority among themselves",
                data([("ca.crt", &peer_ca.certificate), ("ca.key", &peer_ca.key)]),
            ),
            self.secret(
                "peer",
                "members show it to each other",
                self.peer_files(&peer, peer_ca, ca),
            ),
        ];
        objects.extend(members::objects(self, &ca.certificate));
        objects.sort_by_key(|object| object.stage);
        let due = |pair: &Pair| {
            let facts = inspect(&pair.certificate).ok()?;
            Some(renew_at(&facts, self.settings.renew_before))
        };
        let next_check = [due(&server), due(&root), due(&peer)]
            .into_iter()
            .flatten()
            .min();
        let status = self.status();
        Ok(Plan {
            objects,
            prune: Prune {
                kinds: managed_kinds(),
                namespaces: vec![self.settings.namespace.clone()],
                labels: selector(&self.name),
                keep: Vec::new(),
            },
            access: Access {
                endpoints: self
                    .members()
                    .iter()
                    .map(|m| format!("{m}:{CLIENT_PORT}"))
                    .collect(),
                authority: ca.clone(),
                root,
            },
            serving: status.ready_replicas.unwrap_or(0) > self.replicas() / 2,
            status,
            next_check,
        })
    }

    fn status(&self) -> ManagedEtcdStatus {
        let ready = self
            .live_set()
            .and_then(|live| live.pointer("/status/readyReplicas")?.as_i64());
        let ready = ready
            .and_then(|count| i32::try_from(count).ok())
            .unwrap_or(0);
        ManagedEtcdStatus {
            namespace: Some(self.settings.namespace.clone()),
            stateful_set: Some(self.set()),
            replicas: Some(self.replicas()),
            ready_replicas: Some(ready),
            version: None,
            peers: Some(self.peering().as_str().to_owned()),
            database_bytes: None,
        }
    }

    fn leaf(
        &self,
        what: &str,
        request: &Request,
        authority: &Authority,
    ) -> Result<Pair, steward_pki::Error> {
        let wanted = Wanted {
            request,
            authority: &authority.pair().certificate,
            now: self.observed.now,
            renew_before: self.settings.renew_before,
        };
        let found = self.found(what, "tls.crt", "tls.key");
        if let Some(pair) = found.filter(|pair| drift(pair, &wanted).is_empty()) {
            return Ok(pair);
        }
        let lifetime = self.settings.certificate_lifetime;
        let validity = Validity::starting(self.observed.now, lifetime);
        authority.issue(self.keys, KeyKind::EcdsaP256, request, validity)
    }

    /// DNS name of all members together.
    fn service_name(&self) -> String {
        let (set, namespace) = (self.set(), &self.settings.namespace);
        format!("{set}.{namespace}.svc")
    }

    fn server_request(&self) -> Request {
        let mut request = self.peer_request();
        request
            .sans
            .extend([San::parse("localhost"), San::parse("127.0.0.1")]);
        request
    }

    /// Members are each other's clients, and clients of themselves.
    fn peer_request(&self) -> Request {
        let service = self.service_name();
        let mut sans: Vec<San> = self.members().into_iter().map(San::Dns).collect();
        sans.push(San::Dns(format!(
            "{service}.{}",
            self.settings.cluster_domain
        )));
        sans.push(San::Dns(service));
        Request {
            common_name: self.set(),
            organization: None,
            usage: Usage::Both,
            sans,
        }
    }

    fn meta(&self, name: String) -> ObjectMeta {
        ObjectMeta {
            name: Some(name),
            namespace: Some(self.settings.namespace.clone()),
            labels: Some(selector(&self.name)),
            owner_references: Some(vec![OwnerReference {
                api_version: format!("{}/{}", steward_api::GROUP, steward_api::VERSION),
                kind: "DataStore".into(),
                name: self.name.clone(),
                uid: self.observed.store.uid().unwrap_or_default(),
                controller: Some(true),
                block_owner_deletion: Some(true),
            }]),
            ..ObjectMeta::default()
        }
    }

    fn secret(&self, what: &str, because: &'static str, data: BTreeMap<String, String>) -> Object {
        let bytes = |text: String| ByteString(text.into_bytes());
        let body = Secret {
            metadata: self.meta(self.secret_name(what)),
            type_: Some("Opaque".into()),
            data: Some(
                data.into_iter()
                    .map(|(key, text)| (key, bytes(text)))
                    .collect(),
            ),
            ..Secret::default()
        };
        object(Kind::Secret, Stage::Pki, because, &body)
    }
}

fn client(name: &str) -> Request {
    Request {
        common_name: name.into(),
        organization: None,
        usage: Usage::Client,
        sans: vec![],
    }
}
