//! The Service in front of the pods.

use std::collections::BTreeSet;

use k8s_openapi::{
    api::core::v1::{Service, ServicePort, ServiceSpec},
    apimachinery::pkg::util::intstr::IntOrString,
};
use steward_api::tenant_control_plane::{AdditionalPort, ExposureMode, PortProtocol};
use steward_pki::San;

use super::meta::{extend, meta, object};
use crate::{
    names::{ENTRY_PORT, KONNECTIVITY_PORT},
    object::{Kind, Object, Stage},
    validate::Validated,
    way::{Ways, mode_of},
};

/// Ports that a cluster gives to nodes unless configured otherwise.
const NODE_PORTS: std::ops::RangeInclusive<u16> = 30000..=32767;

/// The Service. While the tenant moves between an address of its own and a shared one, it has
/// its own: until nobody uses it, and before anybody can.
pub(crate) fn service(tenant: &Validated, ways: Option<&Ways>) -> Object {
    let spec = &tenant.spec.control_plane.service;
    let mut metadata = meta(tenant, tenant.names.tenant.clone(), "service");
    extend(&mut metadata, spec.additional_metadata.as_ref());
    let mode = ways.map_or_else(|| mode_of(&tenant.exposure), widest);
    let profile = &tenant.spec.network_profile;
    let balanced = mode == ExposureMode::LoadBalancer;
    let access = tenant.spec.control_plane.access.as_ref();
    let ranges = match access {
        Some(access) if profile.load_balancer_source_ranges.is_empty() => {
            &access.allowed_source_ranges
        }
        _ => &profile.load_balancer_source_ranges,
    };
    let address = match &tenant.network.address {
        Some(San::Ip(address)) => Some(address.to_string()),
        Some(San::Dns(_)) | None => None,
    };
    let body = Service {
        metadata,
        spec: Some(ServiceSpec {
            type_: Some(type_name(mode).into()),
            selector: Some(tenant.names.selector()),
            ports: Some(ports(tenant, mode)),
            load_balancer_source_ranges: Some(ranges.clone())
                .filter(|ranges| balanced && !ranges.is_empty()),
            load_balancer_class: profile.load_balancer_class.clone().filter(|_| balanced),
            load_balancer_ip: address.clone().filter(|_| balanced),
            allocate_load_balancer_node_ports: spec
                .allocate_load_balancer_node_ports
                .filter(|_| balanced),
            external_ips: address
                .filter(|_| profile.allow_address_as_external_ip)
                .map(|address| vec![address]),
            ..ServiceSpec::default()
        }),
        status: None,
    };
    object(
        Kind::Service,
        Stage::Expose,
        "clients reach the control plane through it",
        &body,
    )
}

/// The mode whose Service serves all ways that have to work.
fn widest(ways: &Ways) -> ExposureMode {
    let needed = |mode| ways.all().any(|way| way.mode == mode);
    [ExposureMode::LoadBalancer, ExposureMode::NodePort]
        .into_iter()
        .find(|mode| needed(*mode))
        .unwrap_or(ways.wanted.mode)
}

fn type_name(mode: ExposureMode) -> &'static str {
    match mode {
        ExposureMode::LoadBalancer => "LoadBalancer",
        ExposureMode::NodePort => "NodePort",
        ExposureMode::ClusterIP | ExposureMode::Ingress | ExposureMode::Gateway => "ClusterIP",
    }
}

fn ports(tenant: &Validated, mode: ExposureMode) -> Vec<ServicePort> {
    // A port outside of the nodes' range is left to the cluster to choose.
    let node_port = |port: u16| {
        (mode == ExposureMode::NodePort && NODE_PORTS.contains(&port)).then(|| i32::from(port))
    };
    let network = &tenant.network;
    let mut ports = vec![ServicePort {
        name: Some("kube-apiserver".into()),
        port: network.port.into(),
        target_port: Some(IntOrString::String(ENTRY_PORT.into())),
        node_port: node_port(network.port),
        protocol: Some("TCP".into()),
        ..ServicePort::default()
    }];
    if tenant.spec.addons.konnectivity.is_some() {
        ports.push(ServicePort {
            name: Some("konnectivity-server".into()),
            port: network.konnectivity_port.into(),
            target_port: Some(IntOrString::Int(KONNECTIVITY_PORT.into())),
            node_port: node_port(network.konnectivity_port),
            protocol: Some("TCP".into()),
            ..ServicePort::default()
        });
    }
    let taken: BTreeSet<String> = ports.iter().filter_map(|port| port.name.clone()).collect();
    let theirs = tenant.spec.control_plane.service.additional_ports.iter();
    ports.extend(
        theirs
            .filter(|port| !taken.contains(&port.name))
            .map(additional),
    );
    ports
}

fn additional(port: &AdditionalPort) -> ServicePort {
    let protocol = match port.protocol {
        PortProtocol::Tcp => "TCP",
        PortProtocol::Udp => "UDP",
        PortProtocol::Sctp => "SCTP",
    };
    ServicePort {
        name: Some(port.name.clone()),
        port: port.port,
        target_port: Some(port.target_port.clone()),
        app_protocol: port.app_protocol.clone(),
        protocol: Some(protocol.into()),
        ..ServicePort::default()
    }
}
