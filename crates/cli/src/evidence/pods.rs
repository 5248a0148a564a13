//! The control plane's own objects: pods and Deployment.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use steward_doctor::{Seen, Unseen};

use super::{near, unseen};
use crate::cluster::Management;

/// What the pods say.
pub(super) struct Pods {
    pub(super) unready: Vec<String>,
    pub(super) missing_images: Vec<String>,
}

/// What the Deployment says.
pub(super) struct Workload {
    pub(super) refused: Option<String>,
    pub(super) reconciler_off: Seen<bool>,
}

/// Looks at the pods of a tenant.
pub(super) async fn pods(cluster: &Management, name: &str) -> Seen<Pods> {
    let api: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let wanted = ListParams::default().labels(&format!("steward.butlerlabs.dev/name={name}"));
    let found = api.list(&wanted).await.map_err(|e| unseen(&e))?;
    let living: Vec<&Pod> = found
        .iter()
        .filter(|p| p.metadata.deletion_timestamp.is_none())
        .collect();
    Ok(Pods {
        unready: living.iter().filter_map(|p| trouble(p)).collect(),
        missing_images: living.iter().flat_map(|p| missing_images(p)).collect(),
    })
}

/// Why a pod is not ready, if it is not.
pub(crate) fn trouble(pod: &Pod) -> Option<String> {
    let status = pod.status.clone().unwrap_or_default();
    let containers = status.container_statuses.unwrap_or_default();
    if let Some(container) = containers.iter().find(|c| !c.ready) {
        return Some(format!(
            "{}: {} {}",
            pod.name_any(),
            container.name,
            why(container)
        ));
    }
    let conditions = status.conditions.unwrap_or_default();
    let pending = conditions
        .iter()
        .find(|c| c.type_ == "PodScheduled" && c.status == "False")?;
    Some(format!(
        "{}: {}",
        pod.name_any(),
        pending.message.clone().unwrap_or_default()
    ))
}

fn why(container: &ContainerStatus) -> String {
    let state = container.state.clone().unwrap_or_default();
    let ended = container.last_state.clone().unwrap_or_default().terminated;
    let reason = state.waiting.and_then(|w| w.reason);
    let reason = reason.or_else(|| state.terminated.and_then(|t| t.reason));
    let reason = reason.unwrap_or_else(|| "is not ready".to_owned());
    match ended {
        Some(ended) => format!(
            "{reason}, ended {} times, last with {}",
            container.restart_count, ended.exit_code
        ),
        None => reason,
    }
}

fn missing_images(pod: &Pod) -> Vec<String> {
    let containers = pod
        .status
        .iter()
        .flat_map(|s| s.container_statuses.iter().flatten());
    let waiting = containers.filter_map(|c| {
        let reason = c.state.as_ref()?.waiting.as_ref()?.reason.clone()?;
        let pulling = [
            "ErrImagePull",
            "ImagePullBackOff",
            "InvalidImageName",
            "ErrImageNeverPull",
        ];
        pulling
            .contains(&reason.as_str())
            .then(|| format!("{}: {reason}", c.image))
    });
    waiting.collect()
}

/// Looks at the Deployment of a tenant.
pub(super) async fn workload(cluster: &Management, name: &str) -> Workload {
    let api: Api<Deployment> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let look = async { api.get_opt(name).await.map_err(|e| unseen(&e)) };
    match near("the Deployment", look).await {
        Err(why) => Workload {
            refused: None,
            reconciler_off: Err(why),
        },
        Ok(None) => {
            let why = Unseen::NotLooked("there is no Deployment yet".to_owned());
            Workload {
                refused: None,
                reconciler_off: Err(why),
            }
        }
        Ok(Some(found)) => Workload {
            refused: refused(&found),
            reconciler_off: Ok(reconciler_off(&found)),
        },
    }
}

fn refused(deployment: &Deployment) -> Option<String> {
    let conditions = deployment.status.as_ref()?.conditions.as_ref()?;
    let failure = conditions
        .iter()
        .find(|c| c.type_ == "ReplicaFailure" && c.status == "True")?;
    failure.message.clone()
}

fn reconciler_off(deployment: &Deployment) -> bool {
    let spec = deployment
        .spec
        .as_ref()
        .and_then(|s| s.template.spec.as_ref());
    let containers = spec
        .iter()
        .flat_map(|s| &s.containers)
        .filter(|c| c.name == "kube-apiserver");
    let mut words =
        containers.flat_map(|c| c.args.iter().flatten().chain(c.command.iter().flatten()));
    words.any(|word| word == "--endpoint-reconciler-type=none")
}
