//! The chart, inside this program.
//!
//! Owns its files and rendering them as Helm would: the same templates, the same
//! values, the same schema. It knows the words of the template language that the
//! chart uses, and a test holds its output against that of Helm itself. It applies
//! nothing.

mod eval;
mod functions;
mod parse;
mod schema;
#[cfg(test)]
mod tests;
mod values;

use serde_json::{Value, json};

pub use eval::Scope;
pub use values::Given;

/// Every template, by file name. `_helpers.tpl` first, because the others use it.
const TEMPLATES: &[(&str, &str)] = &[
    (
        "_helpers.tpl",
        include_str!("../../../charts/steward/templates/_helpers.tpl"),
    ),
    (
        "datastore.yaml",
        include_str!("../../../charts/steward/templates/datastore.yaml"),
    ),
    (
        "gateway.yaml",
        include_str!("../../../charts/steward/templates/gateway.yaml"),
    ),
    (
        "metrics.yaml",
        include_str!("../../../charts/steward/templates/metrics.yaml"),
    ),
    (
        "networkpolicy.yaml",
        include_str!("../../../charts/steward/templates/networkpolicy.yaml"),
    ),
    (
        "operator.yaml",
        include_str!("../../../charts/steward/templates/operator.yaml"),
    ),
    (
        "policies.yaml",
        include_str!("../../../charts/steward/templates/policies.yaml"),
    ),
    (
        "rbac.yaml",
        include_str!("../../../charts/steward/templates/rbac.yaml"),
    ),
    (
        "roles.yaml",
        include_str!("../../../charts/steward/templates/roles.yaml"),
    ),
    (
        "serviceaccount.yaml",
        include_str!("../../../charts/steward/templates/serviceaccount.yaml"),
    ),
];

const CRDS: &[&str] = &[
    include_str!("../../../charts/steward/crds/steward.butlerlabs.dev_datastores.yaml"),
    include_str!("../../../charts/steward/crds/steward.butlerlabs.dev_tenantcontrolplanes.yaml"),
];

const CHART: &str = include_str!("../../../charts/steward/Chart.yaml");
const VALUES: &str = include_str!("../../../charts/steward/values.yaml");
const SCHEMA: &str = include_str!("../../../charts/steward/values.schema.json");

/// The order in which Helm installs kinds; what is not listed comes after.
const ORDER: &[&str] = &[
    "Namespace",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "ConfigMap",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "Service",
    "DaemonSet",
    "Deployment",
    "IngressClass",
];

/// Why the chart could not be rendered.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// A value that the user gave.
    #[error("{0}")]
    Value(String),
    /// The chart itself: a fault of ours.
    #[error("the chart in this program is broken: {file}: {why}; please report this")]
    Template {
        /// Which file.
        file: String,
        /// What happened.
        why: String,
    },
}

/// A release to be.
#[derive(Debug)]
pub struct Release<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// Kinds the cluster serves, as `group/version/Kind`, as far as the chart asks.
    pub served: &'a [String],
}

/// The custom resource definitions.
pub fn crds() -> Result<Vec<Value>, Error> {
    CRDS.iter().map(|text| yaml("crds", text)).collect()
}

/// The chart's objects in the order of their installation, with the marks by
/// which Helm knows its own: `helm upgrade` may take over at any time.
pub fn render(release: &Release<'_>, given: &Given) -> Result<Vec<Value>, Error> {
    let schema: Value =
        serde_json::from_str(SCHEMA).map_err(|e| broken("values.schema.json", e))?;
    let values = given.over(yaml("values.yaml", VALUES)?, &schema)?;
    schema::check(&values, &schema)?;
    let chart: Value = yaml("Chart.yaml", CHART)?;
    let root = json!({
        "Values": values,
        "Chart": {
            "Name": chart["name"], "Version": chart["version"], "AppVersion": chart["appVersion"],
        },
        "Release": { "Name": release.name, "Namespace": release.namespace, "Service": "Helm" },
        "Capabilities": { "APIVersions": release.served },
    });
    let mut scope = Scope::default();
    let mut objects = Vec::new();
    for (file, text) in TEMPLATES {
        let failed = |why: String| Error::Template {
            file: (*file).to_owned(),
            why,
        };
        let nodes = parse::parse(text).map_err(failed)?;
        let text = scope.render(&nodes, &root).map_err(failed)?;
        objects.extend(documents(file, &text)?);
    }
    objects.sort_by_key(|o| {
        let kind = o["kind"].as_str().unwrap_or_default();
        ORDER.iter().position(|k| *k == kind).unwrap_or(ORDER.len())
    });
    for object in &mut objects {
        let annotations = &mut object["metadata"]["annotations"];
        annotations["meta.helm.sh/release-name"] = json!(release.name);
        annotations["meta.helm.sh/release-namespace"] = json!(release.namespace);
    }
    Ok(objects)
}

fn documents(file: &str, text: &str) -> Result<Vec<Value>, Error> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let found: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|e| broken(file, e))?;
    Ok(found.into_iter().filter(|v| !v.is_null()).collect())
}

fn yaml(file: &str, text: &str) -> Result<Value, Error> {
    serde_saphyr::from_str(text).map_err(|e| broken(file, e))
}

fn broken(file: &str, why: impl std::fmt::Display) -> Error {
    Error::Template {
        file: file.to_owned(),
        why: why.to_string(),
    }
}
