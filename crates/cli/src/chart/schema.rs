//! The chart's schema, as far as it is used: a wrong value gets a sentence.

use serde_json::Value;

use super::Error;

/// Checks that a path names something, before anything is made of it.
pub(super) fn known(keys: &[String], schema: &Value) -> Result<(), Error> {
    let mut at = schema;
    for (depth, key) in keys.iter().enumerate() {
        let name = key.split('[').next().unwrap_or(key);
        let Some(properties) = at.get("properties").and_then(Value::as_object) else {
            return Ok(());
        };
        let Some(next) = properties.get(name) else {
            if at.get("additionalProperties") != Some(&Value::Bool(false)) {
                return Ok(());
            }
            let path = keys[..=depth].join(".");
            let near = properties
                .keys()
                .find(|k| crate::cluster::looks_like(k, name));
            let near = near.map(|k| {
                let mut meant = keys[..depth].to_vec();
                meant.push(k.clone());
                format!("; did you mean {}?", meant.join("."))
            });
            return Err(Error::Value(format!(
                "--set {path}: the chart has no such value{}",
                near.unwrap_or_default()
            )));
        };
        at = if key.contains('[') {
            next.get("items").unwrap_or(next)
        } else {
            next
        };
    }
    Ok(())
}

/// Checks all values.
pub(super) fn check(values: &Value, schema: &Value) -> Result<(), Error> {
    walk(values, schema, "")
}

fn walk(value: &Value, schema: &Value, path: &str) -> Result<(), Error> {
    let wrong = |what: String| Err(Error::Value(format!("{path}: {what}")));
    if let Some(types) = schema.get("type") {
        let names: Vec<&str> = match types {
            Value::String(one) => vec![one],
            Value::Array(many) => many.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if !names.iter().any(|name| is(value, name)) {
            return wrong(format!("{value} is not of type {}", names.join(" or ")));
        }
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        let list: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        return wrong(format!("{value} is not one of {}", list.join(", ")));
    }
    if let (Some(least), Some(number)) = (
        schema.get("minimum").and_then(Value::as_f64),
        value.as_f64(),
    ) && number < least
    {
        return wrong(format!("{value} is less than {least}"));
    }
    if let (Some(most), Some(number)) = (
        schema.get("maximum").and_then(Value::as_f64),
        value.as_f64(),
    ) && number > most
    {
        return wrong(format!("{value} is more than {most}"));
    }
    if schema
        .get("minLength")
        .and_then(Value::as_u64)
        .is_some_and(|least| least > 0)
        && value == ""
    {
        return wrong("it must not be empty".to_owned());
    }
    if let (Some(pattern), Some(text)) = (
        schema.get("pattern").and_then(Value::as_str),
        value.as_str(),
    ) {
        let found = regex_lite::Regex::new(pattern)
            .map_err(|e| Error::Value(format!("{path}: the chart's pattern {pattern}: {e}")))?;
        if !found.is_match(text) {
            return wrong(format!("{value} does not look like {pattern}"));
        }
    }
    children(value, schema, path)
}

fn children(value: &Value, schema: &Value, path: &str) -> Result<(), Error> {
    if let (Some(items), Some(list)) = (schema.get("items"), value.as_array()) {
        for (index, item) in list.iter().enumerate() {
            walk(item, items, &format!("{path}[{index}]"))?;
        }
    }
    let Some(map) = value.as_object() else {
        return Ok(());
    };
    for (key, inner) in map {
        let path = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        let property = schema.get("properties").and_then(|p| p.get(key));
        match (property, schema.get("additionalProperties")) {
            (Some(property), _) => walk(inner, property, &path)?,
            (None, Some(Value::Bool(false))) => {
                return Err(Error::Value(format!("{path}: the chart has no such value")));
            }
            (None, Some(rule)) if rule.is_object() => walk(inner, rule, &path)?,
            _ => {}
        }
    }
    Ok(())
}

fn is(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        _ => true,
    }
}
