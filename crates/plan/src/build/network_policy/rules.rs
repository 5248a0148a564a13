//! Pieces of `NetworkPolicies`: peers, ports and rules.

use std::collections::BTreeMap;

use ipnet::IpNet;
use k8s_openapi::{
    api::networking::v1::{
        IPBlock, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer,
        NetworkPolicyPort,
    },
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString},
};
use steward_api::{
    metadata::labels,
    tenant_control_plane::{AdditionalPort, PortProtocol},
};

use crate::settings::Settings;

/// Label that Kubernetes puts on every namespace.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// TCP ports.
pub(super) fn numbered(ports: impl IntoIterator<Item = u16>) -> Vec<NetworkPolicyPort> {
    ports
        .into_iter()
        .map(|number| port("TCP", IntOrString::Int(number.into())))
        .collect()
}

/// A port that the user added to the Service.
pub(super) fn named(added: &AdditionalPort) -> NetworkPolicyPort {
    let protocol = match added.protocol {
        PortProtocol::Tcp => "TCP",
        PortProtocol::Udp => "UDP",
        PortProtocol::Sctp => "SCTP",
    };
    port(protocol, added.target_port.clone())
}

fn port(protocol: &str, number: IntOrString) -> NetworkPolicyPort {
    NetworkPolicyPort {
        protocol: Some(protocol.into()),
        port: Some(number),
        end_port: None,
    }
}

pub(super) fn from(
    peers: Vec<NetworkPolicyPeer>,
    ports: Vec<NetworkPolicyPort>,
) -> NetworkPolicyIngressRule {
    NetworkPolicyIngressRule {
        from: Some(peers),
        ports: Some(ports),
    }
}

pub(super) fn from_anywhere(ports: Vec<NetworkPolicyPort>) -> NetworkPolicyIngressRule {
    NetworkPolicyIngressRule {
        from: None,
        ports: Some(ports),
    }
}

/// To peers; on every port without any.
pub(super) fn to(
    peers: Vec<NetworkPolicyPeer>,
    ports: Vec<NetworkPolicyPort>,
) -> NetworkPolicyEgressRule {
    NetworkPolicyEgressRule {
        to: Some(peers),
        ports: Some(ports).filter(|ports| !ports.is_empty()),
    }
}

/// To a range that somebody named.
pub(super) fn to_addresses(
    range: IpNet,
    blocked: &[IpNet],
    ports: Vec<NetworkPolicyPort>,
) -> NetworkPolicyEgressRule {
    to(vec![addresses(range, blocked)], ports)
}

/// Names are looked up at pods, or at a cache on the node with a link-local address.
pub(super) fn dns() -> NetworkPolicyEgressRule {
    let cache = NetworkPolicyPeer {
        ip_block: Some(IPBlock {
            cidr: "169.254.0.0/16".into(),
            except: None,
        }),
        ..NetworkPolicyPeer::default()
    };
    let ports = ["UDP", "TCP"].map(|protocol| port(protocol, IntOrString::Int(53)));
    to(vec![any_pod(None), cache], ports.into())
}

/// Pods of any namespace.
pub(super) fn any_pod(pods: Option<LabelSelector>) -> NetworkPolicyPeer {
    NetworkPolicyPeer {
        namespace_selector: Some(LabelSelector::default()),
        pod_selector: pods,
        ip_block: None,
    }
}

/// Pods of the policy's own namespace.
pub(super) fn pods_here(pods: BTreeMap<String, String>) -> NetworkPolicyPeer {
    NetworkPolicyPeer {
        pod_selector: Some(labelled(pods)),
        ..NetworkPolicyPeer::default()
    }
}

/// Pods of a namespace with these labels.
pub(super) fn pods_in(namespace: &str, pods: BTreeMap<String, String>) -> NetworkPolicyPeer {
    NetworkPolicyPeer {
        pod_selector: Some(labelled(pods)),
        ..pods_of_namespace(namespace)
    }
}

/// All pods of a namespace.
pub(super) fn pods_of_namespace(namespace: &str) -> NetworkPolicyPeer {
    namespace_with(NAMESPACE_NAME, namespace)
}

/// Who may read metrics: the operator's namespace, and namespaces with the label for it.
pub(super) fn observers(settings: &Settings) -> Vec<NetworkPolicyPeer> {
    vec![
        pods_of_namespace(&settings.namespace),
        namespace_with(labels::METRICS, "true"),
    ]
}

fn namespace_with(label: &str, value: &str) -> NetworkPolicyPeer {
    NetworkPolicyPeer {
        namespace_selector: Some(labelled([(label.to_owned(), value.to_owned())].into())),
        ..NetworkPolicyPeer::default()
    }
}

fn labelled(labels: BTreeMap<String, String>) -> LabelSelector {
    LabelSelector {
        match_labels: Some(labels),
        ..LabelSelector::default()
    }
}

/// A range without what is blocked inside of it. What is itself inside of a blocked range was named
/// on purpose.
pub(super) fn addresses(range: IpNet, blocked: &[IpNet]) -> NetworkPolicyPeer {
    let inside = blocked
        .iter()
        .filter(|other| range.contains(*other) && **other != range)
        .map(ToString::to_string);
    NetworkPolicyPeer {
        ip_block: Some(IPBlock {
            cidr: range.to_string(),
            except: Some(inside.collect()).filter(|list: &Vec<String>| !list.is_empty()),
        }),
        ..NetworkPolicyPeer::default()
    }
}

/// Every address of both families that isn't blocked.
pub(super) fn any_address(blocked: &[IpNet]) -> Vec<NetworkPolicyPeer> {
    ["0.0.0.0/0", "::/0"]
        .iter()
        .filter_map(|range| Some(addresses(range.parse().ok()?, blocked)))
        .collect()
}
