use super::*;

fn walk<'a>(schema: &'a Value, path: &str, found: &mut Vec<(String, &'a Value)>) {
    found.push((path.to_owned(), schema));
    if let Some(Value::Object(properties)) = schema.get("properties") {
        for (name, inner) in properties {
            walk(inner, &format!("{path}.{name}"), found);
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner @ Value::Object(_)) = schema.get(key) {
            walk(inner, &format!("{path}[]"), found);
        }
    }
}

fn schema(crd: &CustomResourceDefinition) -> Value {
    let crd = serde_json::to_value(crd).unwrap();
    crd.pointer("/spec/versions/0/schema/openAPIV3Schema")
        .unwrap()
        .clone()
}

#[test]
fn every_field_has_a_description() {
    for crd in all().unwrap() {
        let root = schema(&crd);
        let mut fields = Vec::new();
        walk(&root, "", &mut fields);
        let silent: Vec<_> = fields
            .iter()
            .filter(|(path, _)| !path.ends_with("[]"))
            .filter(|(_, field)| {
                field
                    .get("description")
                    .and_then(Value::as_str)
                    .is_none_or(str::is_empty)
            })
            .map(|(path, _)| path)
            .collect();
        assert!(
            silent.is_empty(),
            "{}: no description on {silent:?}",
            crd.spec.names.kind
        );
    }
}

#[test]
fn every_crd_fits_into_the_annotation_of_kubectl_apply() {
    for crd in all().unwrap() {
        let size = serde_json::to_vec(&crd).unwrap().len();
        assert!(size < SIZE_LIMIT, "{} is {size} bytes", crd.spec.names.kind);
    }
}

#[test]
fn nothing_is_nullable() {
    for crd in all().unwrap() {
        let root = schema(&crd);
        let mut fields = Vec::new();
        walk(&root, "", &mut fields);
        let nullable: Vec<_> = fields
            .iter()
            .filter(|(_, f)| f.get("nullable").is_some())
            .map(|(p, _)| p)
            .collect();
        assert!(nullable.is_empty(), "{nullable:?}");
    }
}

#[test]
fn the_columns_and_the_scale_subresource_are_those_of_the_original() {
    let crd = tenant_control_plane().unwrap();
    let version = &crd.spec.versions[0];
    let columns: Vec<_> = version
        .additional_printer_columns
        .iter()
        .flatten()
        .map(|c| c.name.as_str())
        .collect();
    let expected = [
        "Version",
        "Installed Version",
        "Status",
        "Control-Plane endpoint",
        "Kubeconfig",
        "Datastore",
        "Age",
    ];
    assert_eq!(columns, expected);
    let scale = version
        .subresources
        .as_ref()
        .unwrap()
        .scale
        .as_ref()
        .unwrap();
    assert_eq!(
        scale.spec_replicas_path,
        ".spec.controlPlane.deployment.replicas"
    );
    assert_eq!(
        crd.spec.names.short_names.as_deref(),
        Some(&["tcp".to_owned()][..])
    );
}

#[test]
fn every_rule_has_a_sentence_that_says_what_to_do() {
    for rule in rules::tenant().iter().chain(&rules::data_store()) {
        let message = &rule.message;
        assert!(
            message.contains(": ") || message.contains(" must "),
            "{message}"
        );
        let says = [
            "write", "keep", "choose", "give", "name", "rename", "remove", "make", "start",
            "change", "put", "mount", "set", "use", "must be",
        ];
        assert!(says.iter().any(|word| message.contains(word)), "{message}");
        assert!(!message.contains("  "), "{message}");
    }
}
