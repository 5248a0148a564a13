//! `steward install`: the chart inside this program, applied and waited for.

use std::process::ExitCode;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use steward_api::DataStore;

use crate::args::{Cli, Install, Manifest};
use crate::chart::{self, Given, Release};
use crate::cluster::{Management, not_served};
use crate::output::{Health, manifest};
use crate::problem::Problem;

/// Where the documentation says it lives.
const NAMESPACE: &str = "steward-system";

/// Who we are to server-side apply: the name that Helm goes by, so that either can go on
/// where the other has been, without a conflict over fields.
const MANAGER: &str = "helm";

/// The one kind the chart makes only where it is served.
const GATEWAY_CLASS: &str = "gateway.networking.k8s.io/v1/GatewayClass";

/// Kinds of the chart that belong to no namespace.
const CLUSTER_WIDE: &[&str] = &[
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "DataStore",
    "GatewayClass",
    "IngressClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
];

/// Prints, or applies and waits.
pub async fn run(cli: &Cli, args: &Install) -> Result<ExitCode, Problem> {
    let given = given(args)?;
    let namespace = cli.namespace.as_deref().unwrap_or(NAMESPACE);
    let connected = Management::connect(cli).await;
    let served = match &connected {
        Ok(management) => served(&management.client).await?,
        Err(_) => Vec::new(),
    };
    let release = Release {
        name: &args.release,
        namespace,
        served: &served,
    };
    let objects = chart::render(&release, &given).map_err(|e| Problem::Argument(e.to_string()))?;
    let crds = chart::crds().map_err(|e| Problem::Argument(e.to_string()))?;
    if args.dry_run {
        print(crds.iter().chain(&objects), args.output)?;
        return Ok(ExitCode::SUCCESS);
    }
    let client = connected?.client;
    definitions(&client, &crds).await?;
    make_namespace(&client, namespace).await?;
    for object in &objects {
        apply(&client, object, namespace).await?;
    }
    said(&format!("{} objects applied in {namespace}", objects.len()));
    wait(&client, args, namespace, &objects).await?;
    Ok(ExitCode::SUCCESS)
}

fn given(args: &Install) -> Result<Given, Problem> {
    let mut files = Vec::new();
    for file in &args.values {
        let problem = |why: String| Problem::File {
            file: file.display().to_string(),
            why,
        };
        let text = std::fs::read_to_string(file).map_err(|e| problem(e.to_string()))?;
        files.push(
            serde_saphyr::from_str::<Value>(&text)
                .map_err(|e| problem(format!("this is not YAML: {e}")))?,
        );
    }
    Ok(Given {
        files,
        set: args.set.clone(),
        set_string: args.set_string.clone(),
    })
}

fn print<'o>(objects: impl Iterator<Item = &'o Value>, output: Manifest) -> Result<(), Problem> {
    if output == Manifest::Json {
        let items: Vec<&Value> = objects.collect();
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
        out!("{}", manifest(&list, output)?);
        return Ok(());
    }
    for object in objects {
        out!("---\n{}", manifest(object, output)?);
    }
    Ok(())
}

fn said(text: &str) {
    outln!("{} {text}", Health::Good.painted());
}

/// Of what the chart asks about, what the cluster serves. Also the first question we ask
/// it, so that a cluster that does not answer is said to be one.
async fn served(client: &Client) -> Result<Vec<String>, Problem> {
    match client
        .list_api_group_resources("gateway.networking.k8s.io/v1")
        .await
    {
        Ok(found) if found.resources.iter().any(|r| r.kind == "GatewayClass") => {
            Ok(vec![GATEWAY_CLASS.to_owned()])
        }
        Ok(_) => Ok(Vec::new()),
        Err(error) if not_served(&error) => Ok(Vec::new()),
        Err(error) => Err(Problem::from_api("ask the cluster what it serves", error)),
    }
}

async fn definitions(client: &Client, crds: &[Value]) -> Result<(), Problem> {
    for crd in crds {
        apply(client, crd, NAMESPACE).await?;
    }
    for crd in crds {
        let name = crd["metadata"]["name"].as_str().unwrap_or_default();
        let api = api_of(client, crd, NAMESPACE);
        poll(30, name, NAMESPACE, async || {
            let found = api.get(name).await.map_err(|e| e.to_string())?;
            let conditions = found
                .data
                .pointer("/status/conditions")
                .and_then(Value::as_array);
            let established = conditions.into_iter().flatten();
            let mut established =
                established.filter(|c| c["type"] == "Established" && c["status"] == "True");
            established
                .next()
                .map(|_| ())
                .ok_or_else(|| "not established yet".to_owned())
        })
        .await?;
    }
    said("kinds TenantControlPlane and DataStore are known");
    Ok(())
}

async fn make_namespace(client: &Client, namespace: &str) -> Result<(), Problem> {
    let api: Api<Namespace> = Api::all(client.clone());
    let body =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
    let made = api
        .patch(
            namespace,
            &PatchParams::apply(MANAGER),
            &Patch::Apply(&body),
        )
        .await;
    made.map_err(|e| Problem::from_api(&format!("make namespace {namespace}"), e))?;
    Ok(())
}

fn api_of(client: &Client, object: &Value, namespace: &str) -> Api<DynamicObject> {
    let text = |key: &str| object[key].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion")
        .split_once('/')
        .unwrap_or(("", text("apiVersion")));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("kind")));
    if CLUSTER_WIDE.contains(&text("kind")) {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), namespace, &resource)
    }
}

/// Server-side apply; force, because an earlier Helm release may have owned the fields.
async fn apply(client: &Client, object: &Value, namespace: &str) -> Result<(), Problem> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let kind = object["kind"].as_str().unwrap_or_default();
    let params = PatchParams::apply(MANAGER).force();
    let applied = api_of(client, object, namespace)
        .patch(name, &params, &Patch::Apply(object))
        .await;
    applied.map_err(|e| Problem::from_api(&format!("apply {kind} {name}"), e))?;
    Ok(())
}

async fn wait(
    client: &Client,
    args: &Install,
    namespace: &str,
    objects: &[Value],
) -> Result<(), Problem> {
    if args.timeout == 0 {
        return Ok(());
    }
    let name_of = |o: &Value| {
        o["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    for object in objects {
        let name = name_of(object);
        match object["kind"].as_str() {
            Some("Deployment") => {
                let api: Api<Deployment> = Api::namespaced(client.clone(), namespace);
                poll(
                    args.timeout,
                    &format!("Deployment {name}"),
                    namespace,
                    async || {
                        let status = api.get(&name).await.map_err(|e| e.to_string())?;
                        let wanted = status.spec.and_then(|s| s.replicas).unwrap_or(1);
                        let generation = status.metadata.generation;
                        let status = status.status.unwrap_or_default();
                        // Until then the numbers are those of before.
                        if status.observed_generation < generation {
                            return Err("its controller has not seen it yet".to_owned());
                        }
                        let ready = status
                            .updated_replicas
                            .min(status.ready_replicas)
                            .unwrap_or(0);
                        enough(ready, wanted)
                    },
                )
                .await?;
                said(&format!("Deployment {name} runs"));
            }
            Some("DaemonSet") => {
                let api: Api<DaemonSet> = Api::namespaced(client.clone(), namespace);
                poll(
                    args.timeout,
                    &format!("DaemonSet {name}"),
                    namespace,
                    async || {
                        let status = api.get(&name).await.map_err(|e| e.to_string())?;
                        let status = status.status.unwrap_or_default();
                        enough(status.number_ready, status.desired_number_scheduled)
                    },
                )
                .await?;
                said(&format!("DaemonSet {name} runs"));
            }
            _ => {}
        }
    }
    datastores(client, args, namespace, objects).await
}

fn enough(ready: i32, wanted: i32) -> Result<(), String> {
    if ready >= wanted {
        Ok(())
    } else {
        Err(format!("{ready} of {wanted} pods ready"))
    }
}

async fn datastores(
    client: &Client,
    args: &Install,
    namespace: &str,
    objects: &[Value],
) -> Result<(), Problem> {
    let api: Api<DataStore> = Api::all(client.clone());
    let ours = objects.iter().filter(|o| o["kind"] == "DataStore");
    for name in ours.filter_map(|o| o["metadata"]["name"].as_str()) {
        poll(
            args.timeout,
            &format!("DataStore {name}"),
            namespace,
            async || {
                let found = api.get(name).await.map_err(|e| e.to_string())?;
                let conditions = found.status.unwrap_or_default().conditions;
                match conditions.iter().find(|c| c.type_ == "Ready") {
                    Some(c) if c.status == "True" => Ok(()),
                    Some(c) => Err(c.message.clone()),
                    None => Err("the operator has not looked at it yet".to_owned()),
                }
            },
        )
        .await?;
        said(&format!("DataStore {name} is ready"));
    }
    let classes = served_classes(client).await;
    let class = classes
        .first()
        .map_or(String::new(), |class| format!(" --class {class}"));
    outln!("\nNext: steward create NAME --hostname NAME.k8s.example.com{class}");
    Ok(())
}

async fn served_classes(client: &Client) -> Vec<String> {
    use k8s_openapi::api::networking::v1::IngressClass;
    let api: Api<IngressClass> = Api::all(client.clone());
    let found = api.list(&ListParams::default()).await;
    found
        .map(|l| l.iter().map(ResourceExt::name_any).collect())
        .unwrap_or_default()
}

/// Looks twice a second until it is as it should be; tells when what it sees changes.
async fn poll(
    seconds: u64,
    what: &str,
    namespace: &str,
    look: impl AsyncFn() -> Result<(), String>,
) -> Result<(), Problem> {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(seconds);
    let mut told = String::new();
    loop {
        let Err(seen) = look().await else {
            return Ok(());
        };
        if seen != told {
            outln!("  {what}: {seen}");
            told = seen;
        }
        if tokio::time::Instant::now() > deadline {
            return Err(Problem::NotUp {
                what: what.to_owned(),
                namespace: namespace.to_owned(),
                seconds,
                last: told,
            });
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
