//! Values as users give them: `--set`, `--set-string` and files, in Helm's own notation.

use serde_json::{Map, Value};

use super::Error;

/// What was given on the command line, in the order of its weight: files first.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// Contents of `--values` files.
    pub files: Vec<Value>,
    /// `--set`: numbers, booleans and null are read as such.
    pub set: Vec<String>,
    /// `--set-string`: everything is text.
    pub set_string: Vec<String>,
}

impl Given {
    /// Lays it over the defaults. The schema helps to name what was meant.
    pub(super) fn over(&self, defaults: Value, schema: &Value) -> Result<Value, Error> {
        let mut values = defaults;
        for file in &self.files {
            if !file.is_object() {
                return Err(Error::Value(
                    "a values file must hold a map; this one does not".into(),
                ));
            }
            merge(&mut values, file);
        }
        let typed = self.set.iter().map(|text| (text, true));
        for (text, typed) in typed.chain(self.set_string.iter().map(|text| (text, false))) {
            for one in split(text, ',') {
                set(&mut values, &one, typed, schema)?;
            }
        }
        Ok(values)
    }
}

/// Maps are merged, the rest is replaced; null removes.
fn merge(into: &mut Value, from: &Value) {
    let (Value::Object(into), Value::Object(from)) = (into, from) else {
        return;
    };
    for (key, value) in from {
        match into.get_mut(key) {
            _ if value.is_null() => {
                into.remove(key);
            }
            Some(old) if old.is_object() && value.is_object() => merge(old, value),
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

fn set(values: &mut Value, one: &str, typed: bool, schema: &Value) -> Result<(), Error> {
    let Some((path, text)) = split_once(one) else {
        return Err(Error::Value(format!("--set {one}: write it as name=value")));
    };
    let keys: Vec<String> = split(&path, '.');
    super::schema::known(&keys, schema)?;
    let mut at = values;
    for key in &keys {
        let (key, index) = indexed(key)?;
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = &mut at[key.as_str()];
        if let Some(index) = index {
            at = item(at, index);
        }
    }
    *at = read(&text, typed);
    Ok(())
}

fn indexed(key: &str) -> Result<(String, Option<usize>), Error> {
    let Some((name, rest)) = key.split_once('[') else {
        return Ok((key.to_owned(), None));
    };
    let index = rest
        .strip_suffix(']')
        .and_then(|i| i.parse().ok())
        .filter(|i| *i < 1000);
    match index {
        Some(index) => Ok((name.to_owned(), Some(index))),
        None => Err(Error::Value(format!(
            "--set {key}: an index is written as name[0]"
        ))),
    }
}

fn item(at: &mut Value, index: usize) -> &mut Value {
    if !at.is_array() {
        *at = Value::Array(Vec::new());
    }
    if let Value::Array(items) = at
        && items.len() <= index
    {
        items.resize(index + 1, Value::Null);
    }
    &mut at[index]
}

fn read(text: &str, typed: bool) -> Value {
    if let Some(inner) = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
        let items = split(inner, ',').into_iter().filter(|i| !i.is_empty());
        return items.map(|i| read(&i, typed)).collect();
    }
    if !typed {
        return text.into();
    }
    match text {
        "true" => true.into(),
        "false" => false.into(),
        "null" => Value::Null,
        // A leading zero is part of a name or an identifier, not of a number.
        _ if text.len() > 1 && text.starts_with('0') => text.into(),
        _ => text
            .parse::<i64>()
            .map_or_else(|_| text.into(), Value::from),
    }
}

/// Splits where the mark stands alone: not after a backslash, not inside braces.
fn split(text: &str, mark: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut depth, mut escaped) = (0_u32, false);
    for c in text.chars() {
        let part = parts.len() - 1;
        match c {
            // Inside braces the backslash is kept, for whoever splits those.
            '\\' if !escaped => {
                escaped = true;
                if depth > 0 || mark == ',' {
                    parts[part].push(c);
                }
                continue;
            }
            '{' if !escaped => depth += 1,
            '}' if !escaped => depth = depth.saturating_sub(1),
            c if c == mark && !escaped && depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        escaped = false;
        parts[part].push(c);
    }
    parts
}

fn split_once(text: &str) -> Option<(String, String)> {
    let (path, value) = text.split_once('=')?;
    // What was escaped for the outer split means itself from here on.
    Some((path.to_owned(), value.replace("\\,", ",")))
}
