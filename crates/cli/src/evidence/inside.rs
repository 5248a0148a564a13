//! Inside the tenant, through its own API server.

use jiff::Timestamp;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use steward_api::TenantControlPlane;
use steward_doctor::{Inside, Seen, Slice, Unseen};

use super::{konnectivity, past_the_door, unseen, within_deadline};
use crate::cluster::Management;

mod addons;
mod extensions;
mod kubeadm;
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
    /// Where the administrator's kubeconfig leads.
    pub(crate) admin_endpoint: Option<String>,
    /// Whether the public way led nowhere, and we looked past the front door.
    pub(crate) past_the_door: bool,
}

impl Within {
    fn unseen(why: &Unseen) -> Self {
        Self {
            admitted: None,
            ready: Err(why.clone()),
            inside: Err(why.clone()),
            clock_skew: Err(why.clone()),
            admin_endpoint: None,
            past_the_door: false,
        }
    }
}

/// What to look for beside what every tenant has.
#[derive(Clone, Copy)]
pub(super) struct Expected<'a> {
    pub(super) tenant: &'a TenantControlPlane,
    /// The tenant's CA, where it could be read.
    pub(super) authority: Option<&'a str>,
}

/// Looks inside, if the API server lets us: by the public way, or past the front door.
pub(crate) async fn look(
    cluster: &Management,
    tenant: &TenantControlPlane,
    authority: Option<&str>,
) -> Within {
    let name = tenant.name_any();
    let connected = tokio::time::timeout(super::LOOK, cluster.tenant_config(&name)).await;
    let config = match connected {
        Ok(Ok(config)) => config,
        Ok(Err(problem)) => return Within::unseen(&Unseen::NotLooked(problem.to_string())),
        Err(_) => {
            return Within::unseen(&Unseen::NotLooked(
                "its kubeconfig could not be read in time".to_owned(),
            ));
        }
    };
    let admin_endpoint = kubeadm::endpoint(&config.cluster_url.to_string());
    let public = async {
        let client = Client::try_from(config).map_err(|e| Unseen::NotLooked(e.to_string()))?;
        Ok((readyz(&client).await?, client))
    };
    let other = async {
        let client = past_the_door::client(cluster, &name).await?;
        Ok((readyz(&client).await?, client))
    };
    // At once: a person waits, and the public way may take all the time there is.
    let (public, other) = tokio::join!(
        within_deadline("/readyz", public),
        within_deadline("/readyz past the front door", other),
    );
    let (found, past_the_door) = match (public, other) {
        (Ok(found), _) => (found, false),
        (Err(_), Ok(found)) => (found, true),
        (Err(why), Err(_)) => {
            let elsewhere = Unseen::NotLooked("the API server does not answer".to_owned());
            return Within {
                ready: Err(why),
                admin_endpoint,
                ..Within::unseen(&elsewhere)
            };
        }
    };
    let (answer, client) = found;
    let expected = Expected { tenant, authority };
    Within {
        admin_endpoint,
        past_the_door,
        ..answered(answer, &client, expected).await
    }
}

async fn answered(answer: Answer, client: &Client, expected: Expected<'_>) -> Within {
    let admitted = Some(answer.status != 401);
    let (ready, inside) = if (200..300).contains(&answer.status) {
        let looking = Box::pin(objects(client, expected));
        (Ok(()), within_deadline("looking inside", looking).await)
    } else {
        let said = format!("/readyz answers {}{}", answer.status, answer.failed);
        let elsewhere = Unseen::NotLooked("the API server is not ready".to_owned());
        (Err(Unseen::Failed(said)), Err(elsewhere))
    };
    Within {
        admitted,
        ready,
        clock_skew: answer.skew,
        inside,
        admin_endpoint: None,
        past_the_door: false,
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

async fn objects(client: &Client, expected: Expected<'_>) -> Seen<Inside> {
    let version = client.apiserver_version().await.map_err(|e| unseen(&e))?;
    let (nodes, slices, kubeadm) =
        tokio::try_join!(nodes::look(client), slices(client), kubeadm::look(client),)?;
    let (addons, kubelets, agents, orphaned) = tokio::join!(
        addons::look(client, &nodes, expected),
        nodes::kubelets(client, &nodes),
        konnectivity::agents(client),
        extensions::orphaned(client),
    );
    let addons = addons?;
    Ok(Inside {
        version: version.git_version,
        slice: slices.ours,
        other_slices: slices.others,
        missing_kubeadm: kubeadm.missing,
        told: kubeadm.told,
        kube_proxy_server: kubeadm.kube_proxy_server,
        konnectivity: addons.konnectivity,
        tcp_proxy: addons.tcp_proxy,
        kube_proxy: addons.kube_proxy,
        coredns: addons.coredns,
        proxy_trust: addons.proxy_trust,
        leftovers: addons.leftovers,
        kubelets,
        agents,
        orphaned,
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
