//! Bad datastores, broken Secrets, namespaces that go: the condition names it, nobody else suffers, and it heals
//! when the cause goes away.

use k8s_openapi::{
    ByteString,
    api::core::v1::{Namespace, ResourceQuota, Secret},
};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use steward_api::DataStore;
use steward_operator::datastore::etcd::Etcd;

use crate::{
    harness::{World, until},
    programs::EtcdServer,
};

/// A second datastore of a world, with credentials of its own.
async fn store(world: &World, name: &str, server: &EtcdServer, user: &str) {
    credentials(world, name, server, user).await;
    let reference = |key: &str| json!({"secretReference": {"name": name, "namespace": world.namespace, "keyPath": key}});
    let store: DataStore = serde_json::from_value(json!({
        "apiVersion": "steward.butlerlabs.dev/v1alpha1", "kind": "DataStore", "metadata": {"name": name},
        "spec": {"driver": "etcd", "endpoints": [server.endpoint], "tlsConfig": {
            "certificateAuthority": {"certificate": reference("ca.crt"), "privateKey": reference("ca.key")},
            "clientCertificate": {"certificate": reference("tls.crt"), "privateKey": reference("tls.key")}}},
    }))
    .unwrap();
    world
        .stores()
        .create(&PostParams::default(), &store)
        .await
        .unwrap();
}

async fn bootstrap(server: &EtcdServer) {
    let mut etcd = Etcd::connect(&server.root()).await.unwrap();
    etcd.bootstrap().await.unwrap();
}

async fn credentials(world: &World, name: &str, server: &EtcdServer, user: &str) {
    let access = server.access(user);
    let bytes = |text: String| ByteString(text.into_bytes());
    let data = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {
        "ca.crt": bytes(access.ca), "ca.key": bytes(server.authority.pair().key.clone()),
        "tls.crt": bytes(access.certificate), "tls.key": bytes(access.key)}});
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.namespace);
    let params = PatchParams::apply("test").force();
    secrets
        .patch(name, &params, &Patch::Apply(data))
        .await
        .unwrap();
}

/// The reason of a datastore's Ready condition, as soon as it is this one.
async fn until_store(world: &World, name: &str, reason: &str) {
    until(&format!("DataStore {name} to be {reason}"), async || {
        let status = world
            .stores()
            .get(name)
            .await
            .unwrap()
            .status
            .unwrap_or_default();
        let ready = status.conditions.iter().find(|c| c.type_ == "Ready");
        match ready {
            Some(ready) if ready.reason == reason => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// The tenant of the broken store says why, and a tenant of another store comes up.
async fn only_the_one_outside_waits(world: &World, why: &str) {
    world
        .until_condition(
            "outside",
            "DatastoreReady",
            "False",
            Some("DatastoreNotReady"),
        )
        .await;
    let (_, _, message) = world.condition("outside", "DatastoreReady").await.unwrap();
    assert!(message.contains(why), "{message}");
    world.make_tenant("inside", &json!({})).await;
    world.until_planned("inside").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_datastore_with_wrong_credentials_is_named_and_its_tenant_heals_with_right_ones() {
    let world = World::new().await;
    let cloud = world.play_cloud();
    let server = EtcdServer::start(&[]).await;
    bootstrap(&server).await;
    let name = format!("{}-denied", world.namespace);
    store(&world, &name, &server, "stranger").await;
    let operator = world.start(&[]);
    world
        .make_tenant("outside", &json!({"dataStore": name}))
        .await;
    until_store(&world, &name, "DatastoreDenied").await;
    only_the_one_outside_waits(&world, "CN root").await;

    credentials(&world, &name, &server, "root").await;
    until_store(&world, &name, "Ready").await;
    world
        .until_condition("outside", "DatastoreReady", "True", None)
        .await;
    operator.stop().await;
    cloud.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_datastore_is_named_and_used_again_when_there_is_room() {
    let world = World::new().await;
    let cloud = world.play_cloud();
    let server = EtcdServer::start(&["--quota-backend-bytes=4194304"]).await;
    bootstrap(&server).await;
    let name = format!("{}-full", world.namespace);
    store(&world, &name, &server, "root").await;
    let value = "x".repeat(100_000);
    let full = (0..100).any(|number| {
        let key = format!("/ballast/{number}");
        server.etcdctl("root", &["put", &key, &value]).is_err()
    });
    assert!(full, "the quota was not reached");
    let operator = world.start(&[]);
    until_store(&world, &name, "DatastoreFull").await;
    world
        .make_tenant("outside", &json!({"dataStore": name}))
        .await;
    only_the_one_outside_waits(&world, "NOSPACE").await;

    let root = |arguments: &[&str]| server.etcdctl("root", arguments).unwrap();
    root(&["del", "/ballast/", "--prefix"]);
    let status = root(&["endpoint", "status", "-w", "fields"]);
    let revision = status
        .lines()
        .find_map(|line| line.strip_prefix("\"Revision\" : "));
    root(&["compact", revision.unwrap(), "--physical"]);
    root(&["defrag"]);
    root(&["alarm", "disarm"]);
    world
        .until_condition("outside", "DatastoreReady", "True", None)
        .await;
    operator.stop().await;
    cloud.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_secret_heals_and_a_broken_authority_is_named_until_it_is_brought_back() {
    let world = World::new().await;
    let cloud = world.play_cloud();
    let operator = world.start(&[]);
    for name in ["broken", "whole"] {
        world.make_tenant(name, &json!({})).await;
        world.until_planned(name).await;
    }
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.namespace);
    let rust = |keys: &[&str]| {
        let data: serde_json::Map<_, _> = keys
            .iter()
            .map(|key| ((*key).to_owned(), json!("cnVzdA==")))
            .collect();
        Patch::Merge(json!({"data": data}))
    };
    let params = PatchParams::default();
    let leaf = "broken-api-server-certificate";
    secrets
        .patch(leaf, &params, &rust(&["apiserver.crt"]))
        .await
        .unwrap();
    until("the certificate to be made anew", async || {
        let data = secrets.get(leaf).await.unwrap().data.unwrap();
        let text = String::from_utf8_lossy(&data["apiserver.crt"].0).into_owned();
        if text.contains("BEGIN CERTIFICATE") {
            Ok(())
        } else {
            Err(text)
        }
    })
    .await;

    let good = secrets.get("broken-ca").await.unwrap().data.unwrap();
    let every: Vec<&str> = good.keys().map(String::as_str).collect();
    secrets
        .patch("broken-ca", &params, &rust(&every))
        .await
        .unwrap();
    world
        .until_condition("broken", "CertificatesReady", "False", Some("KeyLost"))
        .await;
    let (_, _, message) = world
        .condition("broken", "CertificatesReady")
        .await
        .unwrap();
    assert!(message.contains("broken-ca"), "{message}");
    world
        .patch_tenant(
            "whole",
            &json!({"spec": {"controlPlane": {"deployment": {"replicas": 1}}}}),
        )
        .await;
    world.until_planned("whole").await;

    let good: Patch<serde_json::Value> = Patch::Merge(json!({"data": good}));
    secrets.patch("broken-ca", &params, &good).await.unwrap();
    world
        .until_condition("broken", "CertificatesReady", "True", None)
        .await;
    operator.stop().await;
    cloud.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_on_objects_is_named_and_a_namespace_that_goes_takes_its_tenant_along() {
    let world = World::new().await;
    let cloud = world.play_cloud();
    let quotas: Api<ResourceQuota> = Api::namespaced(world.client.clone(), &world.namespace);
    let quota: ResourceQuota = serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
        "spec": {"hard": {"count/deployments.apps": "0"}},
        "status": {"hard": {"count/deployments.apps": "0"}, "used": {"count/deployments.apps": "0"}}}))
    .unwrap();
    quotas.create(&PostParams::default(), &quota).await.unwrap();
    // No controller here counts for us; without a status a quota is not in force.
    let status = Patch::Merge(json!({"status": quota.status}));
    quotas
        .patch_status("none", &PatchParams::default(), &status)
        .await
        .unwrap();
    let operator = world.start(&[]);
    world.make_tenant("stopped", &json!({})).await;
    world
        .until_condition(
            "stopped",
            "ControlPlaneReady",
            "False",
            Some("QuotaExceeded"),
        )
        .await;
    quotas
        .delete("none", &DeleteParams::default())
        .await
        .unwrap();
    world.until_planned("stopped").await;

    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    namespaces
        .delete(&world.namespace, &DeleteParams::default())
        .await
        .unwrap();
    let secret = format!("Secret {}/stopped-api-server-certificate", world.namespace);
    world.delete_object(&secret).await;
    world
        .until_condition(
            "stopped",
            "CertificatesReady",
            "False",
            Some("NamespaceTerminating"),
        )
        .await;
    world.delete_tenant("stopped").await;
    world.until_gone("stopped").await;
    operator.stop().await;
    cloud.abort();
}
