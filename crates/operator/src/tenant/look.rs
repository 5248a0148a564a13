//! One look inside a tenant: its version, its nodes, how far our workloads there are.
//!
//! Owns: what is read of a tenant to plan for it. Refuses: reading whatever a tenant may grow in full. Our own
//! workloads are read by name, all else in pages, up to a number, and only the fields that are used are kept.

use std::{collections::BTreeMap, net::IpAddr};

use futures::future::try_join_all;
use jiff::Timestamp;
use k8s_openapi::{api::core::v1::NodeStatus, apimachinery::pkg::apis::meta::v1::Time};
use kube::Client;
use serde::Deserialize;
use serde_json::Value;
use steward_api::metadata::{annotations, labels};
use steward_plan::{
    Endpoints, Inside, Kind, NodeSeen, ObjectKey, Rollout, inside_workloads, names::PROJECT,
};

use crate::{
    apply::{self, Engine},
    error::Error,
    events::clip,
    pages::{self, Few, List},
    tenant::limits::TooMuch,
};

/// Pods of the node proxy.
const PROXIES: &str = "app=steward-tcp-proxy";

/// Those of them that open TLS themselves.
const TERMINATING: &str = "steward.butlerlabs.dev/tcp-proxy=terminate";

/// A cluster has no more, by what Kubernetes itself promises.
const NODES: usize = 5000;

/// Names are no longer.
const NAME: usize = 253;

/// Nor are versions.
const VERSION: usize = 64;

pub(super) async fn inside(
    client: &Client,
    engine: &Engine,
    moving: bool,
) -> Result<Inside, Error> {
    // Before all else: it tells whether anybody answers.
    let version = version(client).await?;
    let (nodes, workloads, proxies, leaving, endpoints) = futures::try_join!(
        nodes(client),
        workloads(engine),
        proxies(client),
        leaving(client, moving),
        endpoints(client)
    )?;
    Ok(Inside::Reachable {
        version,
        nodes,
        workloads,
        proxies,
        leaving,
        endpoints,
    })
}

async fn version(client: &Client) -> Result<String, Error> {
    #[derive(Deserialize)]
    struct Info {
        #[serde(rename = "gitVersion")]
        version: String,
    }
    let info: Option<Info> = get(client, "/version", "its version").await?;
    let info = info.ok_or_else(|| Error::TenantAccess {
        reason: "it does not know its version".into(),
    })?;
    Ok(clip(&info.version, VERSION))
}

/// One object, of which only what is used is kept. None when there is no such thing.
async fn get<T: serde::de::DeserializeOwned>(
    client: &Client,
    path: &str,
    what: &str,
) -> Result<Option<T>, Error> {
    let failed = |error: kube::Error| match TooMuch::of(&error) {
        Some(too_much) => Error::TooMuchInside {
            reason: format!("{what}: {too_much}"),
        },
        None => Error::Read {
            what: what.to_owned(),
            error,
        },
    };
    let request = http::Request::get(path).body(Vec::new());
    let request = request.map_err(|error| failed(kube::Error::HttpError(error)))?;
    match client.request_text(request).await {
        Ok(text) => match serde_json::from_str(&text) {
            Ok(found) => Ok(Some(found)),
            Err(error) => Err(pages::unreadable(what, &error)),
        },
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// How far those workloads of ours are that bear on the plan. What has the name of one without our label is not ours.
async fn workloads(engine: &Engine) -> Result<BTreeMap<ObjectKey, Rollout>, Error> {
    let keys = inside_workloads();
    let found = try_join_all(keys.iter().map(|key| engine.get(key))).await?;
    let ours = |object: &Value| object["metadata"]["labels"][labels::PROJECT] == PROJECT;
    let pairs = keys.iter().zip(&found);
    Ok(pairs
        .filter_map(|(key, object)| Some((key, object.as_ref().filter(|object| ours(object))?)))
        .map(|(key, object)| (key.clone(), rollout(object)))
        .collect())
}

/// Where the `kubernetes` Service leads.
async fn endpoints(client: &Client) -> Result<Option<Endpoints>, Error> {
    #[derive(Deserialize)]
    struct Slice {
        ports: Option<Few<Port, 8>>,
        endpoints: Option<Few<Endpoint, 100>>,
    }
    #[derive(Deserialize)]
    struct Port {
        port: Option<u16>,
    }
    #[derive(Deserialize)]
    struct Endpoint {
        addresses: Option<Few<String, 8>>,
    }
    let what = "where its kubernetes Service leads";
    let path = apply::path(Kind::EndpointSlice, Some("default"));
    let slice: Option<Slice> = get(client, &format!("{path}/kubernetes"), what).await?;
    Ok(slice.and_then(|slice| {
        let port = slice.ports?.all.first()?.port?;
        let endpoints = slice.endpoints.unwrap_or_default().all;
        let addresses = endpoints
            .into_iter()
            .filter_map(|endpoint| endpoint.addresses);
        let addresses = addresses.flat_map(|few| few.all);
        Some(Endpoints {
            addresses: addresses.filter_map(|text| text.parse().ok()).collect(),
            port,
        })
    }))
}

/// Of a node or a pod, what is used.
#[derive(Deserialize)]
struct Seen {
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(rename = "deletionTimestamp")]
    deleted: Option<Time>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    conditions: Option<Few<Condition, 100>>,
    addresses: Option<Few<Address, 100>>,
    node_info: Option<NodeInfo>,
    #[serde(rename = "hostIP")]
    host_ip: Option<String>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
}

#[derive(Deserialize)]
struct Address {
    #[serde(rename = "type")]
    type_: String,
    address: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeInfo {
    kubelet_version: String,
}

impl Status {
    fn ready(&self) -> bool {
        let mut all = self.conditions.iter().flat_map(|few| &few.all);
        all.any(|condition| condition.type_ == "Ready" && condition.status == "True")
    }

    fn internal_address(&self) -> Option<IpAddr> {
        let all = self.addresses.iter().flat_map(|few| &few.all);
        all.filter(|address| address.type_ == "InternalIP")
            .find_map(|address| address.address.parse().ok())
    }
}

async fn nodes(client: &Client) -> Result<Vec<NodeSeen>, Error> {
    let list = List {
        path: "/api/v1/nodes".into(),
        labels: None,
        metadata: false,
        what: "nodes",
        most: NODES,
        budget: None,
    };
    let mut seen = Vec::new();
    pages::each(client, &list, |found| seen.push(node(&found))).await?;
    Ok(seen)
}

/// Pods in kube-system with a label: there is one on every node.
fn pods(labels: &str, metadata: bool) -> List<'_> {
    List {
        path: "/api/v1/namespaces/kube-system/pods".into(),
        labels: Some(labels),
        metadata,
        what: "pods",
        most: NODES,
        budget: None,
    }
}

/// Addresses of the nodes on which a node proxy that opens TLS is ready and stays.
async fn proxies(client: &Client) -> Result<Vec<IpAddr>, Error> {
    let mut hosts: Vec<IpAddr> = Vec::new();
    pages::each(client, &pods(TERMINATING, false), |pod: Seen| {
        if pod.metadata.deleted.is_none() && pod.status.ready() {
            hosts.extend(
                pod.status
                    .host_ip
                    .and_then(|text| text.parse::<IpAddr>().ok()),
            );
        }
    })
    .await?;
    hosts.sort();
    hosts.dedup();
    Ok(hosts)
}

/// By when the last node proxy that was told to leave has to be gone. There is one on every node, so
/// this is asked only when the answer matters.
async fn leaving(client: &Client, moving: bool) -> Result<Option<Timestamp>, Error> {
    if !moving {
        return Ok(None);
    }
    let mut last = None;
    pages::each(client, &pods(PROXIES, true), |pod: Seen| {
        last = last.max(pod.metadata.deleted.map(|time| time.0));
    })
    .await?;
    Ok(last)
}

fn node(node: &Seen) -> NodeSeen {
    let kubelet = node.status.node_info.as_ref();
    NodeSeen {
        name: clip(&node.metadata.name, NAME),
        kubelet: kubelet
            .map(|info| clip(&info.kubelet_version, VERSION))
            .unwrap_or_default(),
        ready: node.status.ready(),
        address: node.status.internal_address(),
    }
}

/// Whether a node's Ready condition is true.
pub fn ready(status: &NodeStatus) -> bool {
    status
        .conditions
        .iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// How far a `Deployment`, `StatefulSet` or `DaemonSet` is.
pub fn rollout(object: &Value) -> Rollout {
    let status = &object["status"];
    let count = |field: &str| {
        status[field]
            .as_i64()
            .and_then(|count| i32::try_from(count).ok())
            .unwrap_or(0)
    };
    let daemon_set = status.get("desiredNumberScheduled").is_some();
    let wanted = object["spec"]["replicas"]
        .as_i64()
        .and_then(|count| i32::try_from(count).ok())
        .unwrap_or(1);
    Rollout {
        desired: if daemon_set {
            count("desiredNumberScheduled")
        } else {
            wanted
        },
        ready: if daemon_set {
            count("numberReady")
        } else {
            count("readyReplicas")
        },
        updated: if daemon_set {
            count("updatedNumberScheduled")
        } else {
            count("updatedReplicas")
        },
        current: status["observedGeneration"]
            .as_i64()
            .is_some_and(|seen| Some(seen) >= object["metadata"]["generation"].as_i64()),
        endpoint: object["metadata"]["annotations"][annotations::ENDPOINT]
            .as_str()
            .map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_daemon_set_counts_nodes_and_a_deployment_replicas() {
        let daemons = json!({"metadata": {"generation": 2}, "status": {
            "desiredNumberScheduled": 3, "numberReady": 2, "updatedNumberScheduled": 3, "observedGeneration": 2}});
        assert_eq!(
            rollout(&daemons),
            Rollout {
                desired: 3,
                ready: 2,
                updated: 3,
                current: true,
                endpoint: None
            }
        );
        let deployment = json!({"metadata": {"generation": 2}, "spec": {"replicas": 2}, "status": {
            "readyReplicas": 2, "updatedReplicas": 2, "observedGeneration": 1}});
        assert_eq!(
            rollout(&deployment),
            Rollout {
                desired: 2,
                ready: 2,
                updated: 2,
                current: false,
                endpoint: None
            }
        );
    }

    #[test]
    fn a_daemon_set_without_status_is_not_done() {
        assert!(!rollout(&json!({"metadata": {"generation": 1}, "spec": {}})).done());
    }
}
