//! `steward import`: files or a cluster in, our manifests on standard output, what
//! has no equivalent on standard error.

use std::io::Read;
use std::process::ExitCode;

use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::args::{Cli, Import, Manifest};
use crate::cluster::{Management, not_served};
use crate::import::{Imported, import};
use crate::output::manifest;
use crate::problem::Problem;

/// What other products keep in a cluster: group, versions from new to old, kind, and
/// whether it lives in namespaces.
const KINDS: &[(&str, &[&str], &str, bool)] = &[
    ("kamaji.clastix.io", &["v1alpha1"], "DataStore", false),
    (
        "kamaji.clastix.io",
        &["v1alpha1"],
        "TenantControlPlane",
        true,
    ),
    ("k0smotron.io", &["v1beta2", "v1beta1"], "Cluster", true),
    (
        "controlplane.cluster.x-k8s.io",
        &["v1beta2", "v1beta1"],
        "K0smotronControlPlane",
        true,
    ),
    (
        "k0rdent.mirantis.com",
        &["v1beta1", "v1alpha1"],
        "ClusterDeployment",
        true,
    ),
];

/// Reads everything before it prints anything: one bad document means no output.
pub async fn run(cli: &Cli, args: &Import) -> Result<ExitCode, Problem> {
    let all = if args.from_cluster {
        cluster(cli).await?
    } else {
        files(args)?
    };
    print(&all, args.output)?;
    for note in all.iter().flat_map(|i| &i.notes) {
        anstream::eprintln!("# {note}");
    }
    Ok(ExitCode::SUCCESS)
}

fn print(all: &[Imported], output: Manifest) -> Result<(), Problem> {
    let manifests: Vec<&Value> = all.iter().flat_map(|i| &i.manifests).collect();
    if output == Manifest::Json {
        let notes: Vec<&String> = all.iter().flat_map(|i| &i.notes).collect();
        let list =
            json!({ "apiVersion": "v1", "kind": "List", "items": manifests, "notes": notes });
        out!("{}", manifest(&list, output)?);
        return Ok(());
    }
    for one in manifests {
        out!("---\n{}", manifest(one, output)?);
    }
    Ok(())
}

fn files(args: &Import) -> Result<Vec<Imported>, Problem> {
    let mut all = Vec::new();
    for file in &args.files {
        let name = file.display().to_string();
        for (index, document) in documents(&name)?.iter().enumerate() {
            all.push(import(document).map_err(|why| Problem::File {
                file: name.clone(),
                why: format!("document {}: {why}; nothing was written", index + 1),
            })?);
        }
    }
    Ok(all)
}

fn documents(file: &str) -> Result<Vec<Value>, Problem> {
    let problem = |why: String| Problem::File {
        file: file.to_owned(),
        why,
    };
    let mut text = String::new();
    if file == "-" {
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|e| problem(e.to_string()))?;
    } else {
        text = std::fs::read_to_string(file).map_err(|e| problem(e.to_string()))?;
    }
    let parsed: Vec<Value> = serde_saphyr::from_multiple(&text)
        .map_err(|e| problem(format!("this is not YAML: {}", first_line(&e.to_string()))))?;
    let mut found = Vec::new();
    for value in parsed.into_iter().filter(|v| !v.is_null()) {
        match value.get("items").and_then(Value::as_array) {
            Some(items) if value["kind"].as_str().is_some_and(|k| k.ends_with("List")) => {
                found.extend(items.iter().cloned());
            }
            _ => found.push(value),
        }
    }
    if found.is_empty() {
        return Err(problem("there is no document in it".to_owned()));
    }
    Ok(found)
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Everything of every product that this cluster serves. A control plane that another
/// object made (a `ClusterDeployment` makes a `K0smotronControlPlane`) is told once, by its maker.
async fn cluster(cli: &Cli) -> Result<Vec<Imported>, Problem> {
    let management = Management::connect(cli).await?;
    let namespace = cli.namespace.as_deref();
    let mut all = Vec::new();
    let mut served = false;
    for (group, versions, kind, namespaced) in KINDS {
        for version in *versions {
            let gvk = GroupVersionKind::gvk(group, version, kind);
            let resource = ApiResource::from_gvk(&gvk);
            let api: Api<DynamicObject> = match namespace.filter(|_| *namespaced) {
                Some(namespace) => {
                    Api::namespaced_with(management.client.clone(), namespace, &resource)
                }
                None => Api::all_with(management.client.clone(), &resource),
            };
            let found = match api.list(&ListParams::default()).await {
                Ok(found) => found,
                Err(error) if not_served(&error) => continue,
                Err(error) => {
                    return Err(Problem::from_api(&format!("list {kind} of {group}"), error));
                }
            };
            served = true;
            for object in found {
                all.extend(one(&gvk, &object)?);
            }
            break;
        }
    }
    if !served {
        return Err(Problem::Argument(
            "this cluster knows no kind of Kamaji, k0smotron or k0rdent; nothing to import"
                .to_owned(),
        ));
    }
    if all.is_empty() {
        anstream::eprintln!("the kinds are known here, but there are no objects of them");
    }
    Ok(all)
}

fn one(gvk: &GroupVersionKind, object: &DynamicObject) -> Result<Option<Imported>, Problem> {
    let makers = ["ClusterDeployment", "K0smotronControlPlane"];
    let owners = object.metadata.owner_references.clone().unwrap_or_default();
    if owners.iter().any(|o| makers.contains(&o.kind.as_str())) {
        return Ok(None);
    }
    let mut document =
        serde_json::to_value(object).map_err(|e| Problem::Argument(e.to_string()))?;
    document["apiVersion"] = json!(gvk.api_version());
    document["kind"] = json!(gvk.kind);
    import(&document)
        .map(Some)
        .map_err(|why| Problem::Argument(format!("{why}; nothing was written")))
}
