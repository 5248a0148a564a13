//! Schemas of Kubernetes' own types inside ours: whole, but with short descriptions.
//!
//! Their full descriptions are four fifths of a CRD and would push it past what `kubectl apply` can
//! store in its annotation. Types and field names stay, so the API server still refuses a
//! misspelled or misshapen pod fragment.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};

/// How long a description of an embedded field may be.
const LONGEST: usize = 60;

/// What Kubernetes accepts as a quantity.
const QUANTITY: &str =
    "^[+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$";

/// Stands for `T` in `#[schemars(with = …)]`.
pub(crate) struct Embedded<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for Embedded<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        if let Some(object) = schema.as_object_mut() {
            shorten(object);
        }
        schema
    }
}

fn shorten(schema: &mut Map<String, Value>) {
    let quantity = is_quantity(schema);
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = short(text);
    }
    if quantity {
        schema.remove("description");
        schema.insert("pattern".into(), QUANTITY.into());
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties
            .values_mut()
            .filter_map(Value::as_object_mut)
            .for_each(shorten);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(Value::Object(inner)) = schema.get_mut(key) {
            shorten(inner);
            inner.remove("description");
        }
    }
}

fn is_quantity(schema: &Map<String, Value>) -> bool {
    let described = schema
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default();
    schema.contains_key("x-kubernetes-int-or-string") && described.starts_with("Quantity is")
}

/// The first sentence, or as much of it as fits.
fn short(text: &str) -> String {
    let text = text.lines().next().unwrap_or_default();
    let sentence = text
        .split_once(". ")
        .map_or(text, |(first, _)| first)
        .trim_end_matches('.');
    if sentence.chars().count() <= LONGEST {
        return format!("{sentence}.");
    }
    let cut: String = sentence.chars().take(LONGEST).collect();
    let end = cut.rfind(' ').unwrap_or(cut.len());
    format!("{}…", &cut[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_cut_at_its_first_sentence() {
        assert_eq!(short("Name of it. Must be unique.\nMore."), "Name of it.");
        assert_eq!(short("Name of it"), "Name of it.");
    }

    #[test]
    fn a_long_sentence_is_cut_between_words() {
        let long = short(&"word ".repeat(60));
        assert!(
            long.ends_with("word…") && long.chars().count() <= LONGEST + 1,
            "{long}"
        );
    }
}
