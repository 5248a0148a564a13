//! The CRDs as they are installed: the derived schema, made exact, with the rules in it.
//!
//! What the derive can't say is added here: which lists are maps or sets, bounds that the cost of
//! the rules needs, and that nothing is nullable (`null` in a manifest means "not set").

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::{Map, Value, json};

use crate::rules::{self, Rule};
use crate::schema_path::schema_at;
use crate::{DataStore, TenantControlPlane};

/// How large a CRD may be for `kubectl apply` to store it in its annotation.
pub const SIZE_LIMIT: usize = 256 * 1024;

/// Why the CRDs can't be made: only a mistake in this crate can cause it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The derived CRD isn't what we know it as.
    #[error("the derived CRD can't be converted: {0}; compare it with what kube-derive makes")]
    Convert(#[from] serde_json::Error),
    /// A rule or a bound names a field that the schema doesn't have.
    #[error("{kind} has no schema at {path:?}; correct the path in rules or limits")]
    NoSuchField {
        /// Which CRD.
        kind: &'static str,
        /// The path that leads nowhere.
        path: String,
    },
}

/// Both CRDs, ready to install.
pub fn all() -> Result<Vec<CustomResourceDefinition>, Error> {
    Ok(vec![tenant_control_plane()?, data_store()?])
}

/// The CRD of `TenantControlPlane`.
pub fn tenant_control_plane() -> Result<CustomResourceDefinition, Error> {
    finish(
        "TenantControlPlane",
        TenantControlPlane::crd(),
        &rules::tenant(),
        TENANT_EXTRAS,
    )
}

/// The CRD of `DataStore`.
pub fn data_store() -> Result<CustomResourceDefinition, Error> {
    finish(
        "DataStore",
        DataStore::crd(),
        &rules::data_store(),
        DATA_STORE_EXTRAS,
    )
}

/// What to add to the schema of one field.
type Extra = (&'static str, &'static [(&'static str, Keyword)]);

#[derive(Clone, Copy)]
enum Keyword {
    Number(i64),
    Text(&'static str),
    List(&'static [&'static str]),
}

const MAP_BY_TYPE: &[(&str, Keyword)] = &[
    ("x-kubernetes-list-type", Keyword::Text("map")),
    ("x-kubernetes-list-map-keys", Keyword::List(&["type"])),
];
const SET: &[(&str, Keyword)] = &[("x-kubernetes-list-type", Keyword::Text("set"))];
const NAME: &[(&str, Keyword)] = &[("maxLength", Keyword::Number(63))];
const PATH: &[(&str, Keyword)] = &[("maxLength", Keyword::Number(512))];
const MOUNTS: &[(&str, Keyword)] = &[("maxItems", Keyword::Number(32))];
const ONE_OR_THREE: &[(&str, Keyword)] = &[
    ("minimum", Keyword::Number(1)),
    ("maximum", Keyword::Number(3)),
];

const TENANT_EXTRAS: &[Extra] = &[
    ("status.conditions", MAP_BY_TYPE),
    ("spec.kubernetes.kubelet.preferredAddressTypes", SET),
    (
        "spec.controlPlane.deployment.additionalContainers[].name",
        NAME,
    ),
    (
        "spec.controlPlane.deployment.additionalContainers[].volumeMounts",
        MOUNTS,
    ),
    (
        "spec.controlPlane.deployment.additionalContainers[].volumeMounts[].mountPath",
        PATH,
    ),
    (
        "spec.controlPlane.deployment.additionalInitContainers[].name",
        NAME,
    ),
    (
        "spec.controlPlane.deployment.additionalInitContainers[].volumeMounts",
        MOUNTS,
    ),
    (
        "spec.controlPlane.deployment.additionalInitContainers[].volumeMounts[].mountPath",
        PATH,
    ),
    (
        "spec.controlPlane.deployment.additionalVolumes[].name",
        NAME,
    ),
    (
        "spec.controlPlane.deployment.additionalVolumeMounts.apiServer[].mountPath",
        PATH,
    ),
    (
        "spec.controlPlane.deployment.additionalVolumeMounts.controllerManager[].mountPath",
        PATH,
    ),
    (
        "spec.controlPlane.deployment.additionalVolumeMounts.scheduler[].mountPath",
        PATH,
    ),
];

const DATA_STORE_EXTRAS: &[Extra] = &[
    ("status.conditions", MAP_BY_TYPE),
    ("spec.managed.replicas", ONE_OR_THREE),
];

fn finish(
    kind: &'static str,
    derived: CustomResourceDefinition,
    rules: &[Rule],
    extras: &[Extra],
) -> Result<CustomResourceDefinition, Error> {
    let mut crd = serde_json::to_value(derived)?;
    let no_such = |path: &str| Error::NoSuchField {
        kind,
        path: path.to_owned(),
    };
    let root = crd
        .pointer_mut("/spec/versions/0/schema/openAPIV3Schema")
        .and_then(Value::as_object_mut)
        .ok_or_else(|| no_such("openAPIV3Schema"))?;
    tidy(root);
    for (path, keywords) in extras {
        let schema = schema_at(root, path).ok_or_else(|| no_such(path))?;
        for (keyword, value) in *keywords {
            schema.insert((*keyword).to_owned(), value.to_json());
        }
    }
    for rule in rules {
        let schema = schema_at(root, rule.at).ok_or_else(|| no_such(rule.at))?;
        add(schema, rule);
    }
    Ok(serde_json::from_value(crd)?)
}

fn add(schema: &mut Map<String, Value>, rule: &Rule) {
    let list = schema
        .entry("x-kubernetes-validations")
        .or_insert_with(|| json!([]));
    if let Value::Array(list) = list {
        list.push(rule.to_json());
    }
}

/// Removes `nullable` and puts each description on one line, everywhere.
fn tidy(schema: &mut Map<String, Value>) {
    schema.remove("nullable");
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties
            .values_mut()
            .filter_map(Value::as_object_mut)
            .for_each(tidy);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(Value::Object(inner)) = schema.get_mut(key) {
            tidy(inner);
        }
    }
}

impl Keyword {
    fn to_json(self) -> Value {
        match self {
            Self::Number(number) => number.into(),
            Self::Text(text) => text.into(),
            Self::List(list) => json!(list),
        }
    }
}

#[cfg(test)]
mod tests;
