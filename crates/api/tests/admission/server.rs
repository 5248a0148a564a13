//! A server with our CRDs and policies installed, and manifests to try on it.

#![expect(
    clippy::panic,
    clippy::expect_used,
    reason = "a test's own mistake should stop it where it is"
)]

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use steward_lab::fixture::ApiServer;
use steward_lab::parts::{self, Part, Release};
use steward_lab::progress::Progress;
use tokio::process::Command;
use tokio::sync::OnceCell;

/// Long enough for a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Server {
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

impl Server {
    /// A namespace of this test's own on the server that all tests share.
    pub(crate) async fn new(prefix: &str) -> Result<Self> {
        static INSTALLED: OnceCell<()> = OnceCell::const_new();
        let fixture = ApiServer::shared().await?;
        let client = fixture.client().await?;
        INSTALLED
            .get_or_try_init(|| install(client.clone()))
            .await?;
        let namespace = fixture.namespace(prefix).await?;
        Ok(Self { client, namespace })
    }

    /// The same server, with a namespace that has this metadata besides its name.
    pub(crate) async fn beside(&self, prefix: &str, metadata: &Value) -> Result<Self> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let name = json!({ "metadata": { "generateName": format!("{prefix}-") } });
        let namespace = merged(name, json!({ "metadata": metadata }));
        let made = namespaces
            .create(&PostParams::default(), &serde_json::from_value(namespace)?)
            .await?;
        Ok(Self {
            client: self.client.clone(),
            namespace: made.name_any(),
        })
    }

    /// Adds annotations to the namespace.
    pub(crate) async fn annotate(&self, annotations: &Value) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let change = json!({ "metadata": { "annotations": annotations } });
        let params = PatchParams::default();
        namespaces
            .patch(&self.namespace, &params, &Patch::Merge(&change))
            .await?;
        Ok(())
    }

    /// Creates the object for real.
    pub(crate) async fn create(&self, object: &Value) -> kube::Result<DynamicObject> {
        self.api(object)
            .create(&PostParams::default(), &parse(object))
            .await
    }

    /// What the server says to the object, without keeping it.
    pub(crate) async fn try_out(&self, object: &Value) -> kube::Result<DynamicObject> {
        let dry_run = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        self.api(object).create(&dry_run, &parse(object)).await
    }

    /// Merges a change into the stored object.
    pub(crate) async fn change(
        &self,
        object: &Value,
        change: &Value,
    ) -> kube::Result<DynamicObject> {
        let api = self.api(object);
        api.patch(
            &name(object),
            &PatchParams::default(),
            &Patch::Merge(change),
        )
        .await
    }

    /// Merges a change into the stored object's status.
    pub(crate) async fn report(&self, object: &Value, status: &Value) -> Result<DynamicObject> {
        let api = self.api(object);
        let change = json!({ "status": status });
        let patch = Patch::Merge(&change);
        Ok(api
            .patch_status(&name(object), &PatchParams::default(), &patch)
            .await?)
    }

    /// Fails unless the object is refused with this sentence.
    pub(crate) async fn refuses(&self, object: &Value, sentence: &str) -> Result<()> {
        expect(self.try_out(object).await, sentence)
    }

    fn api(&self, object: &Value) -> Api<DynamicObject> {
        let kind = object["kind"].as_str().unwrap_or_default();
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match kind {
            "TenantControlPlane" => {
                let namespace = object
                    .pointer("/metadata/namespace")
                    .and_then(Value::as_str);
                let namespace = namespace.unwrap_or(&self.namespace);
                Api::namespaced_with(self.client.clone(), namespace, &resource)
            }
            _ => Api::all_with(self.client.clone(), &resource),
        }
    }
}

/// Fails unless the answer is a refusal with this sentence.
pub(crate) fn expect<K: ResourceExt>(answer: kube::Result<K>, sentence: &str) -> Result<()> {
    match answer {
        Ok(object) => bail!("{} was accepted; expected: {sentence}", object.name_any()),
        Err(kube::Error::Api(status)) if status.message.contains(sentence) => Ok(()),
        Err(kube::Error::Api(status)) => {
            bail!("expected: {sentence}\n    but read: {}", status.message)
        }
        Err(error) => Err(error.into()),
    }
}

/// Tries a table of manifests: each line is a name, a change to the base, and the sentence. Each
/// is tried alone, and then kubectl must say the same sentences of all of them.
pub(crate) async fn try_table(
    server: &Server,
    base: fn(&str) -> Value,
    table: &[(&str, &str, &str)],
) -> Result<()> {
    let mut failures = Vec::new();
    for (name, change, sentence) in table {
        if let Err(error) = server.refuses(&base(change), sentence).await {
            failures.push(format!("{name}: {error:#}"));
        }
    }
    let manifests: Vec<_> = table.iter().map(|(_, change, _)| base(change)).collect();
    let said = kubectl_create(server, &manifests).await?;
    for (name, _, sentence) in table {
        if !said.contains(sentence) {
            failures.push(format!("{name}: kubectl doesn't say {sentence}"));
        }
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(anyhow!("{}", failures.join("\n")))
    }
}

/// What kubectl says to these manifests, none of which is kept.
async fn kubectl_create(server: &Server, manifests: &[Value]) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("manifests.yaml");
    let place = |manifest: &Value| {
        let namespace = json!({ "metadata": { "namespace": server.namespace } });
        merged(namespace, manifest.clone()).to_string()
    };
    let texts: Vec<_> = manifests.iter().map(place).collect();
    std::fs::write(&file, texts.join("\n---\n"))?;
    let file = file.display().to_string();
    kubectl(&["create", "--dry-run=server", "--filename", &file]).await
}

/// Runs kubectl and gives back all it says.
pub(crate) async fn kubectl(arguments: &[&str]) -> Result<String> {
    static KUBECTL: OnceCell<PathBuf> = OnceCell::const_new();
    let find = async || tokio::task::spawn_blocking(find_kubectl).await?;
    let program = KUBECTL.get_or_try_init(find).await?;
    let kubeconfig = ApiServer::shared().await?.kubeconfig();
    let mut command = Command::new(program);
    let output = command
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(arguments)
        .output()
        .await?;
    Ok(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

/// Where the fixture's programs come from: the folder that is named, or else the parts' cache.
fn find_kubectl() -> Result<PathBuf> {
    let named = std::env::var_os("STEWARD_LAB_BIN_DIR").map(PathBuf::from);
    let options = parts::Options::from_env()?.with_bin_dir(named);
    let kubernetes = Part::Kubernetes(Release::default());
    let programs = parts::ensure(kubernetes, &options, &Progress::stderr())?;
    Ok(programs.path("kubectl")?.to_owned())
}

/// A tenant that is accepted, with a change merged into it.
pub(crate) fn tenant(change: &str) -> Value {
    let base = json!({
        "apiVersion": "steward.butlerlabs.dev/v1alpha1",
        "kind": "TenantControlPlane",
        "metadata": { "name": "blue" },
        "spec": {
            "kubernetes": { "version": "v1.36.3" },
            "controlPlane": { "service": { "serviceType": "ClusterIP" } },
        },
    });
    merged(base, yaml(change))
}

/// A datastore that is accepted, with a change merged into it.
pub(crate) fn datastore(change: &str) -> Value {
    let base = json!({
        "apiVersion": "steward.butlerlabs.dev/v1alpha1",
        "kind": "DataStore",
        "metadata": { "name": "gold" },
        "spec": { "driver": "etcd" },
    });
    merged(base, yaml(change))
}

pub(crate) fn yaml(text: &str) -> Value {
    if text.is_empty() {
        return json!({});
    }
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn merged(mut base: Value, change: Value) -> Value {
    match (&mut base, change) {
        (Value::Object(fields), Value::Object(changes)) => {
            for (name, change) in changes {
                let old = fields.remove(&name).unwrap_or(Value::Null);
                fields.insert(name, merged(old, change));
            }
            base
        }
        (_, change) => change,
    }
}

fn parse(object: &Value) -> DynamicObject {
    serde_json::from_value(object.clone()).expect("a test's manifest is an object")
}

fn name(object: &Value) -> String {
    object["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

async fn install(client: Client) -> Result<()> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in steward_api::crds::all()? {
        crds.create(&PostParams::default(), &crd)
            .await
            .context("install a CRD")?;
    }
    install_policies(&client).await?;
    effective(client).await
}

/// Installs what CRDs can't say.
pub(crate) async fn install_policies(client: &Client) -> Result<()> {
    for object in steward_api::rules::admission_policies() {
        let object: DynamicObject = serde_json::from_value(object)?;
        let kind = object.types.clone().unwrap_or_default().kind;
        let gvk = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", &kind);
        let plural = if kind.ends_with("Policy") {
            "validatingadmissionpolicies"
        } else {
            "validatingadmissionpolicybindings"
        };
        let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        api.create(&PostParams::default(), &object)
            .await
            .context("install a policy")?;
    }
    Ok(())
}

/// A CRD is served, and a policy enforced, a moment after it was created.
async fn effective(client: Client) -> Result<()> {
    let server = Server {
        client,
        namespace: "default".into(),
    };
    let nameless = tenant("spec: {controlPlane: {ingress: {}}}");
    let datastore = datastore("spec: {managed: {}}");
    steward_lab::poll(PATIENCE, async || {
        server
            .refuses(&nameless, "neither a hostname nor a domain")
            .await?;
        server
            .try_out(&datastore)
            .await
            .map_err(anyhow::Error::from)
    })
    .await
    .map(|_| ())
}
