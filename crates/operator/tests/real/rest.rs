//! At rest nothing is written; what someone changes comes back.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

use steward_operator::run::Extras;

use crate::{
    faults::{Fault, Faults},
    harness::{World, until},
};

/// Writes in the audit log by what they were about, without those of the test itself.
fn audited_writes(world: &World) -> BTreeMap<String, usize> {
    let text = std::fs::read_to_string(world.server.audit_log()).unwrap();
    let mut writes = BTreeMap::new();
    for line in text.lines() {
        let Ok(event) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let verb = event["verb"].as_str().unwrap_or_default();
        if ["get", "list", "watch"].contains(&verb)
            || event["user"]["username"]
                .as_str()
                .is_some_and(|user| user.starts_with("system:"))
        {
            continue;
        }
        let reference = &event["objectRef"];
        let what = format!(
            "{verb} {} {}",
            reference["resource"].as_str().unwrap_or("?"),
            reference["name"].as_str().unwrap_or("?")
        );
        *writes.entry(what).or_insert(0) += 1;
    }
    writes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_rest_nothing_is_written_in_a_full_resync_nor_after_a_restart() {
    let world = World::new().await;
    let cloud = world.play_cloud();
    let operator = world.start(&["--cache-resync-period=2s"]);
    for name in ["a", "b", "c"] {
        world.make_tenant(name, &json!({})).await;
    }
    world.make_tenant("ingress", &json!({"controlPlane": {"service": {"serviceType": "ClusterIP"}, "ingress": {"hostname": "i.example.com"}}})).await;
    for name in ["a", "b", "c", "ingress"] {
        world.until_planned(name).await;
        world
            .until_condition(name, "ControlPlaneReady", "False", Some("WaitingForPods"))
            .await;
    }
    cloud.abort();
    until("quiet", {
        let mut last = BTreeMap::new();
        let mut same = 0;
        let world = &world;
        async move || {
            let now = audited_writes(world);
            same = if now == last { same + 1 } else { 0 };
            last = now;
            if same > 15 {
                Ok(())
            } else {
                Err("still writing")
            }
        }
    })
    .await;
    let before = audited_writes(&world);
    let reconciles =
        operator.metric("steward_reconcile_seconds_count{controller=\"tenantcontrolplane\"");
    let resynced = reconciles + 4.0 * 3.0;
    until("three resyncs of four tenants", async || {
        let now =
            operator.metric("steward_reconcile_seconds_count{controller=\"tenantcontrolplane\"");
        if now >= resynced { Ok(()) } else { Err(now) }
    })
    .await;
    assert_eq!(audited_writes(&world), before, "writes at rest");
    operator.stop().await;

    let operator = world.start(&[]);
    until("four reconciles after a restart", async || {
        let now =
            operator.metric("steward_reconcile_seconds_count{controller=\"tenantcontrolplane\"");
        if now >= 4.0 { Ok(()) } else { Err(now) }
    })
    .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(audited_writes(&world), before, "writes after a restart");
    operator.stop().await;
}

/// The watches tell of every write long before its own answer comes. Nothing else happens: no load balancer
/// gives an address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_tenant_is_looked_at_once_however_late_answers_come() {
    let world = World::new().await;
    let faults = Faults::new(Fault::None);
    let client = faults.client(&world.server).await;
    let operator = world.start_with(client, &[], Extras::default());
    let told = async |name: &str| {
        world
            .until_condition(name, "Available", "False", Some("WaitingForAddress"))
            .await;
        // Whatever its own writes would wake, they wake within moments.
        tokio::time::sleep(Duration::from_secs(2)).await;
        operator.metric("steward_reconcile_seconds_count{controller=\"tenantcontrolplane\"")
    };
    world.make_tenant("first", &json!({})).await;
    let mut before = told("first").await;
    faults.set(Fault::Late(Duration::from_millis(200)));
    // Something else may wake one of them: a machine so busy that the datastore seems away.
    let mut fewest = f64::MAX;
    for name in ["second", "third", "fourth"] {
        world.make_tenant(name, &json!({})).await;
        let now = told(name).await;
        fewest = fewest.min(now - before);
        before = now;
    }
    assert!(fewest < 1.5, "{fewest} looks at each new tenant");
    // What somebody else does during a look is not lost.
    let writes = faults.writes();
    world.make_tenant("last", &json!({})).await;
    until("the look to be under way", async || {
        let now = faults.writes();
        if now > writes + 2 { Ok(()) } else { Err(now) }
    })
    .await;
    let annotated = json!({"metadata": {"annotations": {"somebody": "else"}}});
    world.patch_tenant("last", &annotated).await;
    let looks = told("last").await - before;
    assert!(looks > 1.5, "{looks} looks at a tenant that was changed");
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_object_that_is_edited_or_deleted_comes_back() {
    let world = World::new().await;
    let cloud = world.play_cloud();
    let operator = world.start(&[]);
    world.make_tenant("blue", &json!({})).await;
    world.until_planned("blue").await;
    world
        .until_condition("blue", "ControlPlaneReady", "False", Some("WaitingForPods"))
        .await;
    let objects = world.objects("blue").await;
    assert!(objects.len() >= 15, "{}", objects.len());
    for (key, object) in &objects {
        let label = "steward.butlerlabs.dev/component";
        let wanted = object["metadata"]["labels"][label].clone();
        world
            .patch_object(key, &json!({"metadata": {"labels": {label: "tampered"}}}))
            .await;
        until(&format!("{key} to be put right"), async || {
            let now = world.objects("blue").await;
            let found = now
                .iter()
                .find(|(other, _)| other == key)
                .map(|(_, object)| object["metadata"]["labels"][label].clone());
            if found.as_ref() == Some(&wanted) {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        })
        .await;
    }
    // Keys can't be made again: the tests of keys tell what becomes of them.
    let key_of = |key: &str| {
        ["-ca", "-front-proxy-ca-certificate", "-sa-certificate"]
            .iter()
            .any(|name| key.ends_with(&format!("/blue{name}")))
    };
    for (key, object) in objects.iter().filter(|(key, _)| !key_of(key)) {
        let uid = object["metadata"]["uid"].clone();
        world.delete_object(key).await;
        until(&format!("{key} to come back"), async || {
            let now = world.objects("blue").await;
            let found = now
                .iter()
                .find(|(other, _)| other == key)
                .map(|(_, object)| object["metadata"]["uid"].clone());
            if found.as_ref().is_some_and(|found| *found != uid) {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        })
        .await;
    }
    world
        .until_condition("blue", "CertificatesReady", "True", None)
        .await;
    operator.stop().await;
    cloud.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_tenant_is_left_alone_until_the_annotation_goes() {
    let world = World::new().await;
    let cloud = world.play_cloud();
    let operator = world.start(&[]);
    world.make_tenant("blue", &json!({})).await;
    world.until_planned("blue").await;
    world
        .patch_tenant(
            "blue",
            &json!({"metadata": {"annotations": {"steward.butlerlabs.dev/paused": ""}}}),
        )
        .await;
    let key = format!("ConfigMap {}/blue-kubeadmconfig", world.namespace);
    let exists = async || {
        world
            .objects("blue")
            .await
            .iter()
            .any(|(other, _)| *other == key)
    };
    // The annotation and a deletion reach the operator by two watches, in any order: a deletion
    // that overtakes the annotation may still be healed, a later one may not.
    let mut left_alone = false;
    for witness in ["witness-1", "witness-2", "witness-3"] {
        world.delete_object(&key).await;
        // A second tenant shows that the operator has had time to act on the first.
        world.make_tenant(witness, &json!({})).await;
        world.until_planned(witness).await;
        left_alone = !exists().await;
        if left_alone {
            break;
        }
    }
    assert!(
        left_alone,
        "a paused tenant was written to, again and again"
    );
    world
        .patch_tenant(
            "blue",
            &json!({"metadata": {"annotations": {"steward.butlerlabs.dev/paused": null}}}),
        )
        .await;
    until("the ConfigMap", async || {
        if exists().await {
            Ok(())
        } else {
            Err("not there")
        }
    })
    .await;
    operator.stop().await;
    cloud.abort();
}
