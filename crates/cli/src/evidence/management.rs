//! In the management cluster: neighbours, operator, Service; the rest is next door.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use steward_api::TenantControlPlane;
use steward_api::conditions::Reason;
use steward_doctor::{Datastore, FrontDoor, Rival, Seen, Tunnel, Unseen, Workload};

use super::{datastore, front_door, konnectivity, near, pods, unseen};
use crate::cluster::Management;

/// What was seen in the management cluster.
pub(super) struct Near {
    pub(super) rivals: Vec<Rival>,
    pub(super) operator: Seen<Workload>,
    pub(super) front_door: Option<Seen<FrontDoor>>,
    pub(super) service_endpoints: Seen<usize>,
    pub(super) pods: Seen<pods::Pods>,
    pub(super) deployment: pods::Workload,
    pub(super) datastore: Seen<Datastore>,
    pub(super) datastore_credentials: Seen<()>,
    pub(super) konnectivity_servers: Vec<Tunnel>,
}

/// Looks at all of it at once.
pub(super) async fn look(cluster: &Management, tenant: &TenantControlPlane) -> Near {
    let name = tenant.name_any();
    let servers = async {
        match tenant.spec.addons.konnectivity {
            Some(_) => konnectivity::servers(cluster, &name).await,
            None => Vec::new(),
        }
    };
    let (rivals, operator, servers, front_door, service_endpoints, pods, deployment, stores) = tokio::join!(
        rivals(cluster, tenant),
        near("the operator's Deployment", operator(cluster)),
        tokio::time::timeout(super::LOOK, servers),
        front_door::look(cluster, tenant),
        near("the endpoints", endpoints(cluster, &name)),
        near("the pods", pods::pods(cluster, &name)),
        pods::workload(cluster, &name),
        stores(cluster, tenant),
    );
    let (store, credentials) = stores;
    Near {
        rivals,
        operator,
        front_door,
        service_endpoints,
        pods,
        deployment,
        datastore: store,
        datastore_credentials: credentials,
        konnectivity_servers: servers.unwrap_or_default(),
    }
}

async fn stores(cluster: &Management, tenant: &TenantControlPlane) -> (Seen<Datastore>, Seen<()>) {
    let name = tenant.name_any();
    tokio::join!(
        near("the datastore", datastore::look(cluster, tenant)),
        near(
            "the datastore's credentials",
            datastore::credentials(cluster, &name)
        ),
    )
}

async fn rivals(cluster: &Management, tenant: &TenantControlPlane) -> Vec<Rival> {
    let Some(names) = tenant.public_names() else {
        return Vec::new();
    };
    let all: Api<TenantControlPlane> = Api::all(cluster.client.clone());
    let listed = tokio::time::timeout(super::LOOK, all.list(&ListParams::default())).await;
    let Ok(Ok(all)) = listed else {
        return Vec::new();
    };
    let taken = lost_to(tenant);
    let claims = |other: &&TenantControlPlane| {
        let theirs = other.public_names();
        theirs.is_some_and(|o| {
            let ours = [&names.api, &names.konnectivity];
            ours.contains(&&o.api) || ours.contains(&&o.konnectivity)
        })
    };
    let others = all.iter().filter(|other| other.uid() != tenant.uid());
    others
        .filter(claims)
        .map(|other| {
            let tenant = format!(
                "{}/{}",
                other.namespace().unwrap_or_default(),
                other.name_any()
            );
            let holds = taken.is_some_and(|told| told.contains(&format!("{tenant},")));
            Rival { tenant, holds }
        })
        .collect()
}

/// What the operator tells a tenant whose hostname another one has.
fn lost_to(tenant: &TenantControlPlane) -> Option<&str> {
    let conditions = &tenant.status.as_ref()?.conditions;
    let told = conditions
        .iter()
        .find(|condition| condition.reason == Reason::HostnameTaken.as_str())?;
    Some(&told.message)
}

async fn operator(cluster: &Management) -> Seen<Workload> {
    let api: Api<Deployment> = Api::all(cluster.client.clone());
    let ours = ListParams::default()
        .labels("app.kubernetes.io/name=steward,app.kubernetes.io/component=controller-manager");
    let found = api.list(&ours).await.map_err(|e| unseen(&e))?;
    let first = found.items.first();
    // Somebody may run it outside the cluster, as developers do.
    let first =
        first.ok_or_else(|| Unseen::NotLooked("no Deployment of it was found".to_owned()))?;
    Ok(deployment(first))
}

/// A Deployment as evidence.
pub(super) fn deployment(found: &Deployment) -> Workload {
    Workload {
        object: format!("deployment/{}", found.name_any()),
        namespace: found.namespace().unwrap_or_default(),
        desired: found.spec.as_ref().and_then(|s| s.replicas).unwrap_or(1),
        ready: found
            .status
            .as_ref()
            .and_then(|s| s.ready_replicas)
            .unwrap_or(0),
    }
}

async fn endpoints(cluster: &Management, name: &str) -> Seen<usize> {
    let api: Api<EndpointSlice> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let wanted = ListParams::default().labels(&format!("kubernetes.io/service-name={name}"));
    let slices = api.list(&wanted).await.map_err(|e| unseen(&e))?;
    let all = slices.iter().flat_map(|s| s.endpoints.iter());
    Ok(all
        .filter(|e| e.conditions.as_ref().and_then(|c| c.ready).unwrap_or(true))
        .count())
}
