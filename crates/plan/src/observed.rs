//! Everything that was read before a decision: one snapshot, plain data, the time
//! included. The operator fills it; nothing here reads anything.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use jiff::Timestamp;
use serde_json::Value;
use steward_api::{TenantControlPlane, conditions::Reason};

use crate::{
    object::{Kind, ObjectKey},
    outcome::Knock,
};

/// One tenant and all that bears on it, at one moment.
#[derive(Debug, Clone)]
pub struct Observed {
    /// When this was read.
    pub now: Timestamp,
    /// The tenant itself, as stored.
    pub tenant: TenantControlPlane,
    /// Its objects in the management cluster, as they are. Everything with the
    /// tenant's label, of every kind in [`crate::managed_kinds`].
    pub live: Live,
    /// The `DataStores` the tenant names (or the default one), by name.
    pub datastores: BTreeMap<String, DatastoreSeen>,
    /// Hostnames that this tenant wants and other tenants hold.
    pub claims: Vec<HostnameClaim>,
    /// What the management cluster offers.
    pub platform: Platform,
    /// What was seen inside the tenant.
    pub inside: Inside,
    /// What came of knocking at the endpoint as a client would.
    pub reach: Reach,
    /// The [`Knock`] that `reach` is the answer to. An answer from another place says
    /// nothing about this one.
    pub knocked: Option<Knock>,
    /// What stops pods of the Deployment, if anything is known: from pod statuses, events
    /// or the `ReplicaSet`'s conditions (quota).
    pub trouble: Option<PodTrouble>,
}

/// What came of dialling the wanted endpoint (host, port, SNI) and looking at the
/// certificate it shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Reach {
    /// Not tried, or no opinion.
    #[default]
    NotTried,
    /// It shows a certificate that the tenant's own authority signed.
    Answers,
    /// It answers, and something about the way there is worth knowing: its name is not in
    /// DNS, or it refuses us in particular.
    AnswersBut {
        /// `HostnameNotResolved`, `HostnameElsewhere`, or `Ready` where nothing is wrong.
        reason: Reason,
        /// What to know, as a sentence.
        message: String,
    },
    /// It doesn't.
    Fails {
        /// `EndpointUnreachable`, `HostnameNotResolved`, `HostnameElsewhere` or
        /// `TlsTerminated`.
        reason: Reason,
        /// What happened, as a sentence.
        message: String,
    },
}

/// What stops the pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodTrouble {
    /// `ImageUnavailable`, `ContainerCrashing`, `QuotaExceeded`, `Unschedulable`, …
    pub reason: Reason,
    /// Which pod and container, and what was said.
    pub message: String,
}

/// Objects that exist, by name. Shared: what is copied is a snapshot, not what is in it.
#[derive(Debug, Clone, Default)]
pub struct Live(pub BTreeMap<ObjectKey, Arc<Value>>);

/// A `DataStore` as the tenant finds it.
#[derive(Debug, Clone)]
pub enum DatastoreSeen {
    /// No `DataStore` of that name.
    Missing,
    /// It is there and can't be used now; the reason is for people.
    NotReady {
        /// Why, as a sentence.
        reason: String,
    },
    /// It can be used.
    Ready(Datastore),
}

/// What a tenant needs to know about its `DataStore`; references are resolved.
#[derive(Clone)]
pub struct Datastore {
    /// Name of the `DataStore`.
    pub name: String,
    /// `etcd` (the others come later).
    pub driver: String,
    /// `host:port`, without scheme.
    pub endpoints: Vec<String>,
    /// Certificate of the authority that signed the servers and signs the clients.
    pub ca_certificate: String,
    /// Its key, with which a tenant's own client certificate is made.
    pub ca_key: String,
    /// Its version, when that doesn't keep tenants apart and nobody has accepted that.
    pub vulnerable: Option<String>,
    /// Another tenant that was there before this one.
    pub other_tenant: Option<String>,
}

/// A hostname that some other tenant holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostnameClaim {
    /// The name, lower case, without port.
    pub hostname: String,
    /// `namespace/name` of the holder.
    pub tenant: String,
}

/// What the management cluster offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Platform {
    /// Newest served version of Gateway API's TLSRoute, if any.
    pub tls_route: Option<TlsRouteVersion>,
    /// Whether Traefik's IngressRouteTCP is served.
    pub ingress_route_tcp: bool,
    /// Names of the `IngressClasses`, and whether it is the default one; `None` if they
    /// could not be read.
    pub ingress_classes: Option<BTreeMap<String, bool>>,
    /// Addresses at which `NodePorts` answer: ready nodes, external before internal.
    pub node_addresses: Vec<IpAddr>,
    /// Addresses of the front door that the tenant's Ingress or Gateway names, when
    /// they are not in the status of the tenant's own object (a Gateway's status, a
    /// Traefik Service): pinned into the node proxy so that it needs no DNS.
    pub front_door: Vec<IpAddr>,
    /// Size of the cluster: whether spreading over nodes can be asked for.
    pub nodes: usize,
}

/// Served versions of TLSRoute, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsRouteVersion {
    /// Standard channel since Gateway API 1.5.
    V1,
    /// Experimental channel.
    V1Alpha3,
    /// Experimental channel, older.
    V1Alpha2,
}

/// What was seen inside the tenant's own cluster.
#[derive(Debug, Clone, Default)]
pub enum Inside {
    /// Not tried: no pod is ready, or asleep.
    #[default]
    NotTried,
    /// Tried, without an answer that can be used; the reason is for people.
    Unreachable {
        /// What the connection said.
        reason: String,
        /// `TenantUnreachable`, or `TooMuchInside`.
        cause: Reason,
    },
    /// It answers.
    Reachable {
        /// `gitVersion` its API server reported.
        version: String,
        /// Its nodes: names and kubelet versions.
        nodes: Vec<NodeSeen>,
        /// How far our workloads there are, by key (Deployment and `DaemonSet`).
        workloads: BTreeMap<ObjectKey, Rollout>,
        /// Addresses of the nodes on which a node proxy that opens TLS is ready and
        /// stays (`status.hostIP` of pods with the label
        /// `steward.butlerlabs.dev/tcp-proxy=terminate`), sorted.
        proxies: Vec<IpAddr>,
        /// By when the last node proxy that was told to leave has to be gone, if there is one;
        /// looked at only while the tenant leaves a way.
        leaving: Option<Timestamp>,
        /// Where the `kubernetes` Service leads: its EndpointSlice.
        endpoints: Option<Endpoints>,
    },
}

/// Where pods find the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    /// Addresses of one family.
    pub addresses: Vec<IpAddr>,
    /// The port at all of them.
    pub port: u16,
}

/// A node of the tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSeen {
    /// Its name.
    pub name: String,
    /// `status.nodeInfo.kubeletVersion`.
    pub kubelet: String,
    /// Whether its Ready condition is true.
    pub ready: bool,
    /// Its first `InternalIP`, used as endpoint by the Terminate proxy.
    pub address: Option<IpAddr>,
}

/// How far a workload inside the tenant is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rollout {
    /// Pods wanted.
    pub desired: i32,
    /// Pods ready.
    pub ready: i32,
    /// Pods of the newest template.
    pub updated: i32,
    /// Whether the controller has seen the newest spec.
    pub current: bool,
    /// Where its newest pods dial the API server (annotation
    /// `steward.butlerlabs.dev/endpoint`).
    pub endpoint: Option<String>,
}

impl Reach {
    /// Whether it answers.
    pub fn answers(&self) -> bool {
        matches!(self, Self::Answers | Self::AnswersBut { .. })
    }
}

impl Live {
    /// Puts an object in its place.
    pub fn insert(&mut self, key: ObjectKey, object: Value) {
        self.0.insert(key, Arc::new(object));
    }

    /// The object, to be changed in this snapshot only.
    pub fn get_mut(&mut self, key: &ObjectKey) -> Option<&mut Value> {
        self.0.get_mut(key).map(Arc::make_mut)
    }

    /// The object, if it is there.
    pub fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Value> {
        self.0
            .get(&ObjectKey::new(kind, namespace, name))
            .map(Arc::as_ref)
    }
}

impl Rollout {
    /// Whether every wanted pod is ready and of the newest template.
    pub fn done(&self) -> bool {
        self.current && self.ready >= self.desired && self.updated >= self.desired
    }
}

/// Never prints the key.
impl std::fmt::Debug for Datastore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Datastore")
            .field("name", &self.name)
            .field("driver", &self.driver)
            .field("endpoints", &self.endpoints)
            .finish_non_exhaustive()
    }
}
