//! What could be seen of one tenant, and what could not.
//!
//! Plain values. Whoever gathers them fills in what can be reached and says of
//! the rest why not, so that checks can tell "broken" from "not looked at".

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
    /// Whether the object asks for passthrough in the words its controller reads.
    pub passthrough: bool,
    /// Whether the controller took it, where it says so.
    pub accepted: Option<bool>,
    /// Objects of other modes that should be gone.
    pub leftovers: Vec<String>,
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
}

/// What was seen inside the tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// The API server's version.
    pub version: String,
    /// Nodes: name, kubelet version, ready.
    pub nodes: Vec<(String, String, bool)>,
    /// The `kubernetes` EndpointSlice.
    pub slice: Option<Slice>,
    /// Objects that kubeadm needs and that are missing.
    pub missing_kubeadm: Vec<String>,
    /// The server in kube-proxy's configuration.
    pub kube_proxy_server: Option<String>,
    /// konnectivity agents.
    pub konnectivity: Addon,
    /// Node proxies.
    pub tcp_proxy: Addon,
    /// CoreDNS.
    pub coredns: Addon,
}

/// Everything that could be seen of one tenant.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// `namespace/name`.
    pub tenant: String,
    /// When it was looked at.
    pub now: Timestamp,
    /// The tenant's conditions.
    pub conditions: Vec<Condition>,
    /// Its public hostname and port, where it has one.
    pub hostname: Option<String>,
    /// The port clients dial.
    pub port: u16,
    /// What the endpoint in its status says.
    pub endpoint: Option<String>,
    /// Which tenants claim the same hostname.
    pub rivals: Vec<String>,
    /// Addresses of the front door.
    pub front_door_addresses: Vec<IpAddr>,
    /// What the hostname resolves to from here.
    pub resolved: Seen<Vec<IpAddr>>,
    /// Whether a TCP connection could be made.
    pub tcp: Seen<()>,
    /// The certificate presented for the hostname.
    pub certificate: Seen<Certificate>,
    /// What /readyz answered.
    pub ready: Seen<()>,
    /// The front door's objects, where the tenant has one.
    pub front_door: Option<Seen<FrontDoor>>,
    /// How many addresses the tenant's Service has.
    pub service_endpoints: Seen<usize>,
    /// Pods that are not ready and why.
    pub unready_pods: Seen<Vec<String>>,
    /// The datastore's name and conditions.
    pub datastore: Seen<(String, Vec<Condition>)>,
    /// Whether the API server leaves the kubernetes endpoints to us.
    pub reconciler_off: Seen<bool>,
    /// What is inside.
    pub inside: Seen<Inside>,
    /// Whether tcpProxy is switched on, and its fixed address.
    pub tcp_proxy: Option<String>,
    /// Whether konnectivity is switched on.
    pub konnectivity: bool,
    /// How many seconds this machine's clock is ahead of the API server's.
    pub clock_skew: Seen<i64>,
}
