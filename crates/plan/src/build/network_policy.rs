//! `NetworkPolicies`: who may talk to whom, said to the network of the management cluster.
//!
//! A control plane answers clients from anywhere, and reaches DNS, its datastores and what is allowed
//! by name. Everything else is closed by being left out: the management API server, nodes, other
//! tenants, link-local addresses. Refuses: relying on enforcement. The egress selector closes the same
//! ways where the network ignores policies.

mod rules;

use std::{collections::BTreeMap, net::IpAddr};

use ipnet::IpNet;
use k8s_openapi::{
    api::networking::v1::{
        NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicySpec,
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, ObjectMeta},
};
use steward_api::metadata::labels;

use super::meta::{meta, object};
use crate::{
    datastore,
    names::{API_SERVER_PORT, GATE_ADMIN_PORT, GATE_PORT, KONNECTIVITY_PORT},
    object::{Kind, Object, Stage},
    observed::Datastore,
    settings::{Destination, Settings},
    validate::{Storage, Validated},
};

use rules::{
    addresses, any_address, any_pod, dns, from, from_anywhere, named, numbered, observers,
    pods_here, pods_in, pods_of_namespace, to, to_addresses,
};

/// Ports of the controller manager and the scheduler, with metrics.
const CONTROLLER_PORTS: [u16; 2] = [10257, 10259];

/// The policy of a tenant's pods.
pub(crate) fn control_plane(
    settings: &Settings,
    tenant: &Validated,
    storage: &Storage,
) -> Option<Object> {
    if !settings.network_policies {
        return None;
    }
    let metadata = meta(tenant, tenant.names.tenant.clone(), "network-policy");
    let policy = policy(
        metadata,
        tenant.names.selector(),
        ingress(settings, tenant),
        egress(settings, tenant, storage),
    );
    let because = "the control plane reaches its datastore and what it was allowed, nothing else";
    Some(object(Kind::NetworkPolicy, Stage::Config, because, &policy))
}

/// The policy of a managed etcd: `metadata` and the labels of its pods as its other objects have them.
/// Tenants and the operator are its clients, members are each other's peers.
pub(crate) fn managed_etcd(
    settings: &Settings,
    name: &str,
    metadata: ObjectMeta,
    ports: EtcdPorts,
) -> Option<Object> {
    if !settings.network_policies {
        return None;
    }
    let members = datastore::selector(name);
    // A tenant may keep some of its resources here and its main data elsewhere, so any tenant may be a client.
    let tenants = any_pod(Some(LabelSelector {
        match_expressions: Some(vec![LabelSelectorRequirement {
            key: labels::NAME.to_owned(),
            operator: "Exists".to_owned(),
            values: None,
        }]),
        ..LabelSelector::default()
    }));
    let own = || pods_here(members.clone());
    let mut ingress = vec![
        from(
            vec![tenants, pods_of_namespace(&settings.namespace)],
            numbered([ports.clients]),
        ),
        from(vec![own()], numbered([ports.peers])),
    ];
    if let Some(metrics) = ports.metrics {
        ingress.push(from(observers(settings), numbered([metrics])));
    }
    let egress = vec![
        dns(),
        to(vec![own()], numbered([ports.clients, ports.peers])),
    ];
    let policy = policy(metadata, members.clone(), ingress, egress);
    let because = "only tenants, the operator and other members talk to a member";
    Some(object(Kind::NetworkPolicy, Stage::Config, because, &policy))
}

/// Ports of an etcd member.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EtcdPorts {
    pub(crate) clients: u16,
    pub(crate) peers: u16,
    /// Where it shows metrics, if on a port of its own.
    pub(crate) metrics: Option<u16>,
}

fn policy(
    metadata: ObjectMeta,
    pods: BTreeMap<String, String>,
    ingress: Vec<NetworkPolicyIngressRule>,
    egress: Vec<NetworkPolicyEgressRule>,
) -> NetworkPolicy {
    NetworkPolicy {
        metadata,
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(LabelSelector {
                match_labels: Some(pods),
                ..LabelSelector::default()
            }),
            policy_types: Some(vec!["Ingress".into(), "Egress".into()]),
            ingress: Some(ingress),
            egress: Some(egress),
        }),
    }
}

/// Clients come from anywhere: through front doors, nodes and load balancers. Each port asks for a
/// certificate or token itself. With or without gate, both ports: while one kind of pods replaces the
/// other, both serve.
fn ingress(settings: &Settings, tenant: &Validated) -> Vec<NetworkPolicyIngressRule> {
    let mut open = vec![API_SERVER_PORT, GATE_PORT];
    if tenant.spec.addons.konnectivity.is_some() {
        open.push(KONNECTIVITY_PORT);
    }
    let mut open = numbered(open);
    open.extend(
        tenant
            .spec
            .control_plane
            .service
            .additional_ports
            .iter()
            .map(named),
    );
    let watched = numbered(CONTROLLER_PORTS.into_iter().chain([GATE_ADMIN_PORT]));
    vec![from_anywhere(open), from(observers(settings), watched)]
}

fn egress(
    settings: &Settings,
    tenant: &Validated,
    storage: &Storage,
) -> Vec<NetworkPolicyEgressRule> {
    let blocked = &settings.blocked_egress;
    let mut all = vec![dns()];
    let stores = storage.overrides.iter().map(|(_, store)| store);
    for rule in std::iter::once(&storage.store)
        .chain(stores)
        .flat_map(|store| to_store(settings, store))
    {
        // Several members of one store differ in their names only.
        if !all.contains(&rule) {
            all.push(rule);
        }
    }
    if tenant.egress.open() {
        all.push(to(any_address(blocked), Vec::new()));
        all.push(to(vec![any_pod(None)], Vec::new()));
    }
    let allowed = settings.allowed_egress.iter().chain(&tenant.egress.allow);
    all.extend(allowed.map(|Destination { range, ports }| {
        to_addresses(*range, blocked, numbered(ports.iter().copied()))
    }));
    all
}

/// How a store's endpoints are reached.
fn to_store(settings: &Settings, store: &Datastore) -> Vec<NetworkPolicyEgressRule> {
    store
        .endpoints
        .iter()
        .filter_map(|endpoint| {
            let (host, port) = endpoint.rsplit_once(':')?;
            let ports = numbered([port.parse().ok()?]);
            let host = host.trim_start_matches('[').trim_end_matches(']');
            Some(if managed(settings, store, host) {
                let members = datastore::selector(&store.name);
                to(vec![pods_in(&settings.namespace, members)], ports)
            } else if let Ok(address) = host.parse::<IpAddr>() {
                to(vec![addresses(IpNet::from(address), &[])], ports)
            } else {
                // Where a name leads is not known here, nor that it stays there.
                let mut anywhere = any_address(&settings.blocked_egress);
                anywhere.push(any_pod(None));
                to(anywhere, ports)
            })
        })
        .collect()
}

/// Whether an endpoint is a member of an etcd that Steward runs.
fn managed(settings: &Settings, store: &Datastore, host: &str) -> bool {
    let Settings {
        namespace,
        cluster_domain,
        ..
    } = settings;
    let service = format!("{}-etcd.{namespace}.svc.{cluster_domain}", store.name);
    host.strip_suffix(&service)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}
