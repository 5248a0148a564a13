//! Whether a live object is still as we last applied it, told from its metadata alone.
//!
//! Server-side apply records which fields each manager set, and takes a field away from a manager as
//! soon as another one changes its value. So an object needs no write when (1) the digest we left on it
//! is that of what we would write now, and (2) every field of what we would write is still ours. Both
//! are in the metadata: no cache, nothing to lose on a restart, no comparison of defaulted values.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The field manager of everything we apply.
pub const MANAGER: &str = "steward-operator";

/// Annotation that carries the digest of what was applied. Plans set it; what has none gets one here.
pub const DIGEST: &str = steward_api::metadata::annotations::CHECKSUM;

/// A short digest of a desired object.
pub fn digest(body: &Value) -> String {
    // Builders are deterministic, so equal plans have equal text.
    let hash = Sha256::digest(body.to_string().as_bytes());
    hash[..12]
        .iter()
        .fold(String::with_capacity(24), |mut text, byte| {
            use std::fmt::Write as _;
            // Writing to a String can't fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// Makes sure a digest is on the body and drops what server-side apply can't own.
pub fn seal(body: &mut Value) {
    drop_nulls(body);
    if body["metadata"]["annotations"][DIGEST].is_null() {
        let digest = digest(body);
        annotations(body).insert(DIGEST.into(), Value::String(digest));
    }
}

fn annotations(body: &mut Value) -> &mut Map<String, Value> {
    let metadata = object(object(body).entry("metadata").or_insert(Value::Null));
    object(metadata.entry("annotations").or_insert(Value::Null))
}

/// The value as an object; anything else becomes an empty one.
fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        #[expect(clippy::unreachable, reason = "assigned right above")]
        _ => unreachable!("just made an object"),
    }
}

/// A null in an applied object is owned by nobody and differs from run to run.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Whether `live` (at least its metadata) shows that applying the sealed `desired` would change nothing.
pub fn settled(desired: &Value, live: &Value) -> bool {
    let ours = |object: &Value| {
        object["metadata"]["annotations"][DIGEST]
            .as_str()
            .map(str::to_owned)
    };
    if ours(desired).is_none() || ours(desired) != ours(live) {
        return false;
    }
    let Some(fields) = our_fields(live) else {
        return false;
    };
    covers(desired, fields, 0)
}

/// The fields we own by server-side apply, in `FieldsV1` form.
pub fn our_fields(live: &Value) -> Option<&Value> {
    live["metadata"]["managedFields"]
        .as_array()?
        .iter()
        .find(|entry| {
            entry["manager"] == MANAGER
                && entry["operation"] == "Apply"
                && entry.get("subresource").is_none()
        })
        .map(|entry| &entry["fieldsV1"])
}

/// These identify an object and are never owned fields.
const IDENTITY: [&str; 2] = ["apiVersion", "kind"];
const META_IDENTITY: [&str; 5] = ["name", "namespace", "uid", "resourceVersion", "generation"];

fn covers(desired: &Value, fields: &Value, depth: usize) -> bool {
    let Value::Object(owned) = fields else {
        return false;
    };
    // An empty set marks a leaf: the whole value, whatever it is made of, is ours.
    let inner = owned.keys().any(|key| key != ".");
    if !inner {
        return true;
    }
    match desired {
        Value::Object(map) => map.iter().all(|(key, value)| {
            if depth == 0 && IDENTITY.contains(&key.as_str()) {
                return true;
            }
            if depth == 0 && key == "metadata" {
                return metadata_covered(value, owned);
            }
            owned
                .get(&format!("f:{key}"))
                .is_some_and(|fields| covers(value, fields, depth + 1))
        }),
        Value::Array(items) => items.iter().all(|item| item_covered(item, owned, depth)),
        _ => false,
    }
}

fn metadata_covered(metadata: &Value, owned: &Map<String, Value>) -> bool {
    let Value::Object(map) = metadata else {
        return false;
    };
    let nothing = Value::Object(Map::new());
    let fields = owned.get("f:metadata").unwrap_or(&nothing);
    map.iter()
        .filter(|(key, _)| !META_IDENTITY.contains(&key.as_str()))
        .all(|(key, value)| {
            fields
                .get(format!("f:{key}"))
                .is_some_and(|fields| covers(value, fields, 2))
        })
}

/// Items of associative lists are named by their keys (`k:{…}`), those of sets by value (`v:…`).
fn item_covered(item: &Value, owned: &Map<String, Value>, depth: usize) -> bool {
    owned.iter().any(|(name, fields)| {
        if let Some(value) = name.strip_prefix("v:") {
            return serde_json::from_str::<Value>(value).is_ok_and(|value| value == *item);
        }
        let Some(keys) = name.strip_prefix("k:") else {
            return false;
        };
        let Ok(Value::Object(keys)) = serde_json::from_str::<Value>(keys) else {
            return false;
        };
        // A key we left out has its default (`protocol: TCP`).
        let same = keys
            .iter()
            .all(|(key, value)| item.get(key).is_none_or(|ours| ours == value));
        same && covers(item, fields, depth + 1)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment() -> Value {
        let mut body = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "t", "namespace": "n", "labels": {"a": "b"}, "creationTimestamp": null},
            "spec": {"replicas": 2, "template": {"spec": {
                "containers": [{"name": "api", "args": ["--x", "--y"],
                                "ports": [{"containerPort": 6443}], "resources": {}}],
            }}},
        });
        seal(&mut body);
        body
    }

    fn live() -> Value {
        let desired = deployment();
        json!({
            "metadata": {
                "name": "t", "namespace": "n", "annotations": desired["metadata"]["annotations"],
                "managedFields": [
                    {"manager": "kube-controller-manager", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}},
                    {"manager": MANAGER, "operation": "Apply", "fieldsV1": {
                        "f:metadata": {"f:labels": {"f:a": {}}, "f:annotations": {"f:steward.butlerlabs.dev/checksum": {}}},
                        "f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {
                            "k:{\"name\":\"api\"}": {
                                ".": {}, "f:name": {}, "f:args": {}, "f:resources": {},
                                "f:ports": {"k:{\"containerPort\":6443,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}
                            }
                        }}}},
                    }},
                ],
            },
        })
    }

    #[test]
    fn an_object_that_is_wholly_ours_is_settled() {
        assert!(settled(&deployment(), &live()));
    }

    #[test]
    fn a_field_that_someone_changed_is_no_longer_ours() {
        for pointer in [
            "/metadata/managedFields/1/fieldsV1/f:spec/f:replicas",
            "/metadata/managedFields/1/fieldsV1/f:metadata/f:labels/f:a",
            "/metadata/managedFields/1/fieldsV1/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"api\"}/f:args",
        ] {
            let mut live = live();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            live.pointer_mut(parent)
                .unwrap()
                .as_object_mut()
                .unwrap()
                .remove(key)
                .unwrap();
            // What remains must still hold something, or it would read as a leaf.
            live.pointer_mut(parent)
                .unwrap()
                .as_object_mut()
                .unwrap()
                .insert("f:other".into(), json!({}));
            assert!(!settled(&deployment(), &live), "{pointer}");
        }
    }

    #[test]
    fn another_desired_value_is_a_write() {
        let mut desired = deployment();
        desired["spec"]["replicas"] = json!(3);
        desired["metadata"]["annotations"] = json!({});
        seal(&mut desired);
        assert!(!settled(&desired, &live()));
    }

    #[test]
    fn an_object_we_never_applied_is_a_write() {
        let mut live = live();
        live["metadata"]["managedFields"] = json!([]);
        assert!(!settled(&deployment(), &live));
    }

    #[test]
    fn nulls_are_not_part_of_what_we_want() {
        assert!(deployment()["metadata"].get("creationTimestamp").is_none());
    }

    #[test]
    fn a_label_lost_with_its_whole_map_is_noticed() {
        let mut live = live();
        live.pointer_mut("/metadata/managedFields/1/fieldsV1/f:metadata")
            .unwrap()
            .as_object_mut()
            .unwrap()
            .remove("f:labels");
        assert!(!settled(&deployment(), &live));
    }
}
