//! In the management cluster: pods, Service, front door, datastore, neighbours.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::{Ingress, IngressClass};
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt};
use steward_api::tenant_control_plane::IngressControllerType;
use steward_api::{DataStore, TenantControlPlane};
use steward_doctor::{Condition, FrontDoor, Seen, Unseen};

use super::{condition, unseen, within_deadline};
use crate::cluster::Management;

/// What was seen in the management cluster.
pub(super) struct Near {
    pub(super) rivals: Vec<String>,
    pub(super) front_door: Option<Seen<FrontDoor>>,
    pub(super) service_endpoints: Seen<usize>,
    pub(super) unready_pods: Seen<Vec<String>>,
    pub(super) datastore: Seen<(String, Vec<Condition>)>,
    pub(super) reconciler_off: Seen<bool>,
}

/// Looks at all of it at once.
pub(super) async fn look(cluster: &Management, tenant: &TenantControlPlane) -> Near {
    let name = tenant.name_any();
    let (rivals, front_door, service_endpoints, unready_pods, datastore, reconciler_off) = tokio::join!(
        rivals(cluster, tenant),
        front_door(cluster, tenant),
        within_deadline("reading the endpoints", endpoints(cluster, &name)),
        within_deadline("reading the pods", pods(cluster, &name)),
        within_deadline("reading the datastore", datastore(cluster, tenant)),
        within_deadline("reading the Deployment", reconciler(cluster, &name)),
    );
    Near {
        rivals,
        front_door,
        service_endpoints,
        unready_pods,
        datastore,
        reconciler_off,
    }
}

async fn rivals(cluster: &Management, tenant: &TenantControlPlane) -> Vec<String> {
    let Some(names) = tenant.public_names() else {
        return Vec::new();
    };
    let all: Api<TenantControlPlane> = Api::all(cluster.client.clone());
    let Ok(all) = all.list(&ListParams::default()).await else {
        return Vec::new();
    };
    all.iter()
        .filter(|other| other.uid() != tenant.uid())
        .filter(|other| {
            other
                .public_names()
                .is_some_and(|o| o.api == names.api || o.konnectivity == names.api)
        })
        .map(|other| {
            format!(
                "{}/{}",
                other.namespace().unwrap_or_default(),
                other.name_any()
            )
        })
        .collect()
}

async fn endpoints(cluster: &Management, name: &str) -> Seen<usize> {
    let api: Api<EndpointSlice> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let wanted = ListParams::default().labels(&format!("kubernetes.io/service-name={name}"));
    let slices = api.list(&wanted).await.map_err(|e| unseen(&e))?;
    let ready = slices.iter().flat_map(|s| &s.endpoints);
    Ok(ready
        .filter(|e| e.conditions.as_ref().and_then(|c| c.ready).unwrap_or(true))
        .count())
}

async fn pods(cluster: &Management, name: &str) -> Seen<Vec<String>> {
    let api: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let wanted = ListParams::default().labels(&format!("steward.butlerlabs.dev/name={name}"));
    let pods = api.list(&wanted).await.map_err(|e| unseen(&e))?;
    Ok(pods.iter().filter_map(trouble).collect())
}

fn trouble(pod: &Pod) -> Option<String> {
    let status = pod.status.clone().unwrap_or_default();
    let containers = status.container_statuses.unwrap_or_default();
    let bad = containers.iter().find(|c| !c.ready);
    if let Some(container) = bad {
        let state = container.state.clone().unwrap_or_default();
        let why = state
            .waiting
            .and_then(|w| w.reason)
            .unwrap_or_else(|| "not ready".to_owned());
        return Some(format!("{}: {} {why}", pod.name_any(), container.name));
    }
    let conditions = status.conditions.unwrap_or_default();
    let pending = conditions
        .iter()
        .find(|c| c.type_ == "PodScheduled" && c.status == "False");
    pending.map(|c| {
        format!(
            "{}: {}",
            pod.name_any(),
            c.message.clone().unwrap_or_default()
        )
    })
}

async fn datastore(
    cluster: &Management,
    tenant: &TenantControlPlane,
) -> Seen<(String, Vec<Condition>)> {
    let status = tenant.status.clone().unwrap_or_default();
    let name = status
        .storage
        .and_then(|s| s.data_store_name)
        .or_else(|| tenant.spec.data_store.clone());
    let name = name.unwrap_or_else(|| "default".to_owned());
    let api: Api<DataStore> = Api::all(cluster.client.clone());
    let found = api.get_opt(&name).await.map_err(|e| unseen(&e))?;
    let found = found.ok_or_else(|| Unseen::Failed(format!("there is no DataStore {name}")))?;
    let conditions = found.status.unwrap_or_default().conditions;
    Ok((name, conditions.iter().map(condition).collect()))
}

async fn reconciler(cluster: &Management, name: &str) -> Seen<bool> {
    let api: Api<Deployment> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let found = api.get_opt(name).await.map_err(|e| unseen(&e))?;
    let found = found.ok_or_else(|| Unseen::NotLooked("there is no Deployment yet".to_owned()))?;
    let containers = found
        .spec
        .and_then(|s| s.template.spec)
        .map(|s| s.containers)
        .unwrap_or_default();
    Ok(containers
        .iter()
        .filter(|c| c.name == "kube-apiserver")
        .flat_map(|c| c.args.iter().flatten().chain(c.command.iter().flatten()))
        .any(|a| a == "--endpoint-reconciler-type=none"))
}

async fn front_door(cluster: &Management, tenant: &TenantControlPlane) -> Option<Seen<FrontDoor>> {
    let control_plane = &tenant.spec.control_plane;
    let name = tenant.name_any();
    let look = async {
        let mut found = match (&control_plane.ingress, &control_plane.gateway) {
            (Some(ingress), _) if ingress.controller_type == IngressControllerType::Traefik => {
                dynamic(cluster, &name, "traefik.io", "v1alpha1", "IngressRouteTCP").await?
            }
            (Some(ingress), _) => {
                ingress_object(cluster, &name, ingress.ingress_class_name.as_deref()).await?
            }
            (None, _) => {
                dynamic(
                    cluster,
                    &name,
                    "gateway.networking.k8s.io",
                    "v1",
                    "TLSRoute",
                )
                .await?
            }
        };
        found.leftovers = leftovers(cluster, &name, &found.kind).await;
        Ok(found)
    };
    let exposed =
        control_plane.ingress.as_ref().is_some_and(|i| i.deploy) || control_plane.gateway.is_some();
    if !exposed {
        return None;
    }
    Some(within_deadline("reading the front door's objects", look).await)
}

async fn ingress_object(cluster: &Management, name: &str, class: Option<&str>) -> Seen<FrontDoor> {
    let api: Api<Ingress> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let found = api.get_opt(name).await.map_err(|e| unseen(&e))?;
    let class = match class {
        Some(class) => Some((class.to_owned(), class_exists(&cluster.client, class).await)),
        None => None,
    };
    let annotations = found
        .as_ref()
        .map(|i| i.annotations().clone())
        .unwrap_or_default();
    let ours = class.as_ref().is_some_and(|(c, _)| c == "steward");
    let asked = annotations
        .iter()
        .any(|(k, v)| k.ends_with("/ssl-passthrough") && v == "true");
    Ok(FrontDoor {
        kind: "Ingress".to_owned(),
        object_exists: found.is_some(),
        class,
        passthrough: asked || ours,
        accepted: None,
        leftovers: Vec::new(),
    })
}

async fn class_exists(client: &Client, class: &str) -> bool {
    let api: Api<IngressClass> = Api::all(client.clone());
    // Without the right to look, assume the best: the connection tells the truth.
    api.get_opt(class)
        .await
        .map_or(true, |found| found.is_some())
}

fn api_of(cluster: &Management, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(cluster.client.clone(), &cluster.namespace, &resource)
}

async fn dynamic(
    cluster: &Management,
    name: &str,
    group: &str,
    version: &str,
    kind: &str,
) -> Seen<FrontDoor> {
    let found = api_of(cluster, group, version, kind)
        .get_opt(name)
        .await
        .map_err(|e| unseen(&e))?;
    let data = found.as_ref().map(|f| f.data.clone()).unwrap_or_default();
    let passthrough =
        kind == "TLSRoute" || data.pointer("/spec/tls/passthrough") == Some(&true.into());
    let parents = data
        .pointer("/status/parents")
        .and_then(serde_json::Value::as_array);
    let accepted = parents.map(|parents| {
        !parents.is_empty()
            && parents.iter().all(|p| {
                let conditions = p["conditions"].as_array().cloned().unwrap_or_default();
                conditions
                    .iter()
                    .any(|c| c["type"] == "Accepted" && c["status"] == "True")
            })
    });
    Ok(FrontDoor {
        kind: kind.to_owned(),
        object_exists: found.is_some(),
        class: None,
        passthrough,
        accepted,
        leftovers: Vec::new(),
    })
}

async fn leftovers(cluster: &Management, name: &str, used: &str) -> Vec<String> {
    let kinds = [
        ("networking.k8s.io", "v1", "Ingress"),
        ("traefik.io", "v1alpha1", "IngressRouteTCP"),
        ("gateway.networking.k8s.io", "v1", "TLSRoute"),
    ];
    let mut found = Vec::new();
    for (group, version, kind) in kinds.into_iter().filter(|k| k.2 != used) {
        if let Ok(Some(_)) = api_of(cluster, group, version, kind).get_opt(name).await {
            found.push(format!("{}/{name}", kind.to_lowercase()));
        }
    }
    found
}
