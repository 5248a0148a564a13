//! The way to a tenant: host, port and addresses, resolved from the mode and from what
//! the Service or the front door got.

pub(crate) mod leaving;

use std::net::IpAddr;

use serde_json::Value;
use steward_api::{
    TenantControlPlane,
    conditions::{ConditionType, Reason},
    tenant_control_plane::{ExposureMode, ExposureStatus, PreviousExposure},
};
use steward_pki::San;

use crate::{
    build::front_door::tls_route_kind,
    object::Kind,
    observed::Observed,
    outcome::Wait,
    validate::{Exposure, Validated, wait},
};

/// Where a tenant is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Way {
    /// How.
    pub(crate) mode: ExposureMode,
    /// Name or address of the API server.
    pub(crate) host: String,
    /// Port of the API server.
    pub(crate) port: u16,
    /// Name or address for konnectivity agents.
    pub(crate) konnectivity_host: String,
    /// Port for konnectivity agents.
    pub(crate) konnectivity_port: u16,
    /// Addresses that lead there, as far as they are known.
    pub(crate) addresses: Vec<IpAddr>,
}

/// How long a front door that doesn't say when it has taken up a route is given for it.
const TAKE_UP: jiff::SignedDuration = jiff::SignedDuration::from_secs(10);

/// The way in use, the one that is to be, and the one that was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ways {
    /// What clients are told.
    pub(crate) active: Way,
    /// What will take its place once it is checked; the same when nothing moves.
    pub(crate) wanted: Way,
    /// What clients were told before, while something inside the tenant may still use it.
    pub(crate) leaving: Option<Way>,
    /// What went because the user said so, for as long as he says it.
    pub(crate) released: Option<String>,
}

impl Way {
    /// `host:port`, an IPv6 address in brackets.
    pub(crate) fn authority(&self) -> String {
        authority(&self.host, self.port)
    }

    /// `https://host:port`.
    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.authority())
    }

    /// The host as a name in a certificate.
    pub(crate) fn san(&self) -> San {
        San::parse(&self.host)
    }

    /// Whether a client is routed by name.
    pub(crate) fn by_name(&self) -> bool {
        matches!(self.mode, ExposureMode::Ingress | ExposureMode::Gateway)
    }

    /// The address, if the host is one or there is one.
    pub(crate) fn ip(&self) -> Option<IpAddr> {
        self.host
            .parse()
            .ok()
            .or_else(|| self.addresses.first().copied())
    }
}

impl Ways {
    /// Whether the tenant is on its way from one to the other.
    pub(crate) fn moving(&self) -> bool {
        self.active != self.wanted
    }

    /// Every way that has to work now.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Way> {
        [&self.active, &self.wanted]
            .into_iter()
            .chain(&self.leaving)
    }

    /// Whether any of them is by name.
    pub(crate) fn by_name(&self) -> bool {
        self.all().any(Way::by_name)
    }
}

/// `host:port`, an IPv6 address in brackets.
pub(crate) fn authority(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// The ways, or what is waited for before there is any.
///
/// A move goes in three steps: both ways are made; once the new one is checked clients are told
/// of it; once nothing inside the tenant dials the old one it goes.
pub(crate) fn resolve(tenant: &Validated, observed: &Observed) -> Result<Ways, Wait> {
    let wanted = wanted(tenant, observed)?;
    let old = current(tenant, observed).filter(|old| differs(old, &wanted));
    let (active, left) = match old {
        Some(old) if !arrived(tenant, observed, &wanted) => (old, previous(observed)),
        Some(old) => (wanted.clone(), Some(old)),
        None => (wanted.clone(), previous(observed)),
    };
    let left = left.filter(|left| differs(left, &active) && differs(left, &wanted));
    let leaving = left
        .clone()
        .filter(|left| leaving::still_used(observed, left, &active));
    let released = leaving::given_back(observed, left.as_ref(), leaving.as_ref());
    Ok(Ways {
        active,
        wanted,
        leaving,
        released,
    })
}

/// Whether the new way is up and checked: every pod knows its names, its front door has taken
/// up the route, and a client got an answer there.
fn arrived(tenant: &Validated, observed: &Observed, new: &Way) -> bool {
    // Under one name an answer may still be an old way's.
    answers(observed, new) && taken_up(tenant, observed) && rolled_out(tenant, observed)
}

/// Whether all pods are of the newest template.
pub(crate) fn rolled_out(tenant: &Validated, observed: &Observed) -> bool {
    let names = &tenant.names;
    let live = observed
        .live
        .get(Kind::Deployment, &names.namespace, &names.tenant);
    let Some(live) = live else {
        return false;
    };
    let count = |path: &str| live.pointer(path).and_then(Value::as_i64).unwrap_or(0);
    let wanted = count("/spec/replicas");
    count("/status/observedGeneration") >= count("/metadata/generation")
        && count("/status/updatedReplicas") >= wanted
        && count("/status/replicas") == wanted
        && count("/status/readyReplicas") >= wanted
}

/// Whether the front door has taken up the route, as far as it tells.
fn taken_up(tenant: &Validated, observed: &Observed) -> bool {
    let names = &tenant.names;
    let live = |kind| observed.live.get(kind, &names.namespace, &names.tenant);
    let old_enough = |object: &Value| {
        let born = object.pointer("/metadata/creationTimestamp");
        born.and_then(|time| time.as_str()?.parse().ok())
            .is_some_and(|born| observed.now.duration_since(born) >= TAKE_UP)
    };
    match &tenant.exposure {
        Exposure::Gateway(_) => {
            live(tls_route_kind(&observed.platform)).is_some_and(accepted_by_any)
        }
        Exposure::Ingress(_) => {
            let theirs = tenant.spec.control_plane.ingress.as_ref();
            let objects = [live(Kind::Ingress), live(Kind::IngressRouteTcp)];
            // A route that the user makes is his to check.
            theirs.is_some_and(|spec| !spec.deploy)
                || objects
                    .into_iter()
                    .flatten()
                    .any(|object| !load_balancer(Some(object)).is_empty() || old_enough(object))
        }
        Exposure::LoadBalancer | Exposure::NodePort | Exposure::ClusterIp => true,
    }
}

fn accepted_by_any(route: &Value) -> bool {
    let parents = route.pointer("/status/parents").and_then(Value::as_array);
    let says = |parent: &Value, type_: &str, status: &str| {
        let conditions = parent["conditions"].as_array();
        conditions
            .into_iter()
            .flatten()
            .any(|condition| condition["type"] == type_ && condition["status"] == status)
    };
    parents
        .into_iter()
        .flatten()
        .any(|parent| says(parent, "Accepted", "True") && !says(parent, "ResolvedRefs", "False"))
}

/// Whether the way has been tried and found right.
pub(crate) fn answers(observed: &Observed, way: &Way) -> bool {
    knocked_at(observed, way) && observed.reach.answers()
}

/// Whether the last knock was at this way's door.
pub(crate) fn knocked_at(observed: &Observed, way: &Way) -> bool {
    observed.knocked.as_ref().is_some_and(|knock| {
        (&knock.host, knock.port, &knock.addresses) == (&way.host, way.port, &way.addresses)
    })
}

fn differs(old: &Way, new: &Way) -> bool {
    (old.mode, &old.host, old.port) != (new.mode, &new.host, new.port)
}

/// The way that was last up and checked, as the status remembers it, if it can still
/// work: a name at a shared front door, or a Service that still is what it was.
fn current(tenant: &Validated, observed: &Observed) -> Option<Way> {
    let status = observed.tenant.status.as_ref()?.exposure.as_ref()?;
    let ExposureStatus {
        mode: Some(mode),
        hostname,
        port: Some(port),
        addresses,
        ..
    } = status
    else {
        return None;
    };
    let addresses: Vec<IpAddr> = addresses
        .iter()
        .filter_map(|text| text.parse().ok())
        .collect();
    let host = hostname
        .clone()
        .or_else(|| addresses.first().map(ToString::to_string))?;
    let port = u16::try_from(*port).ok()?;
    let by_name = matches!(mode, ExposureMode::Ingress | ExposureMode::Gateway);
    let konnectivity_port = if by_name {
        port
    } else {
        tenant.network.konnectivity_port
    };
    // Only a change of mode is made in two steps: a new name or address in the same mode
    // replaces the old one, whose route or address is gone with it.
    let moved = *mode != mode_of(&tenant.exposure);
    moved.then(|| Way {
        mode: *mode,
        konnectivity_host: status
            .konnectivity_hostname
            .clone()
            .unwrap_or_else(|| host.clone()),
        konnectivity_port,
        host,
        port,
        addresses,
    })
}

/// The way before that, as the status remembers it.
fn previous(observed: &Observed) -> Option<Way> {
    let status = observed.tenant.status.as_ref()?.exposure.as_ref()?;
    let old = status.previous.as_ref()?;
    Some(Way {
        mode: old.mode,
        host: old.host.clone(),
        port: u16::try_from(old.port).ok()?,
        konnectivity_host: old.konnectivity_host.clone(),
        konnectivity_port: u16::try_from(old.konnectivity_port).ok()?,
        addresses: old
            .addresses
            .iter()
            .filter_map(|text| text.parse().ok())
            .collect(),
    })
}

impl From<&Way> for PreviousExposure {
    fn from(way: &Way) -> Self {
        Self {
            mode: way.mode,
            host: way.host.clone(),
            konnectivity_host: way.konnectivity_host.clone(),
            port: way.port.into(),
            konnectivity_port: way.konnectivity_port.into(),
            addresses: way.addresses.iter().map(ToString::to_string).collect(),
        }
    }
}

/// The mode as the status spells it.
pub(crate) fn mode_of(exposure: &Exposure) -> ExposureMode {
    match exposure {
        Exposure::LoadBalancer => ExposureMode::LoadBalancer,
        Exposure::NodePort => ExposureMode::NodePort,
        Exposure::ClusterIp => ExposureMode::ClusterIP,
        Exposure::Ingress(_) => ExposureMode::Ingress,
        Exposure::Gateway(_) => ExposureMode::Gateway,
    }
}

fn wanted(tenant: &Validated, observed: &Observed) -> Result<Way, Wait> {
    let mode = mode_of(&tenant.exposure);
    let network = &tenant.network;
    let given = network.address.as_ref().map(ToString::to_string);
    let (host, port, konnectivity_port, addresses) = match &tenant.exposure {
        Exposure::Ingress(names) | Exposure::Gateway(names) => {
            let port = u16::try_from(names.port()).unwrap_or(443);
            return Ok(Way {
                mode,
                host: names.api.clone(),
                port,
                konnectivity_host: names.konnectivity.clone(),
                konnectivity_port: port,
                addresses: front_door(tenant, observed, &names.api),
            });
        }
        Exposure::LoadBalancer => {
            let seen = load_balancer(service(tenant, observed));
            let host = given.or_else(|| seen.first().cloned());
            (host, network.port, network.konnectivity_port, seen)
        }
        Exposure::NodePort => {
            let service = service(tenant, observed);
            let node = observed
                .platform
                .node_addresses
                .first()
                .map(ToString::to_string);
            let (Some(port), host) = (node_port(service, "kube-apiserver"), given.or(node)) else {
                return Err(no_address("the Service has no node port yet"));
            };
            let konnectivity = node_port(service, "konnectivity-server").unwrap_or(port);
            (host, port, konnectivity, Vec::new())
        }
        Exposure::ClusterIp => {
            let own = cluster_ip(service(tenant, observed));
            (
                given.or(own),
                network.port,
                network.konnectivity_port,
                Vec::new(),
            )
        }
    };
    let Some(host) = host else {
        return Err(no_address(waiting_for(&tenant.exposure)));
    };
    let mut known: Vec<IpAddr> = addresses
        .iter()
        .filter_map(|text| text.parse().ok())
        .collect();
    if let Ok(address) = host.parse() {
        known.retain(|other| *other != address);
        known.insert(0, address);
    }
    Ok(Way {
        mode,
        konnectivity_host: host.clone(),
        host,
        port,
        konnectivity_port,
        addresses: known,
    })
}

fn waiting_for(exposure: &Exposure) -> &'static str {
    match exposure {
        Exposure::LoadBalancer => {
            "the Service has got no address from a load balancer yet: check that one is installed \
             and has addresses left"
        }
        Exposure::NodePort => "no node of this cluster has an address: check kubectl get nodes",
        Exposure::ClusterIp | Exposure::Ingress(_) | Exposure::Gateway(_) => {
            "the Service has no cluster address yet"
        }
    }
}

fn no_address(message: &str) -> Wait {
    wait(
        ConditionType::EndpointReady,
        Reason::WaitingForAddress,
        message,
    )
}

pub(crate) fn service<'a>(tenant: &Validated, observed: &'a Observed) -> Option<&'a Value> {
    observed
        .live
        .get(Kind::Service, &tenant.names.namespace, &tenant.names.tenant)
}

pub(crate) fn cluster_ip(service: Option<&Value>) -> Option<String> {
    let address = service?.pointer("/spec/clusterIP")?.as_str()?;
    (!address.is_empty() && address != "None").then(|| address.to_owned())
}

fn node_port(service: Option<&Value>, name: &str) -> Option<u16> {
    let ports = service?.pointer("/spec/ports")?.as_array()?;
    let port = ports.iter().find(|port| port["name"] == name)?;
    u16::try_from(port.get("nodePort")?.as_u64()?)
        .ok()
        .filter(|port| *port > 0)
}

/// Addresses in a load balancer's status, addresses before names.
fn load_balancer(object: Option<&Value>) -> Vec<String> {
    let entries = object
        .and_then(|object| object.pointer("/status/loadBalancer/ingress"))
        .and_then(Value::as_array);
    let pick = |field: &str| {
        entries
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.get(field)?.as_str().map(str::to_owned))
            .collect::<Vec<_>>()
    };
    [pick("ip"), pick("hostname")].concat()
}

/// Addresses of the front door: what the user says, what its Ingress' status says, what
/// the operator found in a Gateway or its Service.
fn front_door(tenant: &Validated, observed: &Observed, host: &str) -> Vec<IpAddr> {
    let names = &tenant.names;
    // The Ingress of a tenant that moves to a Gateway speaks for the old way.
    let ingress = observed
        .live
        .get(Kind::Ingress, &names.namespace, &names.tenant)
        .filter(|_| matches!(tenant.exposure, Exposure::Ingress(_)));
    let given = match &tenant.network.address {
        Some(San::Ip(address)) => Some(*address),
        Some(San::Dns(_)) | None => None,
    };
    let mut all: Vec<IpAddr> = given.into_iter().collect();
    all.extend(
        load_balancer(ingress)
            .iter()
            .filter_map(|text| text.parse::<IpAddr>().ok()),
    );
    all.extend(&observed.platform.front_door);
    if all.is_empty() {
        return remembered(&observed.tenant, host);
    }
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|address| seen.insert(*address));
    all
}

/// Where the front door of this name was when somebody could last say: a name server that fails, or a controller that
/// wipes its status when it restarts, must not take from node proxies what they have for just that case.
pub fn remembered(tenant: &TenantControlPlane, host: &str) -> Vec<IpAddr> {
    let status = tenant.status.as_ref();
    let known = status.and_then(|status| status.exposure.as_ref());
    let known = known.filter(|known| known.hostname.as_deref() == Some(host));
    let addresses = known.map_or(&[][..], |known| &known.addresses);
    addresses
        .iter()
        .filter_map(|text| text.parse().ok())
        .collect()
}
