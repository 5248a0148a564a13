//! How the tenant is reached, from outside and by its own pods.

use std::net::{IpAddr, SocketAddr};

use steward_api::{
    conditions::{ConditionType, Reason},
    hostnames::PublicNames,
    metadata::annotations,
    tenant_control_plane::{HostAlias, IngressControllerType, ServiceType, TcpProxy, TcpProxyMode},
};

use super::{Network, hostname, public_names};
use crate::{
    observed::{Inside, Observed},
    problem::Problem,
};

/// How clients reach the tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exposure {
    /// By an address of its own.
    LoadBalancer,
    /// By the nodes' addresses.
    NodePort,
    /// From inside the management cluster.
    ClusterIp,
    /// By name, through an Ingress controller.
    Ingress(PublicNames),
    /// By name, through a Gateway.
    Gateway(PublicNames),
}

/// The proxy on the tenant's nodes, parsed and defaulted.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeProxy {
    /// `EndToEnd` or Terminate.
    pub mode: TcpProxyMode,
    /// The fixed address.
    pub address: IpAddr,
    /// Names with addresses for nodes without DNS.
    pub aliases: Vec<(IpAddr, Vec<String>)>,
    /// Where to dial instead of what the name resolves to.
    pub internal: Option<(IpAddr, Option<u16>)>,
    /// Image and resources, as given.
    pub spec: TcpProxy,
}

pub(super) fn parse(observed: &Observed) -> Result<Exposure, Vec<Problem>> {
    let tenant = &observed.tenant;
    let control_plane = &tenant.spec.control_plane;
    match (&control_plane.ingress, &control_plane.gateway) {
        (Some(_), Some(_)) => Err(vec![Problem::invalid(
            "spec.controlPlane",
            "ingress and gateway exclude each other: keep one of them",
        )]),
        (Some(ingress), None) => {
            let names = names(observed, "spec.controlPlane.ingress.hostname")?;
            let traefik = ingress.controller_type == IngressControllerType::Traefik;
            if traefik && ingress.deploy && !observed.platform.ingress_route_tcp {
                return Err(vec![missing(
                    "spec.controlPlane.ingress.controllerType",
                    "traefik needs the kind IngressRouteTCP (traefik.io/v1alpha1), which this \
                     cluster doesn't serve: install Traefik's custom resources",
                )]);
            }
            Ok(Exposure::Ingress(names))
        }
        (None, Some(gateway)) => {
            let names = names(observed, "spec.controlPlane.gateway.hostname")?;
            if gateway.parent_refs.is_empty() {
                return Err(vec![Problem::invalid(
                    "spec.controlPlane.gateway.parentRefs",
                    "names no Gateway: give the one that routes to this tenant",
                )]);
            }
            if observed.platform.tls_route.is_none() {
                return Err(vec![missing(
                    "spec.controlPlane.gateway",
                    "this cluster doesn't serve the kind TLSRoute (gateway.networking.k8s.io): \
                     install the Gateway API, version 1.5 or newer",
                )]);
            }
            Ok(Exposure::Gateway(names))
        }
        (None, None) => Ok(match control_plane.service.service_type {
            ServiceType::LoadBalancer => Exposure::LoadBalancer,
            ServiceType::NodePort => Exposure::NodePort,
            ServiceType::ClusterIP => Exposure::ClusterIp,
        }),
    }
}

fn names(observed: &Observed, field: &str) -> Result<PublicNames, Vec<Problem>> {
    let Some(names) = public_names(&observed.tenant) else {
        return Err(vec![Problem::new(
            ConditionType::Accepted,
            Reason::HostnameMissing,
            field,
            "is not set and there is no domain to make a name from: set it, or domain",
        )]);
    };
    let mut problems: Vec<Problem> = [&names.api, &names.konnectivity]
        .into_iter()
        .filter_map(|name| hostname::fault(name).map(|fault| Problem::invalid(field, fault)))
        .collect();
    problems.dedup();
    if u16::try_from(names.port()).map_or(0, |port| port) == 0 {
        let message = format!("{} is not a port: use 1 to 65535", names.port());
        problems.push(Problem::invalid(field, message));
    }
    problems.extend(hostname::conflicts(
        observed,
        &[&names.api, &names.konnectivity],
        field,
    ));
    problems.dedup();
    if problems.is_empty() {
        Ok(names)
    } else {
        Err(problems)
    }
}

fn missing(field: &str, message: &str) -> Problem {
    Problem::new(
        ConditionType::EndpointReady,
        Reason::ControllerMissing,
        field,
        message,
    )
}

/// The proxy that the user asks for. The domain annotation of the ingress addon asks for
/// it too: that addon always brought one.
pub(super) fn node_proxy(
    observed: &Observed,
    network: Option<&Network>,
) -> Result<Option<NodeProxy>, Vec<Problem>> {
    let tenant = &observed.tenant;
    let addon = |key: &str| {
        tenant
            .metadata
            .annotations
            .as_ref()
            .is_some_and(|found| found.contains_key(key))
    };
    let control_plane = &tenant.spec.control_plane;
    let by_name = control_plane.ingress.is_some() || control_plane.gateway.is_some();
    let implied = by_name && addon(annotations::KAMAJI_INGRESS_DOMAIN);
    let spec = match (&tenant.spec.addons.tcp_proxy, implied) {
        (Some(spec), _) => spec.clone(),
        (None, true) => TcpProxy::default(),
        (None, false) => return Ok(None),
    };
    let address = fixed_address(&spec.address, network)
        .and_then(|address| nobodys(address, observed))
        .map_err(|problem| vec![problem])?;
    let internal = spec.internal_endpoint.as_deref().map(internal).transpose();
    let internal = internal.map_err(|problem| vec![problem])?;
    let aliases: Result<Vec<_>, Problem> = spec.host_aliases.iter().map(alias).collect();
    let aliases = aliases.map_err(|problem| vec![problem])?;
    Ok(Some(NodeProxy {
        mode: spec.mode,
        address,
        aliases,
        internal,
        spec,
    }))
}

fn fixed_address(text: &str, network: Option<&Network>) -> Result<IpAddr, Problem> {
    let field = "spec.addons.tcpProxy.address";
    let address: IpAddr = text
        .parse()
        .map_err(|_| Problem::invalid(field, format!("{text:?} is not an IP address")))?;
    let unusable = match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    if unusable || address.is_loopback() || address.is_unspecified() || address.is_multicast() {
        let message =
            format!("{address} can't be an endpoint of a Service: use one such as 240.0.0.1");
        return Err(Problem::invalid(field, message));
    }
    let ranges = network.map(|network| network.service_cidrs.iter().chain(&network.pod_cidrs));
    if let Some(range) = ranges
        .into_iter()
        .flatten()
        .find(|range| range.contains(&address))
    {
        return Err(Problem::new(
            ConditionType::Accepted,
            Reason::AddressConflict,
            field,
            format!("{address} is inside {range}, which the tenant uses: choose another"),
        ));
    }
    Ok(address)
}

/// An address that every node puts on itself leads nowhere else from there: it must not be
/// a node's own, nor the front door's.
fn nobodys(address: IpAddr, observed: &Observed) -> Result<IpAddr, Problem> {
    let node = match &observed.inside {
        Inside::Reachable { nodes, .. } => nodes.iter().find(|node| node.address == Some(address)),
        Inside::NotTried | Inside::Unreachable { .. } => None,
    };
    let whose = match node {
        Some(node) => format!("the node {}", node.name),
        None if observed.platform.front_door.contains(&address) => "the front door".into(),
        None => return Ok(address),
    };
    Err(Problem::new(
        ConditionType::Accepted,
        Reason::AddressConflict,
        "spec.addons.tcpProxy.address",
        format!("{address} is the address of {whose}: choose another, such as 240.0.0.1"),
    ))
}

fn internal(text: &str) -> Result<(IpAddr, Option<u16>), Problem> {
    let plain = text.parse::<IpAddr>().map(|address| (address, None));
    let with_port = || {
        text.parse::<SocketAddr>()
            .map(|all| (all.ip(), Some(all.port())))
    };
    plain.or_else(|_| with_port()).map_err(|_| {
        Problem::invalid(
            "spec.addons.tcpProxy.internalEndpoint",
            format!("{text:?} is neither an IP address nor address:port"),
        )
    })
}

fn alias(alias: &HostAlias) -> Result<(IpAddr, Vec<String>), Problem> {
    let field = "spec.addons.tcpProxy.hostAliases";
    let address = alias
        .ip
        .parse()
        .map_err(|_| Problem::invalid(field, format!("{:?} is not an IP address", alias.ip)))?;
    match alias
        .hostnames
        .iter()
        .find_map(|name| hostname::fault(name))
    {
        Some(fault) => Err(Problem::invalid(field, fault)),
        None => Ok((address, alias.hostnames.clone())),
    }
}
