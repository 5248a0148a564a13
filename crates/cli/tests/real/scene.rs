//! An API server with our kinds, and the program.

use std::path::PathBuf;
use std::process::{Command, Output};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use steward_lab::fixture::ApiServer;

/// The server that these tests share, with our kinds on it.
pub(crate) async fn server() -> &'static ApiServer {
    let server = ApiServer::shared().await.unwrap();
    let api: Api<CustomResourceDefinition> = Api::all(server.client().await.unwrap());
    for crd in steward_api::crds::all().unwrap() {
        define(&api, &crd).await;
    }
    server
}

/// Makes a kind known, and waits until it is.
pub(crate) async fn define(api: &Api<CustomResourceDefinition>, crd: &CustomResourceDefinition) {
    let name = crd.name_any();
    // Applying also when somebody else just has is how kubectl does it, too.
    api.patch(
        &name,
        &PatchParams::apply("test").force(),
        &Patch::Apply(crd),
    )
    .await
    .unwrap();
    let established = kube::runtime::wait::conditions::is_crd_established();
    let waiting = kube::runtime::wait::await_condition(api.clone(), &name, established);
    tokio::time::timeout(std::time::Duration::from_mins(1), waiting)
        .await
        .unwrap()
        .unwrap();
}

/// A program run to its end.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// `steward`, knowing no cluster.
pub(crate) fn alone() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steward"));
    command
        .env_remove("KUBECONFIG")
        .env("HOME", "/nonexistent")
        .env_remove("KUBERNETES_SERVICE_HOST");
    command
}

/// `steward …` against a server, run beside the test so that its runtime is not held up.
pub(crate) async fn steward(kubeconfig: PathBuf, words: &[&str]) -> Ended {
    let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
    let ended = tokio::task::spawn_blocking(move || {
        alone()
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(words)
            .output()
            .unwrap()
    });
    ended.await.unwrap().into()
}

/// A small tenant.
pub(crate) fn tenant(name: &str) -> Value {
    json!({
        "apiVersion": "steward.butlerlabs.dev/v1alpha1", "kind": "TenantControlPlane",
        "metadata": { "name": name },
        "spec": {
            "kubernetes": { "version": "v1.36.3" },
            "controlPlane": { "service": { "serviceType": "LoadBalancer" } },
        },
    })
}

/// Makes an object of any kind, as `kubectl create` would.
pub(crate) async fn create(
    client: &Client,
    namespace: &str,
    manifest: &Value,
    dry: bool,
) -> Result<(), String> {
    let text = |key: &str| manifest[key].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion")
        .split_once('/')
        .unwrap_or(("", text("apiVersion")));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("kind")));
    let api: Api<DynamicObject> = if text("kind") == "DataStore" {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), namespace, &resource)
    };
    let mut manifest = manifest.clone();
    manifest["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("namespace");
    let params = kube::api::PostParams {
        dry_run: dry,
        field_manager: None,
    };
    // Strict: a field that would be dropped in silence is an error here.
    let object: DynamicObject = serde_json::from_value(manifest).unwrap();
    let body = serde_json::to_vec(&object).unwrap();
    let mut request = kube::core::Request::new(api.resource_url())
        .create(&params, body)
        .unwrap();
    let uri = request.uri().to_string();
    let mark = if uri.contains('?') { '&' } else { '?' };
    *request.uri_mut() = format!("{uri}{mark}fieldValidation=Strict")
        .parse()
        .unwrap();
    client
        .request::<DynamicObject>(request)
        .await
        .map(|_| ())
        .map_err(|e| e.to_string())
}
