//! A tenant's life in the management cluster.

use serde_json::json;

use crate::harness::{World, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_gets_everything_a_control_plane_needs() {
    let world = World::new().await;
    let operator = world.start(&[]);
    let tenant = world.make_tenant("blue", &json!({})).await;
    world
        .until_condition("blue", "EndpointReady", "False", Some("WaitingForAddress"))
        .await;
    world.give_address("blue", "10.40.0.7").await;
    world.until_planned("blue").await;
    let keys: Vec<String> = world
        .objects("blue")
        .await
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    for name in [
        "Deployment {ns}/blue",
        "Service {ns}/blue",
        "Secret {ns}/blue-ca",
        "Secret {ns}/blue-admin-kubeconfig",
        "Secret {ns}/blue-api-server-certificate",
        "Secret {ns}/blue-datastore-certificate",
        "ConfigMap {ns}/blue-kubeadmconfig",
    ] {
        let key = name.replace("{ns}", &world.namespace);
        assert!(keys.contains(&key), "{key} is not among {keys:?}");
    }
    let users = world.etcd.etcdctl("root", &["user", "list"]).unwrap();
    assert!(
        users.contains(tenant.metadata.uid.as_ref().unwrap()),
        "{users}"
    );
    world.run_pods("blue").await;
    world
        .until_condition("blue", "ControlPlaneReady", "True", None)
        .await;
    until("the endpoint in the status", async || {
        let status = world.tenants().get("blue").await.unwrap().status.unwrap();
        match status.control_plane_endpoint.as_deref() {
            Some("10.40.0.7:6443") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_tenant_leaves_nothing_in_the_datastore() {
    let world = World::new().await;
    let operator = world.start(&[]);
    let tenant = world.make_tenant("red", &json!({})).await;
    world.give_address("red", "10.40.0.8").await;
    world.until_planned("red").await;
    let uid = tenant.metadata.uid.unwrap();
    world
        .etcd
        .etcdctl("root", &["put", &format!("/{uid}/registry/x"), "1"])
        .unwrap();
    world.delete_tenant("red").await;
    world.until_gone("red").await;
    assert_eq!(
        world
            .etcd
            .etcdctl("root", &["get", "/", "--prefix", "--keys-only"])
            .unwrap()
            .trim(),
        ""
    );
    assert_eq!(
        world.etcd.etcdctl("root", &["user", "list"]).unwrap(),
        "root\n"
    );
    assert_eq!(
        world.etcd.etcdctl("root", &["role", "list"]).unwrap(),
        "root\n"
    );
    operator.stop().await;
}
