//! A tenant's objects in the management cluster, by names that read well in a failure.

use std::sync::Arc;

use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::Value;

use super::World;

impl World {
    /// All objects of the tenant in the management cluster: path and content without bookkeeping.
    pub(crate) async fn objects(&self, name: &str) -> Vec<(String, Value)> {
        let engine = steward_operator::apply::Engine::new(
            self.client.clone(),
            steward_operator::apply::Cluster::Management,
            steward_operator::metrics::Metrics::default(),
        );
        let kinds = steward_plan::managed_kinds(&steward_plan::Platform::default());
        let live = engine
            .list(
                &kinds,
                Some(&self.namespace),
                &format!("steward.butlerlabs.dev/name={name}"),
            )
            .await
            .unwrap();
        live.0
            .into_iter()
            .map(|(key, object)| (key.to_string(), Arc::unwrap_or_clone(object)))
            .collect()
    }

    /// Edits an object named as [`World::objects`] names it, as a person with kubectl would.
    pub(crate) async fn patch_object(&self, key: &str, patch: &Value) {
        let (path, name) = path_of(key);
        let params = PatchParams {
            field_manager: Some("kubectl-edit".into()),
            ..PatchParams::default()
        };
        let request = kube::core::Request::new(path)
            .patch(&name, &params, &Patch::Merge(patch))
            .unwrap();
        self.client.request::<Value>(request).await.unwrap();
    }

    pub(crate) async fn delete_object(&self, key: &str) {
        let (path, name) = path_of(key);
        let request = kube::core::Request::new(path)
            .delete(&name, &DeleteParams::default())
            .unwrap();
        self.client.request::<Value>(request).await.unwrap();
    }
}

/// `Kind namespace/name` as path and name.
fn path_of(key: &str) -> (String, String) {
    let (kind, rest) = key.split_once(' ').unwrap();
    let (namespace, name) = rest.split_once('/').unwrap();
    let kind = steward_plan::Kind::ALL
        .into_iter()
        .find(|known| known.names().2 == kind)
        .unwrap();
    (
        steward_operator::apply::path(kind, Some(namespace)),
        name.to_owned(),
    )
}
