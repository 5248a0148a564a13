//! Keys that can't be made again, deleted and put back under a running operator.

use std::collections::BTreeMap;

use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};

use crate::harness::{World, until};

const KEYS: [&str; 3] = [
    "blue-ca",
    "blue-front-proxy-ca-certificate",
    "blue-sa-certificate",
];
const REPLACE: &str = "steward.butlerlabs.dev/replace-lost-key";

/// Versions of all objects of the tenant but one.
async fn versions(world: &World, but: &str) -> BTreeMap<String, Value> {
    let objects = world.objects("blue").await.into_iter();
    let others = objects.filter(|(key, _)| !key.ends_with(&format!("/{but}")));
    others
        .map(|(key, object)| (key, object["metadata"]["resourceVersion"].clone()))
        .collect()
}

async fn running(world: &World) {
    world.make_tenant("blue", &json!({})).await;
    world.until_planned("blue").await;
    world
        .until_condition("blue", "ControlPlaneReady", "False", Some("WaitingForPods"))
        .await;
    world
        .until_condition("blue", "CertificatesReady", "True", None)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_key_is_named_nothing_is_rewritten_and_it_heals_when_put_back() {
    let world = World::new().await;
    let cloud = world.play_cloud();
    let operator = world.start(&[]);
    running(&world).await;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.namespace);
    for name in KEYS {
        let mut backup = secrets.get(name).await.unwrap();
        let before = versions(&world, name).await;
        secrets
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
        world
            .until_condition("blue", "CertificatesReady", "False", Some("KeyLost"))
            .await;
        let (_, _, message) = world.condition("blue", "CertificatesReady").await.unwrap();
        assert!(message.contains(&format!("{REPLACE}={name}")), "{message}");
        // Asks for new pods: they would have to start without the key.
        let wish = json!({"spec": {"controlPlane": {"deployment": {"replicas": 2}}}});
        world.patch_tenant("blue", &wish).await;
        // A second tenant shows that the operator has had time to act on the first.
        let witness = format!("witness-{name}");
        world.make_tenant(&witness, &json!({})).await;
        world.until_planned(&witness).await;
        assert_eq!(versions(&world, name).await, before, "{name}");
        assert!(secrets.get_opt(name).await.unwrap().is_none(), "{name}");
        let wish = json!({"spec": {"controlPlane": {"deployment": {"replicas": 1}}}});
        world.patch_tenant("blue", &wish).await;

        backup.metadata.resource_version = None;
        backup.metadata.uid = None;
        backup.metadata.managed_fields = None;
        secrets
            .create(&PostParams::default(), &backup)
            .await
            .unwrap();
        world
            .until_condition("blue", "CertificatesReady", "True", None)
            .await;
        let now = secrets.get(name).await.unwrap();
        assert_eq!(now.data, backup.data, "{name}");
        assert_eq!(versions(&world, name).await, before, "{name}");
    }
    operator.stop().await;
    cloud.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_put_back_by_hand_is_used_once_it_is_offered() {
    let world = World::new().await;
    let cloud = world.play_cloud();
    let operator = world.start(&[]);
    running(&world).await;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.namespace);
    let data = secrets.get("blue-ca").await.unwrap().data.unwrap();
    secrets
        .delete("blue-ca", &DeleteParams::default())
        .await
        .unwrap();
    world
        .until_condition("blue", "CertificatesReady", "False", Some("KeyLost"))
        .await;
    let only: BTreeMap<String, ByteString> = data
        .iter()
        .filter(|(file, _)| file.starts_with("ca."))
        .map(|(file, bytes)| (file.clone(), bytes.clone()))
        .collect();
    let mut bare = Secret {
        data: Some(only),
        ..Secret::default()
    };
    bare.metadata.name = Some("blue-ca".into());
    secrets.create(&PostParams::default(), &bare).await.unwrap();
    world
        .until_condition("blue", "CertificatesReady", "False", Some("ObjectNotOurs"))
        .await;
    let offer = json!({"metadata": {"annotations": {"steward.butlerlabs.dev/adopt": "blue"}}});
    let key = format!("Secret {}/blue-ca", world.namespace);
    world.patch_object(&key, &offer).await;
    world
        .until_condition("blue", "CertificatesReady", "True", None)
        .await;
    let now = secrets.get("blue-ca").await.unwrap();
    assert_eq!(now.data.unwrap(), data, "whole again, and the same");
    let owners = now.metadata.owner_references.unwrap();
    assert_eq!(owners[0].name, "blue");
    let notes = now.metadata.annotations.unwrap_or_default();
    assert!(!notes.contains_key("steward.butlerlabs.dev/adopt"));
    operator.stop().await;
    cloud.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_purpose_a_new_key_is_made_once() {
    let world = World::new().await;
    let cloud = world.play_cloud();
    let operator = world.start(&[]);
    running(&world).await;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.namespace);
    for name in KEYS {
        let before = secrets.get(name).await.unwrap().data.unwrap();
        secrets
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
        world
            .until_condition("blue", "CertificatesReady", "False", Some("KeyLost"))
            .await;
        let wish = json!({"metadata": {"annotations": {REPLACE: name}}});
        world.patch_tenant("blue", &wish).await;
        world
            .until_condition("blue", "CertificatesReady", "True", None)
            .await;
        let after = secrets.get(name).await.unwrap().data.unwrap();
        assert_ne!(before, after, "{name}");
        until("the annotation to go", async || {
            let tenant = world.tenants().get("blue").await.unwrap();
            match tenant.metadata.annotations.unwrap_or_default().get(REPLACE) {
                None => Ok(()),
                Some(left) => Err(left.clone()),
            }
        })
        .await;
    }
    operator.stop().await;
    cloud.abort();
}
