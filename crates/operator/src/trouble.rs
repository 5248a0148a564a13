//! Why pods do not start, read from what the cluster says about them.
//!
//! Owns: picking the one message that helps. Refuses: reading logs, and looking at pods of a Deployment
//! that is complete.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;
use steward_api::conditions::Reason;
use steward_plan::PodTrouble;

use crate::{apply::Versions, error::Error};

const PODS: &str = "pods";

/// Looks for what stops the pods with these labels. `workload` is their `Deployment` or `StatefulSet`.
///
/// # Errors
/// The client's.
pub async fn find(
    client: &Client,
    versions: &Versions,
    namespace: &str,
    labels: &str,
    workload: &Value,
) -> Result<Option<PodTrouble>, Error> {
    if crate::tenant::rollout(workload).done() {
        return Ok(None);
    }
    if let Some(trouble) = refused(workload) {
        return Ok(Some(trouble));
    }
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let listed = api.list(&versions.list(PODS, labels)).await;
    let pods = listed.map_err(|error| {
        versions.forget(PODS);
        Error::Read {
            what: format!("pods with labels {labels}"),
            error,
        }
    })?;
    versions.reached(PODS, pods.metadata.resource_version.as_deref());
    Ok(pods
        .items
        .iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none())
        .find_map(in_pod))
}

/// Pods that were never made: quota, admission policy.
fn refused(workload: &Value) -> Option<PodTrouble> {
    let conditions = workload["status"]["conditions"].as_array()?;
    let failure = conditions
        .iter()
        .find(|c| c["type"] == "ReplicaFailure" && c["status"] == "True")?;
    Some(PodTrouble {
        reason: Reason::QuotaExceeded,
        message: failure["message"]
            .as_str()
            .unwrap_or("pods can't be made")
            .to_owned(),
    })
}

fn in_pod(pod: &Pod) -> Option<PodTrouble> {
    let status = pod.status.as_ref()?;
    let unscheduled = status
        .conditions
        .iter()
        .flatten()
        .find(|c| c.type_ == "PodScheduled" && c.status == "False")
        .map(|c| PodTrouble {
            reason: Reason::Unschedulable,
            message: format!(
                "pod {}: {}",
                pod.name_any(),
                c.message.as_deref().unwrap_or("no node takes it")
            ),
        });
    let mut containers = status
        .init_container_statuses
        .iter()
        .flatten()
        .chain(status.container_statuses.iter().flatten());
    unscheduled.or_else(|| containers.find_map(|container| in_container(pod, container)))
}

fn in_container(pod: &Pod, container: &ContainerStatus) -> Option<PodTrouble> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let reason = match waiting.reason.as_deref()? {
        "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => {
            Reason::ImageUnavailable
        }
        "CrashLoopBackOff"
        | "CreateContainerError"
        | "CreateContainerConfigError"
        | "RunContainerError" => Reason::ContainerCrashing,
        _ => return None,
    };
    let said = waiting
        .message
        .as_deref()
        .or(waiting.reason.as_deref())
        .unwrap_or_default();
    Some(PodTrouble {
        reason,
        message: format!(
            "pod {}, container {}: {said}",
            pod.name_any(),
            container.name
        ),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(status: &Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "t-1"}, "status": status})).unwrap()
    }

    #[test]
    fn a_missing_image_is_named_with_its_container() {
        let pod = pod(
            &json!({"containerStatuses": [{"name": "kube-apiserver", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"waiting": {"reason": "ImagePullBackOff", "message": "v9.9.9: not found"}}}]}),
        );
        let trouble = in_pod(&pod).unwrap();
        assert_eq!(trouble.reason, Reason::ImageUnavailable);
        assert_eq!(
            trouble.message,
            "pod t-1, container kube-apiserver: v9.9.9: not found"
        );
    }

    #[test]
    fn a_pod_that_is_just_starting_is_no_trouble() {
        let pod = pod(
            &json!({"containerStatuses": [{"name": "a", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"waiting": {"reason": "ContainerCreating"}}}]}),
        );
        assert_eq!(in_pod(&pod), None);
    }

    #[test]
    fn a_quota_is_told_in_the_cluster_s_own_words() {
        let deployment = json!({"status": {"conditions": [{"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: small"}]}});
        assert_eq!(
            refused(&deployment).unwrap().message,
            "exceeded quota: small"
        );
    }
}
