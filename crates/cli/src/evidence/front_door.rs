//! The front door's objects: routes, class, our own gateway, and what is left of other modes.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::networking::v1::{Ingress, IngressClass};
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt};
use serde_json::Value;
use steward_api::TenantControlPlane;
use steward_api::tenant_control_plane::{IngressControllerType, IngressSpec};
use steward_doctor::{FrontDoor, Seen, Workload};

use super::{near, unseen};
use crate::cluster::Management;

/// The controller that our own gateway is.
const OURS: &str = "steward.butlerlabs.dev/gateway";

/// The name that the chart gives its class.
const OUR_CLASS: &str = "steward";

/// Looks at it, for a tenant that has one.
pub(super) async fn look(
    cluster: &Management,
    tenant: &TenantControlPlane,
) -> Option<Seen<FrontDoor>> {
    let control_plane = &tenant.spec.control_plane;
    let name = tenant.name_any();
    let deployed = control_plane.ingress.as_ref().is_some_and(|i| i.deploy);
    if !deployed && control_plane.gateway.is_none() {
        return None;
    }
    let hostname = tenant.public_names().map(|n| n.api).unwrap_or_default();
    let looking = async {
        let mut found = match &control_plane.ingress {
            Some(spec) if spec.controller_type == IngressControllerType::Traefik => {
                route(cluster, &name, "traefik.io", "v1alpha1", "IngressRouteTCP").await?
            }
            Some(spec) => ingress(cluster, &name, spec).await?,
            None => {
                route(
                    cluster,
                    &name,
                    "gateway.networking.k8s.io",
                    "v1",
                    "TLSRoute",
                )
                .await?
            }
        };
        found.leftovers = leftovers(cluster, &found.kind, &name, &hostname).await;
        Ok(found)
    };
    Some(near("the front door's objects", looking).await)
}

async fn ingress(cluster: &Management, name: &str, spec: &IngressSpec) -> Seen<FrontDoor> {
    let api: Api<Ingress> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let found = api.get_opt(name).await.map_err(|e| unseen(&e))?;
    let class = spec.ingress_class_name.clone();
    let known = match &class {
        Some(class) => class_of(&cluster.client, class).await,
        None => Class::Unknown,
    };
    // A class that is gone can't say whose it was: its name, or the controller's type, does.
    let ours = match &known {
        Class::There(controller) => controller == OURS,
        Class::Missing | Class::Unknown => {
            spec.controller_type == IngressControllerType::Steward
                || class.as_deref() == Some(OUR_CLASS)
        }
    };
    let gateway = if ours {
        gateway(&cluster.client).await
    } else {
        None
    };
    let annotations = found
        .as_ref()
        .map(|i| i.annotations().clone())
        .unwrap_or_default();
    let asked = |key: &str| annotations.get(key).is_some_and(|v| v == "true");
    let passthrough = match spec.controller_type {
        IngressControllerType::Haproxy => asked("haproxy.org/ssl-passthrough"),
        IngressControllerType::HaproxyIngress => asked("haproxy-ingress.github.io/ssl-passthrough"),
        IngressControllerType::Nginx => asked("nginx.ingress.kubernetes.io/ssl-passthrough"),
        // Ours never opens TLS; of others we know no words, and the connection tells.
        IngressControllerType::Steward
        | IngressControllerType::Generic
        | IngressControllerType::Traefik => true,
    };
    Ok(FrontDoor {
        kind: "Ingress".to_owned(),
        object_exists: found.is_some(),
        class: class.map(|class| (class, !matches!(known, Class::Missing))),
        ours,
        gateway,
        passthrough,
        accepted: None,
        leftovers: Vec::new(),
    })
}

enum Class {
    There(String),
    Missing,
    Unknown,
}

async fn class_of(client: &Client, class: &str) -> Class {
    let api: Api<IngressClass> = Api::all(client.clone());
    match api.get_opt(class).await {
        Ok(Some(found)) => Class::There(found.spec.and_then(|s| s.controller).unwrap_or_default()),
        Ok(None) => Class::Missing,
        // Without the right to look, assume the best: the connection tells the truth.
        Err(_) => Class::Unknown,
    }
}

/// Our own gateway, wherever it was installed.
async fn gateway(client: &Client) -> Option<Workload> {
    let ours = ListParams::default()
        .labels("app.kubernetes.io/name=steward,app.kubernetes.io/component=gateway");
    let deployments: Api<Deployment> = Api::all(client.clone());
    if let Some(found) = deployments.list(&ours).await.ok()?.items.into_iter().next() {
        return Some(super::management::deployment(&found));
    }
    let sets: Api<DaemonSet> = Api::all(client.clone());
    let found = sets.list(&ours).await.ok()?.items.into_iter().next()?;
    let status = found.status.clone().unwrap_or_default();
    Some(Workload {
        object: format!("daemonset/{}", found.name_any()),
        namespace: found.namespace().unwrap_or_default(),
        desired: status.desired_number_scheduled,
        ready: status.number_ready,
    })
}

async fn route(
    cluster: &Management,
    name: &str,
    group: &str,
    version: &str,
    kind: &str,
) -> Seen<FrontDoor> {
    let mut found = cluster.dynamic(group, version, kind).get_opt(name).await;
    if kind == "TLSRoute" && matches!(&found, Ok(None)) {
        // Clusters with an older Gateway API serve only this one.
        found = cluster
            .dynamic(group, "v1alpha2", kind)
            .get_opt(name)
            .await
            .or(Ok(None));
    }
    let found = found.map_err(|e| unseen(&e))?;
    let data = found.as_ref().map(|f| f.data.clone()).unwrap_or_default();
    let passthrough =
        kind == "TLSRoute" || data.pointer("/spec/tls/passthrough") == Some(&true.into());
    let parents = data.pointer("/status/parents").and_then(Value::as_array);
    let accepted = parents.map(|parents| {
        let taken = |p: &Value| {
            let conditions = p["conditions"].as_array();
            conditions
                .into_iter()
                .flatten()
                .any(|c| c["type"] == "Accepted" && c["status"] == "True")
        };
        !parents.is_empty() && parents.iter().all(taken)
    });
    Ok(FrontDoor {
        kind: kind.to_owned(),
        object_exists: found.is_some(),
        passthrough,
        accepted,
        ..FrontDoor::default()
    })
}

/// Objects, wherever they are, that lead the same hostname somewhere, and objects of
/// other modes with the tenant's own name. As `kind/name`, with `-n` for those elsewhere.
async fn leftovers(cluster: &Management, used: &str, name: &str, hostname: &str) -> Vec<String> {
    let kinds = [
        ("networking.k8s.io", "v1", "Ingress"),
        ("traefik.io", "v1alpha1", "IngressRouteTCP"),
        ("gateway.networking.k8s.io", "v1", "TLSRoute"),
    ];
    let mut found = Vec::new();
    for (group, version, kind) in kinds {
        for object in everywhere(cluster, group, version, kind).await {
            let spec = object.data["spec"].to_string();
            let claims = !hostname.is_empty()
                && (spec.contains(&format!("\"{hostname}\""))
                    || spec.contains(&format!("`{hostname}`")));
            let namespace = object.namespace().unwrap_or_default();
            let of = object.labels().get("steward.butlerlabs.dev/name");
            let ours = namespace == cluster.namespace
                && (object.name_any() == name || of.is_some_and(|of| of == name));
            // Another tenant's is told as a hostname that is claimed twice.
            let strange = if ours {
                kind != used
            } else {
                claims && of.is_none()
            };
            if strange {
                let (kind, object) = (kind.to_lowercase(), object.name_any());
                found.push(format!("{kind}/{object} -n {namespace}"));
            }
        }
    }
    found
}

/// All objects of a kind: of the whole cluster, or of the namespace where that is all we
/// may see. A kind that is not served has none.
async fn everywhere(
    cluster: &Management,
    group: &str,
    version: &str,
    kind: &str,
) -> Vec<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let all: Api<DynamicObject> = Api::all_with(cluster.client.clone(), &resource);
    let everything = ListParams::default();
    let mut listed = all.list(&everything).await;
    if matches!(&listed, Err(kube::Error::Api(status)) if status.code == 403) {
        listed = cluster
            .dynamic(group, version, kind)
            .list(&everything)
            .await;
    }
    listed.map(|l| l.items).unwrap_or_default()
}
