//! The operator with the rights the chart gives it, and no others.

use std::process::Command;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use steward_lab::{
    parts::{self, Options, Part},
    progress::Progress,
};
use steward_operator::run::Extras;

use crate::harness::World;

/// The chart's roles and bindings, as helm renders them.
fn chart(namespace: &str) -> Vec<Value> {
    let options = Options::from_env().unwrap();
    let helm = parts::ensure(Part::Helm, &options, &Progress::stderr()).unwrap();
    let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/steward");
    let output = Command::new(helm.path("helm").unwrap())
        .args(["template", "steward", chart, "--namespace", namespace])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let documents = text
        .split("\n---")
        .filter_map(|document| serde_saphyr::from_str::<Value>(document).ok());
    documents
        .filter(|object| object["apiVersion"] == "rbac.authorization.k8s.io/v1")
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_chart_s_rights_alone_a_tenant_is_made_and_removed() {
    let world = World::new().await;
    let cloud = world.play_cloud();
    let rules = chart(&world.namespace);
    assert!(rules.len() >= 2, "{rules:?}");
    for object in &rules {
        let (group, plural) = (
            "/apis/rbac.authorization.k8s.io/v1",
            format!("{}s", object["kind"].as_str().unwrap().to_lowercase()),
        );
        let path = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => format!("{group}/namespaces/{namespace}/{plural}"),
            None => format!("{group}/{plural}"),
        };
        let name = object["metadata"]["name"].as_str().unwrap();
        let request = kube::core::Request::new(path)
            .patch(
                name,
                &PatchParams::apply("test").force(),
                &Patch::Apply(object),
            )
            .unwrap();
        world.client.request::<Value>(request).await.unwrap();
    }
    let subject = rules
        .iter()
        .find_map(|object| object["subjects"][0]["name"].as_str())
        .unwrap();
    let mut config = world.server.config().await.unwrap();
    config.auth_info.impersonate = Some(format!(
        "system:serviceaccount:{}:{subject}",
        world.namespace
    ));
    let client = kube::Client::try_from(config).unwrap();
    let operator = world.start_with(client, &["--leader-elect=true"], Extras::default());
    world.make_tenant("blue", &json!({})).await;
    world.until_planned("blue").await;
    world
        .until_condition("blue", "ControlPlaneReady", "False", Some("WaitingForPods"))
        .await;
    world.delete_tenant("blue").await;
    world.until_gone("blue").await;
    assert!(
        operator.metric(
            "steward_writes_total{cluster=\"management\",kind=\"Secret\",result=\"failed\""
        ) < 0.5
    );
    operator.stop().await;
    cloud.abort();
}
