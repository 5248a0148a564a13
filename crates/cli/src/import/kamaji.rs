//! Kamaji's objects: the same shape under another group.
//!
//! Carries the spec over as it is and renames what has the group in it.

use serde_json::{Map, Value, json};
use steward_api::flags;

use super::Imported;

const THEIRS: &str = "kamaji.clastix.io";
const OURS: &str = "steward.butlerlabs.dev";

pub(super) fn import(document: &Value) -> Imported {
    let kind = document["kind"].as_str().unwrap_or_default();
    let name = document
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let mut notes = Vec::new();
    let mut metadata = Map::new();
    for key in ["name", "namespace"] {
        if let Some(value) = document.pointer(&format!("/metadata/{key}")) {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
    for key in ["labels", "annotations"] {
        let renamed = rename(document.pointer(&format!("/metadata/{key}")));
        if !renamed.is_empty() {
            metadata.insert(key.to_owned(), Value::Object(renamed));
        }
    }
    let mut spec = document.get("spec").cloned().unwrap_or_else(|| json!({}));
    if kind == "TenantControlPlane" {
        tidy(name, &mut spec, &metadata, &mut notes);
    }
    let manifest = json!({
        "apiVersion": format!("{OURS}/v1alpha1"), "kind": kind, "metadata": metadata, "spec": spec,
    });
    Imported {
        manifests: vec![manifest],
        notes,
    }
}

fn rename(map: Option<&Value>) -> Map<String, Value> {
    map.and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(key, _)| *key != "kubectl.kubernetes.io/last-applied-configuration")
        .map(|(key, value)| (key.replace(THEIRS, OURS), value.clone()))
        .collect()
}

/// What the ingress addon made people write by hand, we do by ourselves.
fn tidy(name: &str, spec: &mut Value, metadata: &Map<String, Value>, notes: &mut Vec<String>) {
    let annotated = metadata
        .get("annotations")
        .and_then(|a| a.get(format!("{OURS}/ingress.domain")))
        .and_then(Value::as_str);
    if let Some(class) = spec.pointer_mut("/controlPlane/ingress/ingressClassName")
        && class.as_str() == Some("unhandled")
    {
        *class = json!("haproxy");
        notes.push(format!(
            "TenantControlPlane {name}: spec.controlPlane.ingress.ingressClassName was \"unhandled\", which the addon needed; it is \"haproxy\" now: check that this is your class"
        ));
    }
    if annotated.is_some() && spec.pointer("/controlPlane/ingress").is_some() {
        let ingress = spec
            .pointer_mut("/controlPlane/ingress")
            .and_then(Value::as_object_mut);
        if let Some(ingress) = ingress {
            ingress
                .entry("controllerType")
                .or_insert_with(|| json!("haproxy"));
        }
        notes.push(format!(
            "TenantControlPlane {name}: the addon's proxy is replaced by spec.addons.tcpProxy, which is switched on"
        ));
        ensure_object(spec, "addons")
            .entry("tcpProxy")
            .or_insert_with(|| json!({}));
    }
    let args = spec
        .pointer_mut("/controlPlane/deployment/extraArgs/apiServer")
        .and_then(Value::as_array_mut);
    if let Some(args) = args {
        let before = args.len();
        args.retain(|a| {
            !a.as_str()
                .is_some_and(|a| flags::same(a, "--endpoint-reconciler-type"))
        });
        if args.len() != before {
            notes.push(format!(
                "TenantControlPlane {name}: --endpoint-reconciler-type is set by the operator; the extra argument was removed"
            ));
        }
    }
}

fn ensure_object<'v>(value: &'v mut Value, key: &str) -> &'v mut Map<String, Value> {
    if !value.is_object() {
        *value = json!({});
    }
    if !value[key].is_object() {
        value[key] = json!({});
    }
    #[expect(clippy::expect_used, reason = "it was made one on the line above")]
    value[key].as_object_mut().expect("an object")
}
