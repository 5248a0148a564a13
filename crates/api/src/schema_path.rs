//! Finds the schema of a field by its path: `spec.networkProfile.certSANs[]` is an item of the list.

use serde_json::{Map, Value};

/// The schema at `path`, from the schema of the whole object. The empty path is the object itself.
pub fn schema_at<'a>(
    root: &'a mut Map<String, Value>,
    path: &str,
) -> Option<&'a mut Map<String, Value>> {
    path.split('.')
        .filter(|segment| !segment.is_empty())
        .try_fold(root, |schema, segment| {
            let (name, item) = match segment.strip_suffix("[]") {
                Some(name) => (name, true),
                None => (segment, false),
            };
            let field = schema
                .get_mut("properties")?
                .as_object_mut()?
                .get_mut(name)?
                .as_object_mut()?;
            if item {
                field.get_mut("items")?.as_object_mut()
            } else {
                Some(field)
            }
        })
}
