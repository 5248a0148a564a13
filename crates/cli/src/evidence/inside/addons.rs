//! The addons' workloads, and on which nodes they are missing.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, ListParams};
use steward_doctor::{Addon, Node, Seen};

use super::super::unseen;

const NAMESPACE: &str = "kube-system";

/// All of them.
pub(super) struct Addons {
    pub(super) konnectivity: Addon,
    pub(super) tcp_proxy: Addon,
    pub(super) kube_proxy: Addon,
    pub(super) coredns: Addon,
}

/// Looks at each; the node proxy has to be on every node that is up.
pub(super) async fn look(client: &Client, nodes: &[Node]) -> Seen<Addons> {
    let (konnectivity, mut tcp_proxy, kube_proxy, coredns) = tokio::try_join!(
        either(client, "konnectivity-agent"),
        either(client, "steward-tcp-proxy"),
        either(client, "kube-proxy"),
        either(client, "coredns"),
    )?;
    if tcp_proxy.of_every_node {
        let there = ready_on(client, "app=steward-tcp-proxy").await?;
        let missing = nodes.iter().filter(|n| n.ready && !there.contains(&n.name));
        tcp_proxy.addon.missing_on = missing.map(|n| n.name.clone()).collect();
    }
    Ok(Addons {
        konnectivity: konnectivity.addon,
        tcp_proxy: tcp_proxy.addon,
        kube_proxy: kube_proxy.addon,
        coredns: coredns.addon,
    })
}

#[derive(Default)]
struct Found {
    addon: Addon,
    of_every_node: bool,
}

/// A `DaemonSet` of that name, or else a Deployment.
async fn either(client: &Client, name: &str) -> Seen<Found> {
    let sets: Api<DaemonSet> = Api::namespaced(client.clone(), NAMESPACE);
    if let Some(found) = sets.get_opt(name).await.map_err(|e| unseen(&e))? {
        let status = found.status.unwrap_or_default();
        let addon = Addon {
            exists: true,
            desired: status.desired_number_scheduled,
            ready: status.number_ready,
            missing_on: Vec::new(),
        };
        return Ok(Found {
            addon,
            of_every_node: true,
        });
    }
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let Some(found) = deployments.get_opt(name).await.map_err(|e| unseen(&e))? else {
        return Ok(Found::default());
    };
    let addon = Addon {
        exists: true,
        desired: found.spec.and_then(|s| s.replicas).unwrap_or(1),
        ready: found.status.unwrap_or_default().ready_replicas.unwrap_or(0),
        missing_on: Vec::new(),
    };
    Ok(Found {
        addon,
        of_every_node: false,
    })
}

async fn ready_on(client: &Client, selector: &str) -> Seen<BTreeSet<String>> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let found = pods
        .list(&ListParams::default().labels(selector))
        .await
        .map_err(|e| unseen(&e))?;
    let ready = |pod: &&Pod| {
        let conditions = pod.status.as_ref().and_then(|s| s.conditions.as_ref());
        conditions
            .into_iter()
            .flatten()
            .any(|c| c.type_ == "Ready" && c.status == "True")
    };
    Ok(found
        .iter()
        .filter(ready)
        .filter_map(|p| p.spec.as_ref()?.node_name.clone())
        .collect())
}
