//! What our API does not know is taken out and told, before the API server would
//! take it out in silence.

use serde_json::{Map, Value, json};

/// Takes every field out of a manifest that its kind does not have.
pub(super) fn fit(manifest: &mut Value, notes: &mut Vec<String>) {
    let kind = manifest["kind"].as_str().unwrap_or_default().to_owned();
    let name = manifest
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let Some(schema) = schema(&kind) else { return };
    let mut unknown = Vec::new();
    if let Some(spec) = manifest.get_mut("spec") {
        trim(spec, &schema["properties"]["spec"], "spec", &mut unknown);
    }
    notes.extend(
        unknown
            .into_iter()
            .map(|path| format!("{kind} {name}: {path} has no equivalent and was left out")),
    );
}

/// The schema of a kind, as it is installed.
fn schema(kind: &str) -> Option<Value> {
    let definition = match kind {
        "TenantControlPlane" => steward_api::crds::tenant_control_plane(),
        "DataStore" => steward_api::crds::data_store(),
        _ => return None,
    };
    let versions = serde_json::to_value(definition.ok()?.spec.versions).ok()?;
    versions.pointer("/0/schema/openAPIV3Schema").cloned()
}

fn trim(value: &mut Value, schema: &Value, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                trim(item, &schema["items"], &format!("{path}[{index}]"), unknown);
            }
        }
        Value::Object(map) => trim_object(map, schema, path, unknown),
        _ => {}
    }
}

fn trim_object(
    map: &mut Map<String, Value>,
    schema: &Value,
    path: &str,
    unknown: &mut Vec<String>,
) {
    let Some(properties) = schema["properties"].as_object() else {
        return;
    };
    let open = schema["x-kubernetes-preserve-unknown-fields"] == json!(true)
        || schema.get("additionalProperties").is_some();
    map.retain(|key, inner| {
        let path = format!("{path}.{key}");
        match properties.get(key) {
            // In our manifests null means "not set", and theirs are full of it.
            _ if inner.is_null() => false,
            Some(known) => {
                trim(inner, known, &path, unknown);
                true
            }
            None if open => true,
            None => {
                unknown.push(path);
                false
            }
        }
    });
}
