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
/// every ten seconds.
pub(super) async fn look(client: &Client, server_now: Option<i64>) -> Seen<Vec<Node>> {
    let nodes: Api<Kubelet> = Api::all(client.clone());
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
    let everything = ListParams::default();
    let (nodes, leases) = tokio::join!(nodes.list(&everything), leases.list(&everything));
    let nodes = nodes.map_err(|e| unseen(&e))?;
    let renewed: BTreeMap<String, i64> = leases
        .map(|l| l.items)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|l| Some((l.name_any(), l.spec?.renew_time?.0.as_second())))
        .collect();
    Ok(nodes
        .iter()
        .map(|node| read(node, &renewed, server_now))
        .collect())
}

fn read(node: &Kubelet, renewed: &BTreeMap<String, i64>, server_now: Option<i64>) -> Node {
    let status = node.status.clone().unwrap_or_default();
    let ready = status
        .conditions
        .iter()
        .flatten()
        .any(|c| c.type_ == "Ready" && c.status == "True");
    let ahead = renewed
        .get(&node.name_any())
        .zip(server_now)
        .map(|(renewed, now)| renewed - now);
    Node {
        name: node.name_any(),
        version: status
            .node_info
            .map(|i| i.kubelet_version)
            .unwrap_or_default(),
        ready,
        // An old lease of a node that is down says nothing about its clock.
        clock_ahead: ahead.filter(|ahead| ready || *ahead > 0),
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
