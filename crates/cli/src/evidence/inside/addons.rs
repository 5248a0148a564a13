//! The addons' workloads, and on which nodes they are missing.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, PodTemplateSpec, Secret};
use kube::Client;
use kube::api::{Api, ListParams};
use steward_api::tenant_control_plane::TcpProxyMode;
use steward_doctor::{Addon, Node, Seen};

use super::super::unseen;
use super::Expected;

const NAMESPACE: &str = "kube-system";
const PROXY: &str = "steward-tcp-proxy";

/// All of them.
pub(super) struct Addons {
    pub(super) konnectivity: Addon,
    pub(super) tcp_proxy: Addon,
    pub(super) kube_proxy: Addon,
    pub(super) coredns: Addon,
    pub(super) proxy_trust: Option<String>,
    pub(super) leftovers: Vec<String>,
}

/// Looks at each; the node proxy has to be on every node that is up.
pub(super) async fn look(client: &Client, nodes: &[Node], expected: Expected<'_>) -> Seen<Addons> {
    let (konnectivity, mut tcp_proxy, kube_proxy, coredns) = tokio::try_join!(
        either(client, "konnectivity-agent"),
        either(client, PROXY),
        either(client, "kube-proxy"),
        either(client, "coredns"),
    )?;
    if tcp_proxy.of_every_node {
        let there = ready_on(client, "app=steward-tcp-proxy").await?;
        let missing = nodes.iter().filter(|n| n.ready && !there.contains(&n.name));
        tcp_proxy.addon.missing_on = missing.map(|n| n.name.clone()).collect();
    }
    let wanted = &expected.tenant.spec.addons;
    let mut leftovers = Vec::new();
    if wanted.konnectivity.is_none() {
        leftovers.extend(konnectivity.object("konnectivity-agent"));
    }
    let proxy_trust = if let Some(spec) = &wanted.tcp_proxy {
        untrusting(client, &tcp_proxy, spec.mode, expected.authority).await?
    } else {
        leftovers.extend(tcp_proxy.object(PROXY));
        None
    };
    Ok(Addons {
        proxy_trust,
        leftovers,
        konnectivity: konnectivity.addon,
        tcp_proxy: tcp_proxy.addon,
        kube_proxy: kube_proxy.addon,
        coredns: coredns.addon,
    })
}

/// What keeps the node proxies from knowing the API server by the tenant's CA.
async fn untrusting(
    client: &Client,
    proxy: &Found,
    mode: TcpProxyMode,
    authority: Option<&str>,
) -> Seen<Option<String>> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let map = maps.get_opt(PROXY).await.map_err(|e| unseen(&e))?;
    let given = map.and_then(|m| m.data.unwrap_or_default().remove("ca.crt"));
    if proxy.addon.exists && !proxy.args.iter().any(|a| a.starts_with("--ca=")) {
        return Ok(Some(format!("{PROXY} runs without --ca")));
    }
    let trimmed = |text: &str| text.trim().to_owned();
    match (given.as_deref().map(trimmed), authority.map(trimmed)) {
        (None, _) => {
            return Ok(Some(format!("ConfigMap {NAMESPACE}/{PROXY} has no ca.crt")));
        }
        (Some(given), Some(ours)) if given != ours => {
            return Ok(Some(format!(
                "ConfigMap {NAMESPACE}/{PROXY} has another CA than the tenant's"
            )));
        }
        _ => {}
    }
    if mode == TcpProxyMode::Terminate {
        let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
        let name = format!("{PROXY}-tls");
        let found = secrets.get_metadata_opt(&name).await;
        if found.map_err(|e| unseen(&e))?.is_none() {
            return Ok(Some(format!("there is no Secret {NAMESPACE}/{name}")));
        }
    }
    Ok(None)
}

#[derive(Default)]
struct Found {
    addon: Addon,
    of_every_node: bool,
    args: Vec<String>,
}

impl Found {
    /// As kubectl names it, where it exists.
    fn object(&self, name: &str) -> Option<String> {
        let kind = if self.of_every_node {
            "daemonset"
        } else {
            "deployment"
        };
        self.addon.exists.then(|| format!("{kind}/{name}"))
    }
}

fn args(template: Option<PodTemplateSpec>) -> Vec<String> {
    let containers = template.and_then(|t| t.spec).map(|s| s.containers);
    let all = containers.unwrap_or_default().into_iter();
    all.flat_map(|c| c.args.unwrap_or_default()).collect()
}

/// A `DaemonSet` of that name, or else a Deployment.
async fn either(client: &Client, name: &str) -> Seen<Found> {
    let sets: Api<DaemonSet> = Api::namespaced(client.clone(), NAMESPACE);
    if let Some(found) = sets.get_opt(name).await.map_err(|e| unseen(&e))? {
        let args = args(found.spec.map(|s| s.template));
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
            args,
        });
    }
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let Some(found) = deployments.get_opt(name).await.map_err(|e| unseen(&e))? else {
        return Ok(Found::default());
    };
    let spec = found.spec.unwrap_or_default();
    let addon = Addon {
        exists: true,
        desired: spec.replicas.unwrap_or(1),
        ready: found.status.unwrap_or_default().ready_replicas.unwrap_or(0),
        missing_on: Vec::new(),
    };
    Ok(Found {
        addon,
        of_every_node: false,
        args: args(Some(spec.template)),
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
