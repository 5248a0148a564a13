//! What a cluster has and this one lacks, played by hand: a cloud, controllers, a garbage collector.

use std::time::Duration;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;
use tokio::task::JoinHandle;

use super::{World, until};

impl World {
    /// Plays the cloud: gives the tenant's Service an address.
    pub(crate) async fn give_address(&self, name: &str, address: &str) {
        let services: Api<Service> = Api::namespaced(self.client.clone(), &self.namespace);
        let patch = json!({"status": {"loadBalancer": {"ingress": [{"ip": address}]}}});
        until("the Service", async || {
            let found = services
                .patch_status(name, &PatchParams::default(), &Patch::Merge(&patch))
                .await;
            found.map(drop).map_err(|error| error.to_string())
        })
        .await;
    }

    /// Plays the Deployment controller: says that the pods run.
    pub(crate) async fn run_pods(&self, name: &str) {
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), &self.namespace);
        until("the Deployment", async || {
            let found = deployments.get(name).await.map_err(|error| error.to_string())?;
            let replicas = found.spec.as_ref().and_then(|spec| spec.replicas);
            let patch = json!({"status": {"observedGeneration": found.metadata.generation, "replicas": replicas,
                "readyReplicas": replicas, "updatedReplicas": replicas, "availableReplicas": replicas}});
            deployments.patch_status(name, &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop).map_err(|error| error.to_string())
        })
        .await;
    }

    /// Plays the cloud in the background: every `LoadBalancer` gets an address.
    pub(crate) fn play_cloud(&self) -> Background {
        let services: Api<Service> = Api::namespaced(self.client.clone(), &self.namespace);
        Background(tokio::spawn(async move {
            loop {
                for service in services
                    .list(&ListParams::default())
                    .await
                    .map(|list| list.items)
                    .unwrap_or_default()
                {
                    let ingress = service
                        .status
                        .and_then(|status| status.load_balancer?.ingress);
                    let wants =
                        service.spec.and_then(|spec| spec.type_).as_deref() == Some("LoadBalancer");
                    if wants && ingress.is_none_or(|all| all.is_empty()) {
                        let patch =
                            json!({"status": {"loadBalancer": {"ingress": [{"ip": "10.40.0.7"}]}}});
                        let name = service.metadata.name.unwrap_or_default();
                        let _ = services
                            .patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch))
                            .await;
                    }
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }))
    }

    /// Plays the garbage collector, which this cluster lacks.
    pub(crate) async fn sweep(&self, name: &str) {
        for (key, _) in self.objects(name).await {
            self.delete_object(&key).await;
        }
    }
}

/// A task that ends with its owner.
pub(crate) struct Background(JoinHandle<()>);

impl Background {
    pub(crate) fn abort(&self) {
        self.0.abort();
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.0.abort();
    }
}
