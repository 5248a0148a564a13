//! What all objects have in common: labels, owner, checksum.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::Serialize;
use serde_json::{Map, Value};
use steward_api::metadata::{AdditionalMetadata, annotations};

use crate::{
    object::{Kind, Object, ObjectKey, Stage},
    secret::checksum,
    validate::Validated,
};

/// Metadata of an object in the tenant's namespace.
pub(crate) fn meta(tenant: &Validated, name: String, component: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        namespace: Some(tenant.names.namespace.clone()),
        labels: Some(tenant.names.labels(component)),
        owner_references: Some(vec![owner(tenant)]),
        ..ObjectMeta::default()
    }
}

/// Adds what the user wants to have added; our own labels stay.
pub(crate) fn extend(meta: &mut ObjectMeta, more: Option<&AdditionalMetadata>) {
    let Some(more) = more else { return };
    let add = |ours: &mut Option<BTreeMap<String, String>>, theirs: &BTreeMap<String, String>| {
        let ours = ours.get_or_insert_default();
        for (key, value) in theirs {
            ours.entry(key.clone()).or_insert_with(|| value.clone());
        }
    };
    add(&mut meta.labels, &more.labels);
    add(&mut meta.annotations, &more.annotations);
}

fn owner(tenant: &Validated) -> OwnerReference {
    OwnerReference {
        api_version: format!("{}/{}", steward_api::GROUP, steward_api::VERSION),
        kind: "TenantControlPlane".into(),
        name: tenant.names.tenant.clone(),
        uid: tenant.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Makes an object of a typed resource (or of a JSON body for kinds without a type).
/// Adds `apiVersion`, `kind` and the checksum by which a removed field is noticed.
pub(crate) fn object(
    kind: Kind,
    stage: Stage,
    because: &'static str,
    resource: &impl Serialize,
) -> Object {
    let mut body = serde_json::to_value(resource).unwrap_or_default();
    prune_nulls(&mut body);
    let (_, _, kind_name, _) = kind.names();
    let sum = checksum(&body);
    if let Value::Object(fields) = &mut body {
        fields.insert("apiVersion".into(), kind.api_version().into());
        fields.insert("kind".into(), kind_name.into());
        let metadata = fields
            .entry("metadata")
            .or_insert_with(|| Value::Object(Map::default()));
        let notes = metadata.as_object_mut().map(|metadata| {
            metadata
                .entry("annotations")
                .or_insert_with(|| Value::Object(Map::default()))
        });
        if let Some(Value::Object(notes)) = notes {
            notes.insert(annotations::CHECKSUM.into(), sum.into());
        }
    }
    let text = |field: &str| body["metadata"][field].as_str().map(str::to_owned);
    let key = ObjectKey {
        kind,
        namespace: text("namespace"),
        name: text("name").unwrap_or_default(),
    };
    Object {
        key,
        stage,
        because,
        body,
    }
}

/// Server-side apply would own a null.
fn prune_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(prune_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(prune_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
