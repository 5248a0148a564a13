//! A document that knows which of its fields have been used.
//!
//! What is left when a translation is done has no equivalent, and is told.

use serde_json::Value;

/// A document being taken apart.
pub(super) struct Consumed {
    rest: Value,
    /// Which object this is, for notes and errors.
    pub(super) kind: String,
    /// Its name.
    pub(super) name: String,
    /// Its namespace, where it says.
    pub(super) namespace: Option<String>,
}

impl Consumed {
    /// Takes the head of a manifest off it. Status and bookkeeping of the other
    /// cluster are nobody's input.
    pub(super) fn new(document: &Value) -> Self {
        let mut rest = document.clone();
        let at = |path: &str| {
            document
                .pointer(path)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        if let Some(map) = rest.as_object_mut() {
            for key in ["apiVersion", "kind", "status"] {
                map.remove(key);
            }
        }
        if let Some(map) = rest.pointer_mut("/metadata").and_then(Value::as_object_mut) {
            for key in [
                "name",
                "namespace",
                "uid",
                "resourceVersion",
                "generation",
                "creationTimestamp",
                "managedFields",
                "ownerReferences",
                "finalizers",
            ] {
                map.remove(key);
            }
            if let Some(annotations) = map.get_mut("annotations").and_then(Value::as_object_mut) {
                annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
            }
        }
        Self {
            rest,
            kind: at("/kind").unwrap_or_default(),
            name: at("/metadata/name").unwrap_or_default(),
            namespace: at("/metadata/namespace"),
        }
    }

    /// Takes a field out by its JSON pointer. Null counts as absent.
    pub(super) fn take(&mut self, pointer: &str) -> Option<Value> {
        let (parent, key) = pointer.rsplit_once('/')?;
        let map = self.rest.pointer_mut(parent)?.as_object_mut()?;
        map.remove(key).filter(|v| !v.is_null())
    }

    /// Takes a text field; an empty one counts as absent.
    pub(super) fn take_text(&mut self, pointer: &str) -> Option<String> {
        match self.take(pointer)? {
            Value::String(s) if s.is_empty() => None,
            Value::String(s) => Some(s),
            other => Some(other.to_string()),
        }
    }

    /// A line for every field that nobody took.
    pub(super) fn leftovers(&self) -> Vec<String> {
        let mut paths = Vec::new();
        walk(&self.rest, String::new(), &mut paths);
        paths
            .into_iter()
            .map(|path| {
                format!(
                    "{} {}: {path} has no equivalent and was left out",
                    self.kind, self.name
                )
            })
            .collect()
    }
}

fn walk(value: &Value, path: String, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                walk(inner, path, found);
            }
        }
        Value::Null => {}
        Value::Array(items) if items.is_empty() => {}
        _ => found.push(path),
    }
}
