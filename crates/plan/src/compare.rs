//! Whether a live object already is as planned, so that a write can be left out.
//!
//! The API server adds defaults, statuses and bookkeeping; those don't count. What
//! counts is that every field of the plan is there with the planned value. Fields
//! that a plan no longer has are found by the checksum annotation, which changes
//! with any change of the plan.

use serde_json::Value;

/// Where `live` lacks or contradicts `wanted`, as a path; `None` if it is as wanted.
pub fn difference(wanted: &Value, live: &Value) -> Option<String> {
    let mut path = String::new();
    differs(wanted, live, &mut path).then_some(path)
}

fn differs(wanted: &Value, live: &Value, path: &mut String) -> bool {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => wanted.iter().any(|(key, value)| {
            step(path, key, |path| match live.get(key) {
                Some(found) => differs(value, found, path),
                None => !empty(value),
            })
        }),
        (Value::Array(wanted), Value::Array(live)) => lists_differ(wanted, live, path),
        (wanted, live) => !(wanted == live || empty(wanted) && empty(live)),
    }
}

/// Lists whose elements have a name are matched by it (others may add elements of
/// their own); all other lists belong to us as a whole.
fn lists_differ(wanted: &[Value], live: &[Value], path: &mut String) -> bool {
    let named = |list: &[Value]| !list.is_empty() && list.iter().all(|v| name_of(v).is_some());
    if named(wanted) && named(live) {
        return wanted.iter().any(|value| {
            let name = name_of(value).unwrap_or_default();
            step(path, name, |path| {
                live.iter()
                    .find(|found| name_of(found) == Some(name))
                    .is_none_or(|found| differs(value, found, path))
            })
        });
    }
    wanted.len() != live.len()
        || wanted
            .iter()
            .zip(live)
            .enumerate()
            .any(|(index, (wanted, live))| {
                step(path, &index.to_string(), |path| differs(wanted, live, path))
            })
}

fn name_of(value: &Value) -> Option<&str> {
    value.get("name").and_then(Value::as_str)
}

/// What the API server leaves out because it says nothing: empty maps, lists and texts,
/// nulls, zeros, and `false` where that is what is meant without the field.
fn empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.values().all(empty),
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
    }
}

/// Keeps the path only where a difference was found.
fn step(path: &mut String, segment: &str, inner: impl FnOnce(&mut String) -> bool) -> bool {
    let length = path.len();
    path.push('/');
    path.push_str(segment);
    let found = inner(path);
    if !found {
        path.truncate(length);
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::difference;

    #[test]
    fn defaults_added_by_the_api_server_do_not_count() {
        let wanted = json!({"spec": {"a": 1, "nothing": {}, "list": []}});
        let live = json!({"metadata": {"uid": "x"}, "spec": {"a": 1, "b": 2}, "status": {}});
        assert_eq!(difference(&wanted, &live), None);
    }

    #[test]
    fn a_changed_value_is_named_by_its_path() {
        let wanted = json!({"spec": {"containers": [{"name": "x", "image": "a"}]}});
        let live = json!({"spec": {"containers": [{"name": "x", "image": "b"}]}});
        assert_eq!(
            difference(&wanted, &live).as_deref(),
            Some("/spec/containers/x/image")
        );
    }

    #[test]
    fn an_extra_argument_counts_but_an_extra_named_element_does_not() {
        assert!(difference(&json!({"args": ["a"]}), &json!({"args": ["a", "b"]})).is_some());
        let wanted = json!({"c": [{"name": "x"}]});
        assert_eq!(
            difference(&wanted, &json!({"c": [{"name": "y"}, {"name": "x"}]})),
            None
        );
    }

    #[test]
    fn a_false_that_is_left_out_does_not_count_but_a_true_does() {
        assert_eq!(difference(&json!({"a": false}), &json!({})), None);
        assert!(difference(&json!({"a": false}), &json!({"a": true})).is_some());
        assert!(difference(&json!({"a": true}), &json!({})).is_some());
    }

    #[test]
    fn a_missing_field_counts() {
        assert_eq!(
            difference(&json!({"a": {"b": 1}}), &json!({"a": {}})).as_deref(),
            Some("/a/b")
        );
    }
}
