//! A `DataStore` that Steward runs itself.

use serde_json::json;
use steward_api::{DataStore, datastore::ManagedEmptyDir};
use steward_pki::SystemKeys;
use steward_plan::{
    Kind, Live, ObjectKey, Settings, compare,
    datastore::{Error, Observed, Plan, plan},
};

use crate::world::now;

fn observed(manifest: &str) -> Observed {
    let mut store: DataStore = serde_saphyr::from_str(manifest).unwrap();
    store.metadata.uid = Some("a".into());
    Observed {
        now: now(),
        store,
        live: Live::default(),
    }
}

fn planned(observed: &Observed) -> Plan {
    plan(&Settings::default(), observed, &SystemKeys)
        .unwrap()
        .unwrap()
}

fn apply(observed: &mut Observed, plan: &Plan) -> usize {
    let mut writes = 0;
    for object in &plan.objects {
        let live = observed.live.0.get(&object.key);
        if live.is_none_or(|live| compare::difference(&object.body, live).is_some()) {
            observed
                .live
                .insert(object.key.clone(), object.body.clone());
            writes += 1;
        }
    }
    writes
}

const THREE: &str = "
apiVersion: steward.butlerlabs.dev/v1alpha1
kind: DataStore
metadata: {name: default}
spec: {driver: etcd, managed: {}}
";

#[test]
fn three_members_know_each_other_and_are_made_once() {
    let mut observed = observed(THREE);
    let first = planned(&observed);
    assert_eq!(apply(&mut observed, &first), 6);
    assert_eq!(
        first.access.endpoints[2],
        "default-etcd-2.default-etcd.steward-system.svc.cluster.local:2379"
    );
    assert!(!first.serving);
    let again = planned(&observed);
    assert_eq!(apply(&mut observed, &again), 0, "nothing is made twice");
    let key = ObjectKey::new(Kind::StatefulSet, "steward-system", "default-etcd");
    observed.live.get_mut(&key).unwrap()["status"] = json!({"readyReplicas": 2});
    assert!(planned(&observed).serving, "two of three are a majority");
}

#[test]
fn a_laboratory_keeps_one_member_on_the_node() {
    let mut observed = observed(THREE);
    let managed = observed.store.spec.managed.as_mut().unwrap();
    managed.replicas = 1;
    managed.empty_dir = Some(ManagedEmptyDir::default());
    let plan = planned(&observed);
    let set = plan
        .objects
        .iter()
        .find(|o| o.key.kind == Kind::StatefulSet)
        .unwrap();
    assert!(set.body["spec"]["volumeClaimTemplates"].is_null());
    assert!(
        plan.objects
            .iter()
            .all(|o| o.key.kind != Kind::PodDisruptionBudget)
    );
    apply(&mut observed, &plan);
    let again = planned(&observed);
    assert_eq!(apply(&mut observed, &again), 0);
}

#[test]
fn a_broken_authority_is_named_and_not_replaced() {
    let mut observed = observed(THREE);
    let plan = planned(&observed);
    apply(&mut observed, &plan);
    let key = ObjectKey::new(Kind::Secret, "steward-system", "default-etcd-ca");
    observed.live.get_mut(&key).unwrap()["data"]["ca.key"] = json!("cnVzdA==");
    let error = steward_plan::datastore::plan(&Settings::default(), &observed, &SystemKeys);
    let Err(Error::Unusable(problem)) = error else {
        panic!("{error:?}")
    };
    assert!(problem.to_string().contains("default-etcd-ca"), "{problem}");
}

#[test]
fn a_store_of_others_is_none_of_ours() {
    let observed = observed(&THREE.replace("managed: {}", "endpoints: [\"a:1\"]"));
    assert!(
        plan(&Settings::default(), &observed, &SystemKeys)
            .unwrap()
            .is_none()
    );
}
