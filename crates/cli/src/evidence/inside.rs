//! Inside the tenant, through its own API server.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use steward_doctor::{Inside, Seen, Slice, Unseen};

use super::{unseen, within_deadline};
use crate::cluster::Management;

mod addons;
mod nodes;

/// What was seen inside.
pub(crate) struct Within {
    /// Whether the administrator is let in, where somebody answered.
    pub(crate) admitted: Option<bool>,
    /// What /readyz answered.
    pub(crate) ready: Seen<()>,
    /// Everything behind it.
    pub(crate) inside: Seen<Inside>,
    /// How many seconds we are ahead of the API server.
    pub(crate) clock_skew: Seen<i64>,
}

impl Within {
    fn unseen(why: &Unseen) -> Self {
        Self {
            admitted: None,
            ready: Err(why.clone()),
            inside: Err(why.clone()),
            clock_skew: Err(why.clone()),
        }
    }
}

/// Looks inside, if the API server lets us.
pub(crate) async fn look(cluster: &Management, name: &str) -> Within {
    let connected = tokio::time::timeout(super::LOOK, cluster.tenant_client(name)).await;
    let client = match connected {
        Ok(Ok(client)) => client,
        Ok(Err(problem)) => return Within::unseen(&Unseen::NotLooked(problem.to_string())),
        Err(_) => {
            return Within::unseen(&Unseen::NotLooked(
                "its kubeconfig could not be read in time".to_owned(),
            ));
        }
    };
    let answer = match within_deadline("/readyz", readyz(&client)).await {
        Ok(answer) => answer,
        Err(why) => {
            let elsewhere = Unseen::NotLooked("the API server does not answer".to_owned());
            return Within {
                ready: Err(why),
                ..Within::unseen(&elsewhere)
            };
        }
    };
    let admitted = Some(answer.status != 401);
    if !(200..300).contains(&answer.status) {
        let why = Unseen::Failed(format!(
            "/readyz answers {}{}",
            answer.status, answer.failed
        ));
        let elsewhere = Unseen::NotLooked("the API server is not ready".to_owned());
        return Within {
            admitted,
            ready: Err(why),
            clock_skew: answer.skew,
            ..Within::unseen(&elsewhere)
        };
    }
    let inside = within_deadline("looking inside", Box::pin(objects(&client))).await;
    Within {
        admitted,
        ready: Ok(()),
        inside,
        clock_skew: answer.skew,
    }
}

/// What /readyz said.
struct Answer {
    status: u16,
    skew: Seen<i64>,
    /// The parts that are not ready, to be put behind the status.
    failed: String,
}

/// Asks whether it is ready, and reads its clock off the answer.
async fn readyz(client: &Client) -> Seen<Answer> {
    let request = http::Request::get("/readyz")
        .body(kube::client::Body::empty())
        .map_err(|e| Unseen::Failed(e.to_string()))?;
    let response = client.send(request).await.map_err(|e| unseen(&e))?;
    let status = response.status().as_u16();
    let date = response.headers().get("date").and_then(|d| d.to_str().ok());
    let theirs = date.and_then(|d| {
        jiff::fmt::rfc2822::DateTimeParser::new()
            .parse_zoned(d)
            .ok()
    });
    let skew = theirs
        .map(|t| Timestamp::now().as_second() - t.timestamp().as_second())
        .ok_or_else(|| Unseen::NotLooked("the answer has no date".to_owned()));
    let body = response
        .into_body()
        .collect_bytes()
        .await
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&body);
    let parts: Vec<&str> = text
        .lines()
        .filter_map(|l| l.strip_prefix("[-]"))
        .map(|l| l.split(' ').next().unwrap_or(l))
        .collect();
    let failed = if parts.is_empty() {
        String::new()
    } else {
        format!(": not ready are {}", parts.join(", "))
    };
    Ok(Answer {
        status,
        skew,
        failed,
    })
}

async fn objects(client: &Client) -> Seen<Inside> {
    let version = client.apiserver_version().await.map_err(|e| unseen(&e))?;
    let (nodes, slices, kube_proxy, missing) = tokio::try_join!(
        nodes::look(client),
        slices(client),
        config_map(client, "kube-system", "kube-proxy"),
        missing(client),
    )?;
    let (addons, kubelets) = tokio::join!(
        addons::look(client, &nodes),
        nodes::kubelets(client, &nodes)
    );
    let addons = addons?;
    Ok(Inside {
        version: version.git_version,
        slice: slices.ours,
        other_slices: slices.others,
        missing_kubeadm: missing,
        kube_proxy_server: kube_proxy.as_ref().and_then(server_of),
        konnectivity: addons.konnectivity,
        tcp_proxy: addons.tcp_proxy,
        kube_proxy: addons.kube_proxy,
        coredns: addons.coredns,
        kubelets,
        nodes,
    })
}

struct Slices {
    ours: Option<Slice>,
    others: Vec<String>,
}

/// Slices of the kubernetes Service. Those mirrored from the Endpoints object are nobody's.
async fn slices(client: &Client) -> Seen<Slices> {
    let api: Api<EndpointSlice> = Api::namespaced(client.clone(), "default");
    let wanted = ListParams::default().labels("kubernetes.io/service-name=kubernetes");
    let mut found = api.list(&wanted).await.map_err(|e| unseen(&e))?.items;
    if !found.iter().any(|s| s.name_any() == "kubernetes") {
        found.extend(api.get_opt("kubernetes").await.map_err(|e| unseen(&e))?);
    }
    let mirrored = |s: &EndpointSlice| {
        let by = s.labels().get("endpointslice.kubernetes.io/managed-by");
        by.is_some_and(|by| by.starts_with("endpointslicemirroring"))
    };
    let ours = found
        .iter()
        .find(|s| s.name_any() == "kubernetes")
        .map(|s| Slice {
            addresses: s
                .endpoints
                .iter()
                .flat_map(|e| e.addresses.clone())
                .collect(),
            port: s.ports.iter().flatten().find_map(|p| p.port),
        });
    let others = found
        .iter()
        .filter(|s| s.name_any() != "kubernetes" && !mirrored(s));
    Ok(Slices {
        ours,
        others: others.map(ResourceExt::name_any).collect(),
    })
}

async fn config_map(client: &Client, namespace: &str, name: &str) -> Seen<Option<ConfigMap>> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    api.get_opt(name).await.map_err(|e| unseen(&e))
}

/// The `server:` line of the kubeconfig in kube-proxy's `ConfigMap`.
fn server_of(map: &ConfigMap) -> Option<String> {
    let text = map.data.as_ref()?.get("kubeconfig.conf")?;
    let line = text.lines().find(|l| {
        l.trim_start()
            .trim_start_matches("- ")
            .trim_start_matches('"')
            .starts_with("server")
    })?;
    let (_, value) = line.split_once(':')?;
    Some(value.trim().trim_matches([',', '"', '\'']).to_owned())
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
