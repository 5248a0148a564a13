//! What is removed and what is not.

use serde_json::json;
use steward_plan::Stage;

use super::*;

fn live(objects: &[(&str, &str)]) -> Live {
    let mut live = Live::default();
    for (name, tenant) in objects {
        live.insert(
            ObjectKey::new(Kind::Secret, "n", *name),
            json!({"metadata": {"name": name, "namespace": "n", "uid": name, "labels": {"tenant": tenant},
                "managedFields": [{"manager": owned::MANAGER, "operation": "Apply", "fieldsV1": {}}]}}),
        );
    }
    live
}

fn planned(name: &str) -> Object {
    Object {
        key: ObjectKey::new(Kind::Secret, "n", name),
        stage: Stage::Pki,
        because: "test",
        body: json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "n"}}),
    }
}

fn prune() -> Prune {
    Prune {
        kinds: vec![Kind::Secret],
        namespaces: vec!["n".into()],
        labels: [("tenant".to_owned(), "a".to_owned())].into(),
        keep: vec![ObjectKey::new(Kind::Secret, "n", "kept")],
    }
}

#[test]
fn only_what_is_ours_and_unplanned_and_not_kept_is_removed() {
    let live = live(&[
        ("planned", "a"),
        ("kept", "a"),
        ("foreign", "b"),
        ("old", "a"),
    ]);
    let names: Vec<_> = unwanted(&prune(), &[planned("planned")], &live)
        .into_iter()
        .map(|(key, _)| key.name)
        .collect();
    assert_eq!(names, ["old"]);
}

#[test]
fn what_kubernetes_made_with_our_labels_stays() {
    let mut live = live(&[("copied", "a")]);
    live.0.values_mut().for_each(|object| {
        Arc::make_mut(object)["metadata"]["managedFields"][0]["manager"] =
            json!("kube-controller-manager");
    });
    assert!(unwanted(&prune(), &[], &live).is_empty());
}

#[test]
fn a_prune_without_labels_removes_nothing() {
    let prune = Prune {
        labels: [].into(),
        ..prune()
    };
    assert!(unwanted(&prune, &[], &live(&[("old", "a")])).is_empty());
}
