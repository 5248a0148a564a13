//! One look inside a tenant: its version, its nodes, how far our workloads there are.

use std::{collections::BTreeMap, net::IpAddr};

use jiff::Timestamp;
use k8s_openapi::api::{
    core::v1::{Node, NodeStatus, Pod},
    discovery::v1::EndpointSlice,
};
use kube::{Api, Client, ResourceExt, api::ListParams};
use serde_json::Value;
use steward_api::metadata::annotations;
use steward_plan::{Endpoints, Inside, Kind, NodeSeen, ObjectKey, Rollout};

use crate::{apply::Engine, error::Error};

/// Pods of the node proxy.
const PROXIES: &str = "app=steward-tcp-proxy";

/// Those of them that open TLS themselves.
const TERMINATING: &str = "steward.butlerlabs.dev/tcp-proxy=terminate";

/// Nodes per request: a node with its list of images is some ten kilobytes.
const PAGE: u32 = 100;

pub(super) async fn inside(
    client: &Client,
    engine: &Engine,
    workloads: &[Kind],
    labels: &str,
    moving: bool,
) -> Result<Inside, Error> {
    let unreached = |error| Error::Read {
        what: "its version".into(),
        error,
    };
    let version = client
        .apiserver_version()
        .await
        .map_err(unreached)?
        .git_version;
    let (nodes, live, proxies, leaving, endpoints) = futures::try_join!(
        nodes(client),
        engine.list(workloads, None, labels),
        proxies(client),
        leaving(client, moving),
        endpoints(client)
    )?;
    let workloads: BTreeMap<ObjectKey, Rollout> = live
        .0
        .iter()
        .map(|(key, object)| (key.clone(), rollout(object)))
        .collect();
    Ok(Inside::Reachable {
        version,
        nodes,
        workloads,
        proxies,
        leaving,
        endpoints,
    })
}

/// Where the `kubernetes` Service leads.
async fn endpoints(client: &Client) -> Result<Option<Endpoints>, Error> {
    let api: Api<EndpointSlice> = Api::namespaced(client.clone(), "default");
    let slice = api
        .get_opt("kubernetes")
        .await
        .map_err(|error| Error::Read {
            what: "where its kubernetes Service leads".into(),
            error,
        })?;
    Ok(slice.and_then(|slice| {
        let port = slice.ports?.first()?.port?;
        let addresses = slice.endpoints.iter().flat_map(|e| &e.addresses);
        Some(Endpoints {
            addresses: addresses.filter_map(|text| text.parse().ok()).collect(),
            port: u16::try_from(port).ok()?,
        })
    }))
}

async fn nodes(client: &Client) -> Result<Vec<NodeSeen>, Error> {
    let api: Api<Node> = Api::all(client.clone());
    let mut seen = Vec::new();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = api.list(&params).await.map_err(|error| Error::Read {
            what: "its nodes".into(),
            error,
        })?;
        seen.extend(page.items.iter().map(node));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(seen),
        }
    }
}

/// Addresses of the nodes on which a node proxy that opens TLS is ready and stays.
async fn proxies(client: &Client) -> Result<Vec<IpAddr>, Error> {
    let api: Api<Pod> = Api::namespaced(client.clone(), "kube-system");
    let params = ListParams::default().labels(TERMINATING);
    let pods = api.list(&params).await.map_err(|error| Error::Read {
        what: "its node proxies".into(),
        error,
    })?;
    let ready = |pod: &Pod| {
        let conditions = pod
            .status
            .as_ref()
            .and_then(|status| status.conditions.as_ref());
        conditions
            .into_iter()
            .flatten()
            .any(|condition| condition.type_ == "Ready" && condition.status == "True")
    };
    let host = |pod: &Pod| pod.status.as_ref()?.host_ip.as_ref()?.parse().ok();
    let mut hosts: Vec<IpAddr> = pods
        .items
        .iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none() && ready(pod))
        .filter_map(host)
        .collect();
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
    let api: Api<Pod> = Api::namespaced(client.clone(), "kube-system");
    let params = ListParams::default().labels(PROXIES);
    let pods = api
        .list_metadata(&params)
        .await
        .map_err(|error| Error::Read {
            what: "its node proxies".into(),
            error,
        })?;
    let times = pods
        .items
        .into_iter()
        .filter_map(|pod| pod.metadata.deletion_timestamp);
    Ok(times.map(|time| time.0).max())
}

fn node(node: &Node) -> NodeSeen {
    let nothing = NodeStatus::default();
    let status = node.status.as_ref().unwrap_or(&nothing);
    NodeSeen {
        name: node.name_any(),
        kubelet: status
            .node_info
            .as_ref()
            .map(|info| info.kubelet_version.clone())
            .unwrap_or_default(),
        ready: ready(status),
        address: internal_address(status),
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

fn internal_address(status: &NodeStatus) -> Option<IpAddr> {
    status
        .addresses
        .iter()
        .flatten()
        .filter(|address| address.type_ == "InternalIP")
        .find_map(|address| address.address.parse().ok())
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
