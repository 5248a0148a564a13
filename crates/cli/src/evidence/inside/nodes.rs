//! The tenant's nodes: readiness, clocks, and whether the API server reaches them.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node as Kubelet;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use steward_doctor::{Node, Reached, Seen};

use super::super::unseen;
use crate::problem::chain;

/// How many kubelets are asked; with more nodes, the first stand for the rest.
const ASKED: usize = 20;

/// Within the deadline of looking inside.
const PATIENCE: Duration = Duration::from_millis(2500);

/// Lists the nodes. Their leases tell their clocks: a kubelet writes its own time there
/// every ten seconds, and the API server notes beside it when that was by its own.
pub(super) async fn look(client: &Client) -> Seen<Vec<Node>> {
    let nodes: Api<Kubelet> = Api::all(client.clone());
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
    let everything = ListParams::default();
    let (nodes, leases) = tokio::join!(nodes.list(&everything), leases.list(&everything));
    let nodes = nodes.map_err(|e| unseen(&e))?;
    let leases = leases.map(|l| l.items).unwrap_or_default();
    let ahead: BTreeMap<String, i64> = leases
        .iter()
        .filter_map(|l| Some((l.name_any(), clock_ahead(l)?)))
        .collect();
    Ok(nodes.iter().map(|node| read(node, &ahead)).collect())
}

fn clock_ahead(lease: &Lease) -> Option<i64> {
    let theirs = lease.spec.as_ref()?.renew_time.as_ref()?.0.as_second();
    let notes = lease.metadata.managed_fields.as_ref()?;
    let ours = notes
        .iter()
        .filter_map(|n| n.time.as_ref())
        .map(|t| t.0.as_second())
        .max()?;
    Some(theirs - ours)
}

fn read(node: &Kubelet, ahead: &BTreeMap<String, i64>) -> Node {
    let status = node.status.clone().unwrap_or_default();
    let conditions = status.conditions.iter().flatten();
    let name = node.name_any();
    Node {
        version: status
            .node_info
            .map(|i| i.kubelet_version)
            .unwrap_or_default(),
        ready: conditions
            .into_iter()
            .any(|c| c.type_ == "Ready" && c.status == "True"),
        clock_ahead: ahead.get(&name).copied(),
        uninitialized: node
            .spec
            .iter()
            .flat_map(|s| s.taints.iter().flatten())
            .any(|t| t.key == "node.cloudprovider.kubernetes.io/uninitialized"),
        name,
    }
}

/// Lets the API server ask each kubelet how it is: the way of exec and logs.
pub(super) async fn kubelets(client: &Client, nodes: &[Node]) -> Vec<Reached> {
    let up = nodes.iter().filter(|n| n.ready).take(ASKED);
    let asked = up.map(async |node| {
        let outcome = tokio::time::timeout(PATIENCE, ask(client, &node.name)).await;
        let outcome = outcome
            .unwrap_or_else(|_| Err(format!("no answer within {} ms", PATIENCE.as_millis())));
        Reached {
            node: node.name.clone(),
            outcome,
        }
    });
    let asked: Vec<_> = asked.collect();
    futures::stream::iter(asked).buffered(ASKED).collect().await
}

async fn ask(client: &Client, node: &str) -> Result<(), String> {
    let path = format!("/api/v1/nodes/{node}/proxy/healthz");
    let request = http::Request::get(path)
        .body(Vec::new())
        .map_err(|e| e.to_string())?;
    match client.request_text(request).await {
        Ok(_) => Ok(()),
        // The kubelet, or our own rights, refused: then it was reached.
        Err(kube::Error::Api(status)) if [401, 403, 404].contains(&status.code) => Ok(()),
        Err(kube::Error::Api(status)) => {
            Err(status.message.lines().next().unwrap_or_default().to_owned())
        }
        Err(error) => Err(chain(&error)),
    }
}
