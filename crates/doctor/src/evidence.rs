//! What could be seen of one tenant, and what could not.
//!
//! Plain values. Whoever gathers them fills in what can be reached and says of
//! the rest why not, so that checks can tell "broken" from "not looked at".

use std::fmt;
use std::net::IpAddr;

use jiff::Timestamp;

/// Something looked at: what was seen, or why nothing could be.
pub type Seen<T> = Result<T, Unseen>;

/// Why something could not be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unseen {
    /// It answered that it fails, or did not answer: that is evidence.
    Failed(String),
    /// It could not be looked at for a reason that lies elsewhere.
    NotLooked(String),
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) | Self::NotLooked(why) => f.write_str(why),
        }
    }
}

/// A condition of a Kubernetes object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// `Available`, …
    pub kind: String,
    /// True, False or Unknown.
    pub status: String,
    /// One word.
    pub reason: String,
    /// One sentence.
    pub message: String,
}

/// Another tenant that claims the same hostname.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rival {
    /// `namespace/name`.
    pub tenant: String,
    /// Whether it claimed the name first, and so has it.
    pub holds: bool,
}

/// The certificate that was presented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Who it says it is.
    pub subject: String,
    /// Names in it.
    pub sans: Vec<String>,
    /// When it ends.
    pub not_after: Timestamp,
    /// Whether the tenant's own CA signed it.
    pub of_tenant_ca: bool,
    /// Whether what is behind it answers as an API server does.
    pub speaks_kubernetes: bool,
}

/// A Deployment or a `DaemonSet`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// `deployment/steward-gateway`.
    pub object: String,
    /// Where.
    pub namespace: String,
    /// Pods that should run.
    pub desired: i32,
    /// Pods that do.
    pub ready: i32,
}

/// The front door's objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontDoor {
    /// `Ingress`, `IngressRouteTCP`, `TLSRoute`.
    pub kind: String,
    /// Whether the object is there.
    pub object_exists: bool,
    /// The class it names, and whether that class is there.
    pub class: Option<(String, bool)>,
    /// Whether the class is our own gateway's.
    pub ours: bool,
    /// Our own gateway, where it is the front door.
    pub gateway: Option<Workload>,
    /// Whether the object asks for passthrough in the words its controller reads.
    pub passthrough: bool,
    /// Whether the controller took it, where it says so.
    pub accepted: Option<bool>,
    /// Other objects for the same name that should be gone, as `kind/name -n namespace`.
    pub leftovers: Vec<String>,
}

/// The datastore of a tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Datastore {
    /// Its name.
    pub name: String,
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// Members of a managed one that are not ready, and why.
    pub unready: Vec<String>,
    /// Where a managed one runs.
    pub namespace: String,
    /// What members of a managed one say of themselves, as far as they could be asked.
    pub members: Vec<Member>,
}

/// A member of a managed datastore, asked itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Its pod.
    pub pod: String,
    /// Its own word on its health: a read that the other members agreed to, and no alarm.
    pub health: Option<Result<(), String>>,
    /// Milliseconds that this read took, the way there included.
    pub answered_in: u64,
    /// Milliseconds that a write took to be on disk, on average of late.
    pub synced_in: Option<u64>,
    /// Bytes in the database.
    pub size: u64,
    /// Bytes it may grow to.
    pub quota: u64,
}

/// One end of konnectivity, asked itself how many of the other end it is connected to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tunnel {
    /// Its pod.
    pub pod: String,
    /// How many of the others it has.
    pub connected: u64,
}

/// A place that says where the API server is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// `ConfigMap kube-public/cluster-info`, …
    pub place: String,
    /// What it says, as `host:port`.
    pub endpoint: String,
}

/// The `kubernetes` EndpointSlice inside the tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// Its addresses.
    pub addresses: Vec<String>,
    /// Its port.
    pub port: Option<i32>,
}

/// One addon inside the tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addon {
    /// Whether its workload is there.
    pub exists: bool,
    /// Pods that should run.
    pub desired: i32,
    /// Pods that do.
    pub ready: i32,
    /// Nodes that have no ready pod of it.
    pub missing_on: Vec<String>,
}

/// A node of the tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its kubelet's version.
    pub version: String,
    /// Whether it is ready.
    pub ready: bool,
    /// How many seconds its clock is ahead of the API server's, as far as its lease tells.
    pub clock_ahead: Option<i64>,
    /// Whether it waits for a cloud controller to say what it is.
    pub uninitialized: bool,
}

/// Whether the API server reaches a node's kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The node.
    pub node: String,
    /// What came back.
    pub outcome: Result<(), String>,
}

/// What was seen inside the tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// The API server's version.
    pub version: String,
    /// Its nodes.
    pub nodes: Vec<Node>,
    /// The `kubernetes` EndpointSlice.
    pub slice: Option<Slice>,
    /// `EndpointSlice`s of the same Service that are somebody else's.
    pub other_slices: Vec<String>,
    /// Objects that kubeadm needs and that are missing.
    pub missing_kubeadm: Vec<String>,
    /// The server in kube-proxy's configuration.
    pub kube_proxy_server: Option<String>,
    /// konnectivity agents.
    pub konnectivity: Addon,
    /// Node proxies.
    pub tcp_proxy: Addon,
    /// kube-proxy.
    pub kube_proxy: Addon,
    /// CoreDNS.
    pub coredns: Addon,
    /// Kubelets that the API server was asked to reach.
    pub kubelets: Vec<Reached>,
    /// konnectivity agents that could be asked, with the servers they have.
    pub agents: Vec<Tunnel>,
    /// Places that tell nodes where the API server is.
    pub told: Vec<Told>,
    /// What is wrong with how the node proxies know the API server.
    pub proxy_trust: Option<String>,
    /// Objects of addons that are switched off.
    pub leftovers: Vec<String>,
    /// Webhooks and aggregated APIs with nobody behind them, and why.
    pub orphaned: Vec<String>,
}

/// Everything that could be seen of one tenant.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// `namespace/name`.
    pub tenant: String,
    /// When it was looked at.
    pub now: Timestamp,
    /// Whether the operator is told to leave it alone.
    pub paused: bool,
    /// What the management cluster did not tell in time.
    pub given_up: Vec<String>,
    /// Seconds since somebody asked for its deletion, and the finalizers still on it.
    pub deleting: Option<(i64, Vec<String>)>,
    /// The version that runs, where one does.
    pub installed_version: Option<String>,
    /// The tenant's conditions.
    pub conditions: Vec<Condition>,
    /// Its public hostname, where it has one.
    pub hostname: Option<String>,
    /// The port clients dial.
    pub port: u16,
    /// What the endpoint in its status says.
    pub endpoint: Option<String>,
    /// The domain of names inside it.
    pub cluster_domain: String,
    /// Where the administrator's kubeconfig leads, as `host:port`.
    pub admin_endpoint: Option<String>,
    /// Who else claims the same hostname.
    pub rivals: Vec<Rival>,
    /// The operator.
    pub operator: Seen<Workload>,
    /// Addresses of the front door.
    pub front_door_addresses: Vec<IpAddr>,
    /// What the hostname resolves to from here.
    pub resolved: Seen<Vec<IpAddr>>,
    /// Whether a TCP connection could be made.
    pub tcp: Seen<()>,
    /// The certificate presented for the hostname.
    pub certificate: Seen<Certificate>,
    /// Whether the administrator's credentials are accepted, where somebody answered.
    pub admitted: Option<bool>,
    /// What /readyz answered.
    pub ready: Seen<()>,
    /// The front door's objects, where the tenant has one.
    pub front_door: Option<Seen<FrontDoor>>,
    /// How many addresses the tenant's Service has.
    pub service_endpoints: Seen<usize>,
    /// Pods that are not ready and why.
    pub unready_pods: Seen<Vec<String>>,
    /// Images that can't be pulled, and why.
    pub missing_images: Vec<String>,
    /// Why the Deployment can't make pods, if it can't.
    pub refused_pods: Option<String>,
    /// The datastore.
    pub datastore: Seen<Datastore>,
    /// The tenant's credentials for the datastore.
    pub datastore_credentials: Seen<()>,
    /// Whether the API server leaves the kubernetes endpoints to us.
    pub reconciler_off: Seen<bool>,
    /// What is inside.
    pub inside: Seen<Inside>,
    /// Whether it was asked past the front door, through the management cluster, because
    /// the public way does not lead there.
    pub past_the_door: bool,
    /// konnectivity servers that could be asked, with the agents they have.
    pub konnectivity_servers: Vec<Tunnel>,
    /// Whether tcpProxy is switched on, and its fixed address.
    pub tcp_proxy: Option<String>,
    /// Whether konnectivity is switched on.
    pub konnectivity: bool,
    /// How many seconds this machine's clock is ahead of the API server's.
    pub clock_skew: Seen<i64>,
}

impl Evidence {
    /// The tenant's namespace.
    pub fn namespace(&self) -> &str {
        self.tenant.split('/').next().unwrap_or_default()
    }

    /// The tenant's name.
    pub fn name(&self) -> &str {
        self.tenant.split('/').nth(1).unwrap_or_default()
    }
}
