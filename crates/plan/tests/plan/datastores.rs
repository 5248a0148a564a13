//! A `DataStore` that Steward runs itself.

use base64::{Engine as _, prelude::BASE64_STANDARD};
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
    assert_eq!(apply(&mut observed, &first), 9);
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

fn set(observed: &mut Observed) -> &mut serde_json::Value {
    let key = ObjectKey::new(Kind::StatefulSet, "steward-system", "default-etcd");
    observed.live.get_mut(&key).unwrap()
}

fn rolled_out(observed: &mut Observed) {
    set(observed)["status"] =
        json!({"readyReplicas": 3, "updateRevision": "b", "currentRevision": "b"});
}

fn peer_args(plan: &Plan) -> Vec<String> {
    let found = plan
        .objects
        .iter()
        .find(|o| o.key.kind == Kind::StatefulSet);
    let args = &found.unwrap().body["spec"]["template"]["spec"]["containers"][0]["args"];
    let args = args.as_array().unwrap().iter();
    args.filter_map(|arg| arg.as_str())
        .filter(|arg| arg.starts_with("--peer-"))
        .map(str::to_owned)
        .collect()
}

fn der(pem: &str) -> Vec<u8> {
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    BASE64_STANDARD.decode(body).unwrap()
}

#[test]
fn members_trust_each_other_by_an_authority_that_signs_no_tenant() {
    let observed = observed(THREE);
    let plan = planned(&observed);
    let args = peer_args(&plan);
    let has = |arg: &str| args.iter().any(|found| found == arg);
    assert!(
        has("--peer-trusted-ca-file=/etc/etcd/pki/peer-ca.crt"),
        "{args:?}"
    );
    assert!(
        has("--peer-cert-allowed-hostname=default-etcd.steward-system.svc.cluster.local"),
        "{args:?}"
    );
    let secret = |name: &str| {
        let found = plan.objects.iter().find(|o| o.key.name == name).unwrap();
        steward_plan::secret::data(&found.body)
    };
    let (clients, peers) = (secret("default-etcd-ca"), secret("default-etcd-peer-ca"));
    assert_ne!(clients["ca.crt"], peers["ca.crt"]);
    let member = der(&secret("default-etcd-peer")["tls.crt"]);
    assert!(steward_pki::is_signed_by(&member, &peers["ca.crt"]));
    assert!(!steward_pki::is_signed_by(&member, &clients["ca.crt"]));
}

#[test]
fn an_etcd_from_before_is_moved_a_step_at_a_time_and_only_while_it_is_whole() {
    let mut observed = observed(THREE);
    let plan = planned(&observed);
    apply(&mut observed, &plan);
    let name = ObjectKey::new(Kind::Secret, "steward-system", "default-etcd-peer-ca");
    observed.live.0.remove(&name);
    let notes = &mut set(&mut observed)["spec"]["template"]["metadata"]["annotations"];
    notes
        .as_object_mut()
        .unwrap()
        .remove("steward.butlerlabs.dev/peers");

    let step = |observed: &Observed| planned(observed).status.peers.unwrap();
    assert_eq!(step(&observed), "Shared", "nothing begins while it rolls");
    for expected in ["TrustBoth", "NewCertificates", "Own"] {
        rolled_out(&mut observed);
        assert_eq!(step(&observed), expected);
        let plan = planned(&observed);
        apply(&mut observed, &plan);
        set(&mut observed)["status"] =
            json!({"readyReplicas": 2, "updateRevision": "b", "currentRevision": "a"});
        assert_eq!(step(&observed), expected, "it waits for every member");
    }
    rolled_out(&mut observed);
    assert_eq!(step(&observed), "Own");
}

#[test]
fn a_lost_authority_is_named_and_made_again_only_on_purpose() {
    for (secret, purpose) in [("default-etcd-ca", true), ("default-etcd-peer-ca", false)] {
        let mut observed = observed(THREE);
        let plan = planned(&observed);
        apply(&mut observed, &plan);
        let key = ObjectKey::new(Kind::Secret, "steward-system", secret);
        observed.live.0.remove(&key);
        let error = steward_plan::datastore::plan(&Settings::default(), &observed, &SystemKeys);
        let Err(Error::Unusable(problem)) = error else {
            panic!("{error:?}")
        };
        let said = problem.to_string();
        assert!(said.contains(secret) && said.contains("backup"), "{said}");
        assert_eq!(said.contains("replace-lost-key"), purpose, "{said}");
        let note = (
            "steward.butlerlabs.dev/replace-lost-key".into(),
            secret.into(),
        );
        observed.store.metadata.annotations = Some([note].into());
        let again = steward_plan::datastore::plan(&Settings::default(), &observed, &SystemKeys);
        assert_eq!(again.is_ok(), purpose, "{secret}");
    }
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
