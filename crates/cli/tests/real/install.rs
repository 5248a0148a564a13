use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use serde_json::Value;
use steward_lab::fixture::ApiServer;

use crate::scene::{alone, steward};

#[test]
fn a_dry_run_needs_no_cluster_and_prints_what_can_be_applied() {
    let output = alone()
        .args(["install", "--dry-run", "--set", "gateway.enabled=true"])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let objects: Vec<Value> =
        serde_saphyr::from_multiple(&String::from_utf8(output.stdout).unwrap()).unwrap();
    let kinds: Vec<&str> = objects.iter().filter_map(|o| o["kind"].as_str()).collect();
    assert_eq!(
        kinds[..2],
        ["CustomResourceDefinition", "CustomResourceDefinition"]
    );
    for kind in [
        "ServiceAccount",
        "ClusterRole",
        "Deployment",
        "DataStore",
        "IngressClass",
    ] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
}

/// Its own server: the kinds of the others would hide that it installs them itself.
#[tokio::test]
async fn everything_is_applied_and_a_second_time_changes_nothing() {
    let server = ApiServer::start().await.unwrap();
    let before = steward(server.kubeconfig(), &["get"]).await;
    assert_eq!(before.code, 2);
    assert!(before.err.contains("`steward install`"), "{}", before.err);
    let words = [
        "install",
        "--timeout",
        "0",
        "--set",
        "gateway.enabled=true,replicaCount=3",
    ];
    for _ in 0..2 {
        let ended = steward(server.kubeconfig(), &words).await;
        assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    }
    let client = server.client().await.unwrap();
    let deployments: Api<Deployment> = Api::namespaced(client, "steward-system");
    let operator = deployments.get("steward").await.unwrap();
    assert_eq!(operator.spec.unwrap().replicas, Some(3));
    assert_eq!(
        operator.metadata.generation,
        Some(1),
        "the second time changed something"
    );
    let version = steward(server.kubeconfig(), &["version", "-o", "json"]).await;
    let version: Value = serde_json::from_str(&version.out).unwrap();
    assert!(
        version["operator"]
            .as_str()
            .unwrap()
            .contains("steward-operator"),
        "{version}"
    );
    // Nobody runs pods here: waiting has to end by itself, with a sentence.
    let ended = steward(server.kubeconfig(), &["install", "--timeout", "1"]).await;
    assert_eq!(ended.code, 1);
    assert!(
        ended
            .err
            .contains("Deployment steward is not ready after 1 s"),
        "{}",
        ended.err
    );
}
