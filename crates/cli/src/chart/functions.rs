//! What the functions of the template language do, as Helm and its library define them.

use serde_json::{Map, Value};

use super::eval::Scope;

/// Whether a value counts as true: neither nothing, nor zero, nor empty.
pub(super) fn truth(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(b) => *b,
        Value::Number(n) => n.as_f64() != Some(0.0),
        Value::String(s) => !s.is_empty(),
        Value::Array(a) => !a.is_empty(),
        Value::Object(o) => !o.is_empty(),
    }
}

/// As text in a document.
pub(super) fn print(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(s) => s.clone(),
        other => other.to_string(),
    }
}

/// Whether a list has a text in it.
pub(super) fn contains(list: &Value, wanted: Option<&Value>) -> bool {
    list.as_array()
        .is_some_and(|l| wanted.is_some_and(|w| l.contains(w)))
}

/// Calls a function by its name.
pub(super) fn call(scope: &Scope, name: &str, a: &[Value]) -> Result<Value, String> {
    let arg = |i: usize| a.get(i).cloned().unwrap_or_default();
    let text = |i: usize| a.get(i).map(print).unwrap_or_default();
    let number = |i: usize| a.get(i).map_or(0, int);
    Ok(match name {
        "include" => scope.include(&text(0), &arg(1))?.into(),
        "default" => {
            if truth(&arg(1)) {
                arg(1)
            } else {
                arg(0)
            }
        }
        "trunc" => text(1)
            .chars()
            .take(usize::try_from(number(0)).unwrap_or(0))
            .collect::<String>()
            .into(),
        "trimSuffix" => text(1)
            .strip_suffix(text(0).as_str())
            .map_or_else(|| text(1), str::to_owned)
            .into(),
        "contains" => text(1).contains(&text(0)).into(),
        "replace" => text(2).replace(&text(0), &text(1)).into(),
        "quote" => serde_json::to_string(&text(0))
            .map_err(|e| e.to_string())?
            .into(),
        "splitList" => text(1).split(text(0).as_str()).map(Value::from).collect(),
        "join" => {
            let parts = arg(1);
            let parts = parts.as_array().into_iter().flatten().map(print);
            parts.collect::<Vec<_>>().join(&text(0)).into()
        }
        "last" => arg(0)
            .as_array()
            .and_then(|l| l.last())
            .cloned()
            .unwrap_or_default(),
        "ternary" => {
            if truth(&arg(2)) {
                arg(0)
            } else {
                arg(1)
            }
        }
        "index" | "get" => arg(0).get(text(1)).cloned().unwrap_or_default(),
        "toString" => text(0).into(),
        "not" => (!truth(&arg(0))).into(),
        "and" => a
            .iter()
            .find(|v| !truth(v))
            .or(a.last())
            .cloned()
            .unwrap_or_default(),
        "or" => a
            .iter()
            .find(|v| truth(v))
            .or(a.last())
            .cloned()
            .unwrap_or_default(),
        "eq" => a.iter().skip(1).any(|v| *v == arg(0)).into(),
        "ne" => (arg(0) != arg(1)).into(),
        "lt" => (number(0) < number(1)).into(),
        "le" => (number(0) <= number(1)).into(),
        "gt" => (number(0) > number(1)).into(),
        "ge" => (number(0) >= number(1)).into(),
        "int" | "int64" => number(0).into(),
        "add" => a.iter().map(int).sum::<i64>().into(),
        "indent" => indent(number(0), &text(1)).into(),
        "nindent" => format!("\n{}", indent(number(0), &text(1))).into(),
        "toYaml" => to_yaml(&arg(0))?.into(),
        "list" => Value::Array(a.to_vec()),
        "dict" => dict(a),
        "printf" => format(&text(0), a.get(1..).unwrap_or_default()).into(),
        other => return Err(format!("the function {other} is not known here")),
    })
}

fn int(value: &Value) -> i64 {
    match value {
        Value::String(s) => s.parse().unwrap_or(0),
        #[expect(clippy::cast_possible_truncation, reason = "as Helm's int does")]
        Value::Number(n) => n
            .as_i64()
            .or_else(|| n.as_f64().map(|f| f as i64))
            .unwrap_or(0),
        other => i64::from(truth(other)),
    }
}

fn indent(by: i64, text: &str) -> String {
    let space = " ".repeat(usize::try_from(by).unwrap_or(0));
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| format!("{space}{line}"))
        .collect();
    lines.join("\n")
}

fn to_yaml(value: &Value) -> Result<String, String> {
    // JSON is YAML, and for what is empty the only way to write it.
    if !truth(value) {
        return Ok(value.to_string());
    }
    let text = serde_saphyr::to_string(value).map_err(|e| e.to_string())?;
    Ok(text.trim_end().to_owned())
}

fn dict(pairs: &[Value]) -> Value {
    let pairs = pairs.chunks(2);
    Value::Object(
        pairs
            .filter_map(|p| Some((print(p.first()?), p.get(1)?.clone())))
            .collect::<Map<_, _>>(),
    )
}

fn format(pattern: &str, arguments: &[Value]) -> String {
    let mut arguments = arguments.iter();
    let mut parts = pattern.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut rest = part.chars();
        if matches!(rest.next(), Some('s' | 'd' | 'v')) {
            out.push_str(&arguments.next().map(print).unwrap_or_default());
            out.push_str(rest.as_str());
        } else {
            out.push('%');
            out.push_str(part);
        }
    }
    out
}
