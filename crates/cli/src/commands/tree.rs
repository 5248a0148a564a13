//! `steward tree`: what a tenant consists of in the management cluster, with its
//! health.

use std::process::ExitCode;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use k8s_openapi::api::networking::v1::Ingress;
use kube::api::{Api, ListParams, PartialObjectMeta};
use kube::{Resource, ResourceExt};

use crate::cluster::Management;
use crate::output::Health;
use crate::problem::Problem;

/// Prints the tree.
pub async fn run(management: &Management, name: &str) -> Result<ExitCode, Problem> {
    let tenant = management.tenant(name).await?;
    let conditions = tenant.status.map(|s| s.conditions).unwrap_or_default();
    anstream::println!("TenantControlPlane {}/{name}", management.namespace);
    for condition in &conditions {
        let good = condition.status == "True" || condition.type_ == "Progressing";
        let health = if good { Health::Good } else { Health::Bad };
        let style = health.style();
        anstream::println!(
            "├─ {style}{}{style:#} {}: {}",
            health.sign(),
            condition.type_,
            condition.message
        );
    }
    let deployments: Api<Deployment> =
        Api::namespaced(management.client.clone(), &management.namespace);
    if let Ok(Some(found)) = deployments.get_opt(name).await {
        let status = found.status.unwrap_or_default();
        let (ready, wanted) = (
            status.ready_replicas.unwrap_or(0),
            status.replicas.unwrap_or(0),
        );
        line(
            "├─",
            if ready >= wanted && wanted > 0 {
                Health::Good
            } else {
                Health::Warn
            },
            &format!("Deployment {name} {ready}/{wanted} ready"),
        );
        pods(management, name).await;
    }
    names::<Service>(management, name, "Service").await;
    names::<Ingress>(management, name, "Ingress").await;
    names::<ConfigMap>(management, name, "ConfigMap").await;
    names::<Secret>(management, name, "Secret").await;
    Ok(ExitCode::SUCCESS)
}

fn line(branch: &str, health: Health, text: &str) {
    let style = health.style();
    anstream::println!("{branch} {style}{}{style:#} {text}", health.sign());
}

fn of_tenant(name: &str) -> ListParams {
    ListParams::default().labels(&format!("steward.butlerlabs.dev/name={name}"))
}

async fn pods(management: &Management, name: &str) {
    let api: Api<Pod> = Api::namespaced(management.client.clone(), &management.namespace);
    let Ok(found) = api.list(&of_tenant(name)).await else {
        return;
    };
    for pod in found {
        let status = pod.status.clone().unwrap_or_default();
        let containers = status.container_statuses.unwrap_or_default();
        let waiting: Vec<String> = containers
            .iter()
            .filter(|c| !c.ready)
            .map(|c| {
                let why = c
                    .state
                    .as_ref()
                    .and_then(|s| s.waiting.as_ref())
                    .and_then(|w| w.reason.clone());
                format!(
                    "{} ({})",
                    c.name,
                    why.unwrap_or_else(|| "not ready".to_owned())
                )
            })
            .collect();
        let health = if waiting.is_empty() && !containers.is_empty() {
            Health::Good
        } else {
            Health::Warn
        };
        line(
            "│  ├─",
            health,
            &format!("Pod {} {}", pod.name_any(), waiting.join(", ")),
        );
    }
}

async fn names<K>(management: &Management, name: &str, kind: &str)
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let api: Api<PartialObjectMeta<K>> =
        Api::namespaced(management.client.clone(), &management.namespace);
    let Ok(found) = api.list_metadata(&of_tenant(name)).await else {
        return;
    };
    for object in found {
        line("├─", Health::Good, &format!("{kind} {}", object.name_any()));
    }
}
