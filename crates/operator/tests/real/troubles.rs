//! What goes wrong around the operator, and that it goes on when the cause is gone.

use serde_json::json;

use crate::{
    faults::{Fault, Faults},
    harness::{World, until},
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use steward_operator::run::Extras;

/// And waits until that was noticed.
async fn stop_the_datastore(world: &mut World) {
    world.etcd.stop();
    until("the DataStore to be not ready", async || {
        let status = world
            .stores()
            .get(&world.store)
            .await
            .unwrap()
            .status
            .unwrap_or_default();
        if status.ready {
            Err("it is ready")
        } else {
            Ok(())
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_throttled_and_cut_off_writes_only_delay_a_tenant() {
    let world = World::new().await;
    let cloud = world.play_cloud();
    let faults = Faults::new(Fault::Refuse(3, 409));
    let client = faults.client(&world.server).await;
    let operator = world.start_with(client, &[], Extras::default());
    for (name, fault) in [
        ("conflicts", Fault::Refuse(3, 409)),
        ("throttled", Fault::Refuse(4, 429)),
        ("broken", Fault::Refuse(5, 500)),
    ] {
        faults.set(fault);
        world.make_tenant(name, &json!({})).await;
        world.until_planned(name).await;
        faults.set(Fault::None);
        world
            .until_condition(name, "ControlPlaneReady", "False", Some("WaitingForPods"))
            .await;
    }
    faults.set(Fault::Away);
    world.make_tenant("unseen", &json!({})).await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    faults.set(Fault::None);
    world.until_planned("unseen").await;
    operator.stop().await;
    cloud.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_datastore_that_goes_away_is_named_and_the_tenant_heals_when_it_is_back() {
    let mut world = World::new().await;
    let cloud = world.play_cloud();
    let operator = world.start(&[]);
    world.make_tenant("before", &json!({})).await;
    world.until_planned("before").await;
    stop_the_datastore(&mut world).await;
    world.make_tenant("during", &json!({})).await;
    world
        .until_condition(
            "during",
            "DatastoreReady",
            "False",
            Some("DatastoreNotReady"),
        )
        .await;
    world.etcd.run().await;
    world.until_planned("during").await;
    world
        .until_condition("during", "DatastoreReady", "True", None)
        .await;
    operator.stop().await;
    cloud.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletion_with_the_datastore_gone_says_so_and_ends_on_the_annotation() {
    let mut world = World::new().await;
    let cloud = world.play_cloud();
    let operator = world.start(&[]);
    for name in ["patient", "hasty"] {
        world.make_tenant(name, &json!({})).await;
        world.until_planned(name).await;
    }
    stop_the_datastore(&mut world).await;
    for name in ["patient", "hasty"] {
        world.delete_tenant(name).await;
        world
            .until_condition(name, "Available", "False", Some("Deleting"))
            .await;
        let (_, _, message) = world.condition(name, "Available").await.unwrap();
        assert!(
            message.contains(&format!("steward.butlerlabs.dev/abandon-datastore={name}")),
            "{message}"
        );
    }
    world.patch_tenant("hasty", &json!({"metadata": {"annotations": {"steward.butlerlabs.dev/abandon-datastore": "hasty"}}})).await;
    world.until_gone("hasty").await;
    assert!(world.tenants().get_opt("patient").await.unwrap().is_some());
    world.etcd.run().await;
    world.until_gone("patient").await;
    operator.stop().await;
    cloud.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_datastore_is_named_and_its_arrival_noticed() {
    let world = World::new().await;
    let cloud = world.play_cloud();
    let operator = world.start(&[]);
    world
        .make_tenant("lost", &json!({"dataStore": "nowhere"}))
        .await;
    world
        .until_condition("lost", "DatastoreReady", "False", Some("DatastoreMissing"))
        .await;
    let mut store = world.stores().get(&world.store).await.unwrap();
    store.metadata = kube::api::ObjectMeta {
        name: Some("nowhere".into()),
        ..Default::default()
    };
    store.status = None;
    world
        .stores()
        .create(&PostParams::default(), &store)
        .await
        .unwrap();
    world
        .until_condition("lost", "DatastoreReady", "True", None)
        .await;
    until("usedBy", async || {
        let status = world
            .stores()
            .get("nowhere")
            .await
            .unwrap()
            .status
            .unwrap_or_default();
        if status.used_by == [format!("{}/lost", world.namespace)] {
            Ok(())
        } else {
            Err(format!("{:?}", status.used_by))
        }
    })
    .await;
    operator.stop().await;
    cloud.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_used_datastore_stays_until_its_last_tenant_is_gone() {
    let world = World::new().await;
    let cloud = world.play_cloud();
    let operator = world.start(&[]);
    world.make_tenant("last", &json!({})).await;
    world.until_planned("last").await;
    until("usedBy", async || {
        let status = world
            .stores()
            .get(&world.store)
            .await
            .unwrap()
            .status
            .unwrap_or_default();
        if status.used_by.is_empty() {
            Err("unused")
        } else {
            Ok(())
        }
    })
    .await;
    world
        .stores()
        .delete(&world.store, &kube::api::DeleteParams::default())
        .await
        .unwrap();
    world.make_tenant("witness", &json!({})).await;
    world.until_planned("witness").await;
    assert!(
        world
            .stores()
            .get_opt(&world.store)
            .await
            .unwrap()
            .is_some()
    );
    for name in ["last", "witness"] {
        world.delete_tenant(name).await;
        world.until_gone(name).await;
    }
    until("the DataStore to go", async || {
        match world.stores().get_opt(&world.store).await.unwrap() {
            None => Ok(()),
            Some(found) => Err(format!("{:?}", found.metadata.finalizers)),
        }
    })
    .await;
    operator.stop().await;
    cloud.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_that_can_not_be_read_stops_nobody() {
    let world = World::new().await;
    let cloud = world.play_cloud();
    // A newer or older CRD may let through what we do not understand.
    let crds: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let open = json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema",
        "value": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}]);
    let open: json_patch::Patch = serde_json::from_value(open).unwrap();
    crds.patch(
        "tenantcontrolplanes.steward.butlerlabs.dev",
        &PatchParams::default(),
        &Patch::<()>::Json(open),
    )
    .await
    .unwrap();
    let odd = json!({"apiVersion": "steward.butlerlabs.dev/v1alpha1", "kind": "TenantControlPlane",
        "metadata": {"name": "odd", "namespace": world.namespace}, "spec": {"kubernetes": {"version": 136}}});
    let request = http::Request::post(format!(
        "/apis/steward.butlerlabs.dev/v1alpha1/namespaces/{}/tenantcontrolplanes",
        world.namespace
    ))
    .header("content-type", "application/json")
    .body(odd.to_string().into_bytes())
    .unwrap();
    until("the schema to open", async || {
        world
            .client
            .request::<serde_json::Value>(request.clone())
            .await
            .map(drop)
    })
    .await;
    let operator = world.start(&[]);
    world.make_tenant("good", &json!({})).await;
    world.until_planned("good").await;
    let events: Api<k8s_openapi::api::events::v1::Event> =
        Api::namespaced(world.client.clone(), &world.namespace);
    until("an event on the odd one", async || {
        let all = events
            .list(&kube::api::ListParams::default())
            .await
            .unwrap();
        let told = all.items.iter().any(|event| {
            event
                .regarding
                .as_ref()
                .and_then(|about| about.name.as_deref())
                == Some("odd")
        });
        if told { Ok(()) } else { Err("none") }
    })
    .await;
    operator.stop().await;
    cloud.abort();
}
