//! Every object of a dozen tenants, as YAML that can be read in review.
//!
//! `STEWARD_GOLDEN=write cargo test -p steward-plan` writes the files anew. Keys and
//! certificates are described, not printed; checksums are left out.

use std::{fmt::Write as _, path::PathBuf};

use serde_json::{Map, Value, json};
use steward_pki::{Facts, Reading, inspect};
use steward_plan::{Object, secret};

use crate::world::World;

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name)
}

fn names() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder("tenants"))
        .unwrap()
        .map(|entry| {
            entry
                .unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    names.sort();
    names
}

#[test]
fn every_tenant_gives_the_objects_that_were_reviewed() {
    let write = std::env::var("STEWARD_GOLDEN").is_ok_and(|value| value == "write");
    let mut wrong = Vec::new();
    for name in names() {
        let manifest =
            std::fs::read_to_string(folder("tenants").join(format!("{name}.yaml"))).unwrap();
        let mut world = World::new(&manifest);
        let round = world.settle();
        let status = serde_json::to_value(&round.report.status).unwrap();
        let text = document(&round.plan.objects, &round.plan.tenant_objects, &status);
        let path = folder("golden").join(format!("{name}.yaml"));
        if write {
            std::fs::write(&path, text).unwrap();
        } else if std::fs::read_to_string(&path).unwrap_or_default() != text {
            wrong.push(name);
        }
    }
    assert!(
        wrong.is_empty(),
        "{wrong:?} differ from tests/golden: if that is meant, write them with \
         STEWARD_GOLDEN=write cargo test -p steward-plan, and read the difference"
    );
}

#[test]
fn there_are_a_dozen_and_the_first_seed_is_among_them() {
    let names = names();
    assert!(names.len() >= 12, "{names:?}");
    assert!(names.contains(&"seed-1".to_owned()), "{names:?}");
}

fn document(outside: &[Object], inside: &[Object], status: &Value) -> String {
    let mut text = String::new();
    for (title, objects) in [("management cluster", outside), ("tenant cluster", inside)] {
        for object in objects {
            let _ = writeln!(text, "---\n# {title}: {} ({})", object.key, object.because);
            text.push_str(&serde_saphyr::to_string(&described(&object.body)).unwrap());
        }
    }
    text.push_str("---\n# status\n");
    text.push_str(&serde_saphyr::to_string(&without_sums(status.clone())).unwrap());
    text
}

/// The body with its secrets described.
fn described(body: &Value) -> Value {
    let mut body = body.clone();
    if body["kind"] == "Secret" {
        let data: Map<String, Value> = secret::data(&body)
            .into_iter()
            .map(|(key, text)| (key.clone(), json!(describe(&key, &text))))
            .collect();
        body["data"] = Value::Object(data);
    }
    if let Some(data) = body.get_mut("data").and_then(Value::as_object_mut) {
        for value in data.values_mut() {
            let text = value.as_str().unwrap_or_default();
            if let Some(reading) = Reading::parse(text).filter(|reading| reading.client.is_none()) {
                *value = json!(format!("kubeconfig of {}", reading.server));
            } else if text.starts_with("-----BEGIN CERTIFICATE") {
                *value = json!(describe("", text));
            }
        }
    }
    without_sums(body)
}

fn describe(key: &str, text: &str) -> String {
    if let Some(reading) = Reading::parse(text) {
        let client = reading.client.unwrap();
        let facts = inspect(&client.certificate).unwrap();
        return format!("kubeconfig of {}, as {}", reading.server, sentence(&facts));
    }
    if let Ok(facts) = inspect(text) {
        return sentence(&facts);
    }
    if text.contains("PRIVATE KEY") || key == "DB_PASSWORD" {
        return "(secret)".into();
    }
    if text.contains("PUBLIC KEY") {
        return "public key".into();
    }
    text.to_owned()
}

fn sentence(facts: &Facts) -> String {
    let mut text = format!("certificate of {}", facts.common_name);
    if let Some(organization) = &facts.organization {
        let _ = write!(text, " ({organization})");
    }
    let usage = match (facts.is_ca, facts.server, facts.client) {
        (true, ..) => "authority",
        (_, true, true) => "server and client",
        (_, true, false) => "server",
        (_, false, true) => "client",
        (_, false, false) => "nothing",
    };
    let _ = write!(text, ", {usage}, until {}", facts.not_after);
    if !facts.is_ca && !facts.sans.is_empty() {
        let names: Vec<String> = facts.sans.iter().map(ToString::to_string).collect();
        let _ = write!(text, ", for {}", names.join(" "));
    }
    text
}

/// Checksums change with every key: they say nothing in review.
fn without_sums(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.retain(|key, _| {
                key != "checksum"
                    && !key.starts_with("component.steward.butlerlabs.dev/")
                    && key != "steward.butlerlabs.dev/checksum"
                    && key != "steward.butlerlabs.dev/config"
                    && key != "steward.butlerlabs.dev/trust"
            });
            for child in fields.values_mut() {
                *child = without_sums(child.take());
            }
        }
        Value::Array(list) => {
            for child in list {
                *child = without_sums(child.take());
            }
        }
        _ => {}
    }
    value
}
