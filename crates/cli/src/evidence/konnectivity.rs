//! Both ends of konnectivity, each asked how many of the other end it has.

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use steward_doctor::Tunnel;

use super::ask::{self, metric, whole};
use crate::cluster::Management;

/// Where a server tells its counters: to its own pod only.
const SERVER_PORT: u16 = 8133;

/// Where an agent tells them.
const AGENT_PORT: i32 = 8134;

/// How many agents are asked; with more, the first stand for the rest.
const ASKED: usize = 20;

/// The servers beside the API servers, as far as they can be asked.
pub(super) async fn servers(cluster: &Management, tenant: &str) -> Vec<Tunnel> {
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let running = running(&pods, &format!("steward.butlerlabs.dev/name={tenant}")).await;
    let asked = running.iter().map(async |pod| {
        let page = ask::loopback(&pods, pod, SERVER_PORT, "/metrics")
            .await
            .ok()?;
        let name = "konnectivity_network_proxy_server_ready_backends";
        let older = "konnectivity_network_proxy_server_ready_backend_connections";
        tunnel(pod, metric(&page, name).or_else(|| metric(&page, older)))
    });
    join_all(asked).await.into_iter().flatten().collect()
}

/// The agents on the tenant's nodes, as far as they can be asked.
pub(super) async fn agents(client: &Client) -> Vec<Tunnel> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "kube-system");
    let running = running(&pods, "k8s-app=konnectivity-agent").await;
    let asked = running.iter().take(ASKED).map(async |pod| {
        let answer = ask::pod(client, "kube-system", pod, AGENT_PORT, "/metrics").await;
        let answer = answer.ok().filter(|a| a.status == 200)?;
        let name = "konnectivity_network_proxy_agent_open_server_connections";
        tunnel(pod, metric(&answer.text, name))
    });
    join_all(asked).await.into_iter().flatten().collect()
}

fn tunnel(pod: &str, connected: Option<f64>) -> Option<Tunnel> {
    Some(Tunnel {
        pod: pod.to_owned(),
        connected: whole(connected?),
    })
}

/// Names of pods that are ready and stay.
async fn running(pods: &Api<Pod>, selector: &str) -> Vec<String> {
    let found = pods.list(&ListParams::default().labels(selector)).await;
    let found = found.map(|l| l.items).unwrap_or_default();
    let well = found
        .iter()
        .filter(|p| p.metadata.deletion_timestamp.is_none() && super::trouble(p).is_none());
    well.map(ResourceExt::name_any).collect()
}
