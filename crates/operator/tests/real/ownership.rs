//! Objects of somebody else that have the names a tenant needs: they survive it, from beginning to end.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use steward_operator::{
    apply::{Cluster, Engine, Outcome, path},
    error::Error,
    metrics::Metrics,
};
use steward_plan::{Kind, Live, Object, ObjectKey, Prune, Stage};

use crate::harness::{World, until};

/// What may be there before: of every kind that a tenant consists of.
fn foreign() -> Vec<(Kind, &'static str, Value, &'static str)> {
    let pod = json!({"metadata": {"labels": {"app": "shop"}}, "spec": {"containers": [{"name": "shop", "image": "shop:1"}]}});
    let selector = json!({"matchLabels": {"app": "shop"}});
    let backend = json!({"service": {"name": "shop", "port": {"number": 80}}});
    vec![
        (
            Kind::Deployment,
            "web",
            json!({"spec": {"replicas": 3, "selector": selector, "template": pod}}),
            "ControlPlaneReady",
        ),
        (
            Kind::Service,
            "web",
            json!({"spec": {"ports": [{"name": "http", "port": 80}], "selector": {"app": "shop"}}}),
            "EndpointReady",
        ),
        (
            Kind::Secret,
            "web-ca",
            json!({"data": {"password": "c2VjcmV0"}}),
            "CertificatesReady",
        ),
        (
            Kind::Secret,
            "web-sa-certificate",
            json!({"data": {"sa.key": "c2VjcmV0"}}),
            "CertificatesReady",
        ),
        (
            Kind::Secret,
            "web-admin-kubeconfig",
            json!({"data": {"admin.conf": "c2VjcmV0"}}),
            "CertificatesReady",
        ),
        (
            Kind::ConfigMap,
            "web-kubeadmconfig",
            json!({"data": {"a": "b"}}),
            "CertificatesReady",
        ),
        (
            Kind::PodDisruptionBudget,
            "web",
            json!({"spec": {"maxUnavailable": 1, "selector": selector}}),
            "ControlPlaneReady",
        ),
        (
            Kind::Ingress,
            "web",
            json!({"spec": {"rules": [{"host": "shop.example.com", "http": {"paths": [
                {"path": "/", "pathType": "Prefix", "backend": backend}]}}]}}),
            "EndpointReady",
        ),
    ]
}

async fn create(world: &World, kind: Kind, name: &str, content: &Value, labels: Value) -> Value {
    let mut body = content.clone();
    body["apiVersion"] = json!(kind.api_version());
    body["kind"] = json!(kind.names().2);
    body["metadata"] = json!({"name": name, "namespace": world.namespace, "labels": labels});
    let request = http::Request::post(path(kind, Some(&world.namespace)))
        .header("content-type", "application/json")
        .body(body.to_string().into_bytes())
        .unwrap();
    world.client.request(request).await.unwrap()
}

/// An object to its last byte: nobody but the operator under test writes here.
async fn read(world: &World, kind: Kind, name: &str) -> Option<Value> {
    let key = ObjectKey::new(kind, &world.namespace, name);
    engine(world).get(&key).await.unwrap()
}

fn engine(world: &World) -> Engine {
    Engine::new(
        world.client.clone(),
        Cluster::Management,
        Metrics::default(),
    )
}

/// With an Ingress, since its object has the tenant's name too.
fn spec() -> Value {
    json!({"controlPlane": {"deployment": {"replicas": 2}, "service": {"serviceType": "ClusterIP"},
        "ingress": {"hostname": "web.example.com"}}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_belongs_to_somebody_else_survives_a_tenant_of_its_name() {
    let world = World::new().await;
    let operator = world.start(&[]);
    let ours =
        json!({"steward.butlerlabs.dev/name": "web", "steward.butlerlabs.dev/project": "steward"});
    for labels in [json!({}), ours] {
        for (kind, name, content, condition) in foreign() {
            create(&world, kind, name, &content, labels.clone()).await;
            let before = read(&world, kind, name).await.unwrap();
            world.make_tenant("web", &spec()).await;
            world
                .until_condition("web", condition, "False", Some("ObjectNotOurs"))
                .await;
            let (_, _, message) = world.condition("web", condition).await.unwrap();
            let named = format!("{} {}/{name}", kind.names().2, world.namespace);
            assert!(message.contains(&named), "{message}");
            assert!(message.contains("has no owner"), "{message}");
            world.delete_tenant("web").await;
            world.until_gone("web").await;
            let after = read(&world, kind, name).await;
            assert_eq!(after.as_ref(), Some(&before), "{named} {labels}");
            world.delete_object(&named).await;
            world.sweep("web").await;
        }
    }
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_goes_on_when_the_object_in_its_way_is_gone() {
    let world = World::new().await;
    let operator = world.start(&[]);
    let (kind, name, content, condition) = foreign().remove(0);
    create(&world, kind, name, &content, json!({})).await;
    world.make_tenant("web", &spec()).await;
    world
        .until_condition("web", condition, "False", Some("ObjectNotOurs"))
        .await;
    // A second tenant of the same namespace is not concerned.
    let other = json!({"controlPlane": {"service": {"serviceType": "ClusterIP"}, "ingress": {"hostname": "other.example.com"}}});
    world.make_tenant("other", &other).await;
    world.until_planned("other").await;
    world
        .delete_object(&format!("Deployment {}/web", world.namespace))
        .await;
    world.until_planned("web").await;
    world
        .until_condition("web", condition, "False", Some("WaitingForPods"))
        .await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_was_made_for_an_earlier_tenant_is_used_when_offered() {
    let world = World::new().await;
    let operator = world.start(&[]);
    world.make_tenant("web", &spec()).await;
    world.until_planned("web").await;
    let secret = format!("Secret {}/web-ca", world.namespace);
    let ca = async || {
        let objects = world.objects("web").await;
        let found = objects.into_iter().find(|(key, _)| *key == secret);
        found.unwrap().1
    };
    let before = ca().await;
    // No garbage collector here: everything stays behind, as after a restore from a backup.
    world.delete_tenant("web").await;
    world.until_gone("web").await;
    world.make_tenant("web", &spec()).await;
    world
        .until_condition("web", "CertificatesReady", "False", Some("ObjectNotOurs"))
        .await;
    let (_, _, message) = world.condition("web", "CertificatesReady").await.unwrap();
    assert!(
        message.contains("was made for an earlier TenantControlPlane web"),
        "{message}"
    );
    for (key, _) in world.objects("web").await {
        let offer = json!({"metadata": {"annotations": {"steward.butlerlabs.dev/adopt": "web"}}});
        world.patch_object(&key, &offer).await;
    }
    world
        .until_condition("web", "CertificatesReady", "True", None)
        .await;
    world.until_planned("web").await;
    let uid = world.tenants().get("web").await.unwrap().metadata.uid;
    until("everything to have its new owner", async || {
        let objects = world.objects("web").await;
        let other = objects.iter().find(|(_, object)| {
            let owners = object["metadata"]["ownerReferences"].as_array();
            owners.is_none_or(|all| all.len() != 1 || all[0]["uid"].as_str() != uid.as_deref())
        });
        other.map_or(Ok(()), |(key, _)| Err(key.clone()))
    })
    .await;
    assert_eq!(ca().await["data"], before["data"], "the same authority");
    operator.stop().await;
}

/// An object with an owner, as plans have them.
fn owned(world: &World, uid: &str, value: &str) -> Object {
    Object {
        key: ObjectKey::new(Kind::ConfigMap, &world.namespace, "thing"),
        stage: Stage::Config,
        because: "the test wants it",
        body: json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": "thing", "namespace": world.namespace, "labels": {"mine": "yes"},
            "ownerReferences": [{"apiVersion": "steward.butlerlabs.dev/v1alpha1",
                "kind": "TenantControlPlane", "name": "t", "uid": uid, "controller": true}]},
            "data": {"a": value}}),
    }
}

/// Between reading and writing an object may be replaced by one of the same name. The API server itself must refuse
/// then, whatever was read.
#[tokio::test]
async fn what_was_exchanged_since_it_was_read_is_not_written_nor_removed() {
    let world = World::new().await;
    let engine = engine(&world);
    let seen = match engine.apply(&owned(&world, "1", "x"), None).await.unwrap() {
        Outcome::Created(seen) => seen,
        other => panic!("{other:?}"),
    };
    let key = format!("ConfigMap {}/thing", world.namespace);
    world.delete_object(&key).await;

    // It went, and a write by uid does not make it again.
    let change = owned(&world, "1", "y");
    let error = engine.apply(&change, Some(&seen)).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert!(read(&world, Kind::ConfigMap, "thing").await.is_none());

    // Somebody else made another.
    let theirs = json!({"data": {"theirs": "1"}});
    create(
        &world,
        Kind::ConfigMap,
        "thing",
        &theirs,
        json!({"mine": "yes"}),
    )
    .await;
    let before = read(&world, Kind::ConfigMap, "thing").await;
    engine.apply(&change, Some(&seen)).await.unwrap_err();
    let unseen = engine.apply(&change, None).await.unwrap_err();
    assert!(matches!(unseen, Error::NotOurs { .. }), "{unseen}");
    let mut live = Live::default();
    live.insert(change.key.clone(), seen);
    let mut planned = change.clone();
    planned.key.name = "other".into();
    let prune = Prune {
        kinds: vec![Kind::ConfigMap],
        namespaces: vec![world.namespace.clone()],
        labels: BTreeMap::from([("mine".to_owned(), "yes".to_owned())]),
        keep: Vec::new(),
    };
    let removed = engine.prune(&prune, &[planned], &live).await;
    assert!(matches!(&removed[..], [Err(_)]), "{removed:?}");
    assert_eq!(read(&world, Kind::ConfigMap, "thing").await, before);
}

/// What carries our labels and was even applied under our name, but belongs to another, is not removed.
#[tokio::test]
async fn only_what_has_the_same_owner_is_left_over() {
    let world = World::new().await;
    let engine = engine(&world);
    let theirs = owned(&world, "2", "x");
    engine.apply(&theirs, None).await.unwrap();
    let kinds = [Kind::ConfigMap];
    let live = engine
        .list(&kinds, Some(&world.namespace), "mine=yes")
        .await
        .unwrap();
    assert_eq!(live.0.len(), 1);
    let mut planned = owned(&world, "1", "x");
    planned.key.name = "other".into();
    let prune = |labels: &str| Prune {
        kinds: kinds.to_vec(),
        namespaces: vec![world.namespace.clone()],
        labels: BTreeMap::from([(labels.to_owned(), "yes".to_owned())]),
        keep: Vec::new(),
    };
    let removed = engine.prune(&prune("mine"), &[planned], &live).await;
    assert!(removed.is_empty(), "{removed:?}");
    let mut own = theirs.clone();
    own.key.name = "other".into();
    let removed = engine.prune(&prune("mine"), &[own], &live).await;
    assert_eq!(removed.len(), 1);
    assert!(read(&world, Kind::ConfigMap, "thing").await.is_none());
}
