//! Inside the tenant, through its own API server.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use steward_doctor::{Addon, Inside, Seen, Slice, Unseen};

use super::{unseen, within_deadline};
use crate::cluster::Management;

/// What was seen inside.
pub(super) struct Within {
    pub(super) ready: Seen<()>,
    pub(super) inside: Seen<Inside>,
    pub(super) clock_skew: Seen<i64>,
}

/// Looks inside, if the API server lets us.
pub(super) async fn look(cluster: &Management, name: &str) -> Within {
    let client = match cluster.tenant_client(name).await {
        Ok(client) => client,
        Err(problem) => {
            let why = || Unseen::NotLooked(problem.to_string());
            return Within {
                ready: Err(why()),
                inside: Err(why()),
                clock_skew: Err(why()),
            };
        }
    };
    let (ready, clock_skew) = match within_deadline("/readyz", readyz(&client)).await {
        Ok(skew) => (Ok(()), skew),
        Err(why) => (Err(why), Err(Unseen::NotLooked("no answer".to_owned()))),
    };
    let inside = match &ready {
        Ok(()) => within_deadline("looking inside", objects(&client)).await,
        Err(_) => Err(Unseen::NotLooked(
            "the API server does not answer".to_owned(),
        )),
    };
    Within {
        ready,
        inside,
        clock_skew,
    }
}

/// Asks whether it is ready, and reads its clock off the answer.
async fn readyz(client: &Client) -> Seen<Seen<i64>> {
    let request = http_request("/readyz").map_err(Unseen::Failed)?;
    let response = client.send(request).await.map_err(|e| unseen(&e))?;
    if !response.status().is_success() {
        return Err(Unseen::Failed(format!(
            "/readyz answers {}",
            response.status()
        )));
    }
    let date = response.headers().get("date").and_then(|d| d.to_str().ok());
    let theirs = date.and_then(|d| {
        jiff::fmt::rfc2822::DateTimeParser::new()
            .parse_zoned(d)
            .ok()
    });
    Ok(theirs
        .map(|t| Timestamp::now().as_second() - t.timestamp().as_second())
        .ok_or_else(|| Unseen::NotLooked("the answer has no date".to_owned())))
}

fn http_request(path: &str) -> Result<http::Request<kube::client::Body>, String> {
    http::Request::get(path)
        .body(kube::client::Body::empty())
        .map_err(|e| e.to_string())
}

async fn objects(client: &Client) -> Seen<Inside> {
    let version = client.apiserver_version().await.map_err(|e| unseen(&e))?;
    let nodes: Api<Node> = Api::all(client.clone());
    let nodes = nodes
        .list(&ListParams::default())
        .await
        .map_err(|e| unseen(&e))?;
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), "default");
    let slice = slices.get_opt("kubernetes").await.map_err(|e| unseen(&e))?;
    let kube_proxy = config_map(client, "kube-system", "kube-proxy").await?;
    let agent = daemon_set(client, "konnectivity-agent").await?;
    let agent = if agent.exists {
        agent
    } else {
        deployment(client, "konnectivity-agent").await?
    };
    let proxy = daemon_set(client, "steward-tcp-proxy").await?;
    let proxy = if proxy.exists {
        proxy
    } else {
        deployment(client, "steward-tcp-proxy").await?
    };
    Ok(Inside {
        version: version.git_version,
        nodes: nodes.iter().map(node).collect(),
        slice: slice.map(|s| Slice {
            addresses: s
                .endpoints
                .iter()
                .flat_map(|e| e.addresses.clone())
                .collect(),
            port: s.ports.iter().flatten().find_map(|p| p.port),
        }),
        missing_kubeadm: missing(client).await?,
        kube_proxy_server: kube_proxy.as_ref().and_then(server_of),
        konnectivity: agent,
        tcp_proxy: proxy,
        coredns: deployment(client, "coredns").await?,
    })
}

fn node(node: &Node) -> (String, String, bool) {
    let status = node.status.clone().unwrap_or_default();
    let version = status
        .node_info
        .map(|i| i.kubelet_version)
        .unwrap_or_default();
    let ready = status
        .conditions
        .iter()
        .flatten()
        .any(|c| c.type_ == "Ready" && c.status == "True");
    (node.name_any(), version, ready)
}

async fn config_map(client: &Client, namespace: &str, name: &str) -> Seen<Option<ConfigMap>> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    api.get_opt(name).await.map_err(|e| unseen(&e))
}

/// The `server:` line of the kubeconfig in kube-proxy's ConfigMap.
fn server_of(map: &ConfigMap) -> Option<String> {
    let text = map.data.as_ref()?.get("kubeconfig.conf")?;
    let line = text
        .lines()
        .find(|l| l.trim_start().starts_with("server:"))?;
    Some(
        line.trim_start()
            .trim_start_matches("server:")
            .trim()
            .trim_matches('"')
            .to_owned(),
    )
}

async fn missing(client: &Client) -> Seen<Vec<String>> {
    let mut missing = Vec::new();
    for (namespace, name) in [
        ("kube-public", "cluster-info"),
        ("kube-system", "kubeadm-config"),
        ("kube-system", "kubelet-config"),
    ] {
        if config_map(client, namespace, name).await?.is_none() {
            missing.push(format!("ConfigMap {namespace}/{name}"));
        }
    }
    Ok(missing)
}

async fn daemon_set(client: &Client, name: &str) -> Seen<Addon> {
    let api: Api<DaemonSet> = Api::namespaced(client.clone(), "kube-system");
    let found = api.get_opt(name).await.map_err(|e| unseen(&e))?;
    Ok(found.map_or_else(Addon::default, |d| {
        let status = d.status.unwrap_or_default();
        Addon {
            exists: true,
            desired: status.desired_number_scheduled,
            ready: status.number_ready,
        }
    }))
}

async fn deployment(client: &Client, name: &str) -> Seen<Addon> {
    let api: Api<Deployment> = Api::namespaced(client.clone(), "kube-system");
    let found = api.get_opt(name).await.map_err(|e| unseen(&e))?;
    Ok(found.map_or_else(Addon::default, |d| {
        let wanted = d.spec.and_then(|s| s.replicas).unwrap_or(1);
        Addon {
            exists: true,
            desired: wanted,
            ready: d.status.unwrap_or_default().ready_replicas.unwrap_or(0),
        }
    }))
}
