//! What happens over time: nothing at rest, renewal, moves, sleep, trouble.

use std::time::Duration;

use serde_json::{Value, json};
use steward_api::{
    conditions::{ConditionType, Reason},
    tenant_control_plane::TenantState,
};
use steward_pki::inspect;
use steward_plan::{
    DatastoreSeen, Inside, Kind, NodeSeen, ObjectKey, report_problems, secret, teardown, validate,
};

use crate::world::{World, now};

const PLAIN: &str = include_str!("../tenants/load-balancer.yaml");

fn state(world: &World) -> TenantState {
    let status = world.observed.tenant.status.as_ref().unwrap();
    status
        .kubernetes_resources
        .as_ref()
        .unwrap()
        .version
        .as_ref()
        .unwrap()
        .status
}

#[test]
fn a_tenant_becomes_available_and_then_nothing_is_written() {
    let mut world = World::new(PLAIN);
    let round = world.settle();
    assert_eq!(round.writes, 0);
    assert!(
        world.holds(ConditionType::Available),
        "{:?}",
        world.condition(ConditionType::Available)
    );
    assert!(!world.holds(ConditionType::Progressing));
    assert_eq!(state(&world), TenantState::Ready);
    assert!(round.report.events.is_empty(), "{:?}", round.report.events);
}

#[test]
fn what_a_new_tenant_achieves_at_once_is_told_in_one_event() {
    let events = World::new(PLAIN).round().report.events;
    let [made] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(made.reason, "Created");
    assert!(made.note.contains("CertificatesReady"), "{made:?}");
    assert!(made.note.contains("DatastoreReady"), "{made:?}");
}

#[test]
fn a_tenant_needs_few_writes() {
    let mut world = World::new(PLAIN);
    let writes: usize = (0..3)
        .map(|_| world.round().plan.objects.len())
        .max()
        .unwrap();
    assert!(writes <= 22, "{writes} objects in the management cluster");
}

#[test]
fn without_an_address_the_service_comes_first_and_the_condition_says_so() {
    let mut world = World::new(PLAIN);
    world.addresses = false;
    let round = world.settle();
    assert!(
        round
            .plan
            .objects
            .iter()
            .all(|object| object.key.kind != Kind::Deployment)
    );
    assert!(round.plan.prune.is_empty());
    let (reason, message) = world.condition(ConditionType::Available);
    assert_eq!(reason, Reason::WaitingForAddress.as_str(), "{message}");
}

#[test]
fn a_tenant_without_datastore_waits_and_the_condition_names_it() {
    let mut world = World::new(PLAIN);
    world
        .observed
        .datastores
        .insert("default".into(), DatastoreSeen::Missing);
    let round = world.settle();
    assert!(round.plan.datastore.is_empty());
    let (reason, message) = world.condition(ConditionType::DatastoreReady);
    assert_eq!(reason, Reason::DatastoreMissing.as_str());
    assert!(message.contains("DataStore default"), "{message}");
}

#[test]
fn a_running_tenant_goes_on_without_its_datastore() {
    let mut world = World::new(PLAIN);
    world.settle();
    let before = world.live(Kind::Deployment, "t1").unwrap().clone();
    let reason = "nobody answers".to_owned();
    world
        .observed
        .datastores
        .insert("default".into(), DatastoreSeen::NotReady { reason });
    let round = world.settle();
    assert_eq!(round.writes, 0);
    assert_eq!(world.live(Kind::Deployment, "t1"), Some(&before));
    assert!(!world.holds(ConditionType::DatastoreReady));
}

#[test]
fn certificates_are_renewed_in_time_and_the_pods_follow() {
    let mut world = World::new(PLAIN);
    let round = world.settle();
    let due = round.plan.next_check.unwrap();
    let before = world
        .live(Kind::Secret, "t1-api-server-certificate")
        .unwrap()
        .clone();
    let pods = world.live(Kind::Deployment, "t1").unwrap().clone();
    world.observed.now = due + Duration::from_secs(1);
    world.settle();
    let after = world
        .live(Kind::Secret, "t1-api-server-certificate")
        .unwrap();
    assert_ne!(before["data"], after["data"]);
    let annotations =
        |deployment: &Value| deployment["spec"]["template"]["metadata"]["annotations"].clone();
    let live = world.live(Kind::Deployment, "t1").unwrap();
    assert_ne!(annotations(&pods), annotations(live));
    let ca = |world: &World| world.live(Kind::Secret, "t1-ca").unwrap()["data"].clone();
    let facts = inspect(&secret::data(&json!({"data": ca(&world)}))["ca.crt"]).unwrap();
    assert!(
        facts.not_after > now() + Duration::from_hours(9 * 365 * 24),
        "the CA stays"
    );
}

#[test]
fn certificates_that_are_due_soon_are_renewed_with_the_one_that_is_due() {
    let mut world = World::new(PLAIN);
    let due = world.settle().plan.next_check.unwrap();
    let days = |days: u64| Duration::from_hours(24 * days);
    // Made anew on demand, one a little later than the others, one much later.
    for (name, after) in [
        ("t1-api-server-certificate", days(2)),
        ("t1-konnectivity-certificate", days(60)),
    ] {
        let key = ObjectKey::new(Kind::Secret, "tenants", name);
        let live = world.observed.live.get_mut(&key).unwrap();
        live["metadata"]["annotations"]["certs.steward.butlerlabs.dev/rotate"] = json!("");
        world.observed.now = now() + after;
        world.settle();
    }
    let data = |world: &World, name: &str| world.live(Kind::Secret, name).unwrap()["data"].clone();
    let names = [
        "t1-api-server-certificate",
        "t1-konnectivity-certificate",
        "t1-scheduler-kubeconfig",
    ];
    let before = names.map(|name| data(&world, name));
    world.observed.now = due;
    world.settle();
    let renewed = names
        .iter()
        .zip(&before)
        .map(|(name, before)| data(&world, name) != *before);
    assert_eq!(renewed.collect::<Vec<_>>(), [true, false, true]);
}

#[test]
fn a_certificate_is_made_anew_on_demand_and_the_demand_answered_once() {
    let mut world = World::new(PLAIN);
    world.settle();
    let key = ObjectKey::new(Kind::Secret, "tenants", "t1-api-server-certificate");
    let live = world.observed.live.get_mut(&key).unwrap();
    live["metadata"]["annotations"]["certs.steward.butlerlabs.dev/rotate"] = json!("");
    let before = live["data"].clone();
    let round = world.round();
    assert!(round.writes > 0);
    let live = world
        .live(Kind::Secret, "t1-api-server-certificate")
        .unwrap();
    assert_ne!(before, live["data"]);
    let note = &live["metadata"]["annotations"]["certs.steward.butlerlabs.dev/rotate"];
    assert_eq!(note, "2026-11-15T12:00:00Z");
    world.settle();
}

#[test]
fn a_corrupted_certificate_heals_and_a_corrupted_authority_is_named() {
    let mut world = World::new(PLAIN);
    world.settle();
    let key = ObjectKey::new(Kind::Secret, "tenants", "t1-scheduler-kubeconfig");
    world.observed.live.get_mut(&key).unwrap()["data"]["scheduler.conf"] = json!("cnVzdA==");
    world.settle();
    let live = world.live(Kind::Secret, "t1-scheduler-kubeconfig").unwrap();
    assert!(secret::data(live)["scheduler.conf"].contains("127.0.0.1:6443"));

    let key = ObjectKey::new(Kind::Secret, "tenants", "t1-ca");
    let ca = world.observed.live.get_mut(&key).unwrap();
    ca["data"]["ca.crt"] = json!("cnVzdA==");
    let copy = world.observed.live.0[&key].clone();
    world.settle();
    assert_ne!(
        world.observed.live.0[&key], copy,
        "the second copy heals the first"
    );

    let ca = world.observed.live.get_mut(&key).unwrap();
    ca["data"]["ca.crt"] = json!("cnVzdA==");
    ca["data"]["tls.crt"] = json!("cnVzdA==");
    let problems = validate(&world.settings, &world.observed).unwrap_err();
    assert_eq!(problems[0].reason, Reason::KeyLost);
    assert!(
        problems[0].to_string().contains("Secret tenants/t1-ca"),
        "{}",
        problems[0]
    );
    let report = report_problems(&world.settings, &world.observed, &problems);
    let conditions = &report.status.conditions;
    assert!(steward_api::conditions::holds(
        conditions,
        ConditionType::Available
    ));
    assert!(!steward_api::conditions::holds(
        conditions,
        ConditionType::CertificatesReady
    ));
}

#[test]
fn a_tenant_sleeps_at_zero_and_wakes() {
    let mut world = World::new(PLAIN);
    world.settle();
    world.observed.tenant.spec.control_plane.deployment.replicas = 0;
    let round = world.settle();
    assert_eq!(state(&world), TenantState::Sleeping);
    assert_eq!(
        world.condition(ConditionType::Available).0,
        Reason::Sleeping.as_str()
    );
    assert!(round.plan.tenant_objects.is_empty());
    assert!(world.live(Kind::PodDisruptionBudget, "t1").is_none());
    world.observed.tenant.spec.control_plane.deployment.replicas = 2;
    world.settle();
    assert_eq!(state(&world), TenantState::Ready);
    assert!(world.holds(ConditionType::Available));
}

#[test]
fn an_upgrade_is_told_and_one_that_nodes_do_not_allow_is_held_up() {
    let mut world = World::new(PLAIN);
    world.settle();
    world.pods_start = false;
    world.observed.tenant.spec.kubernetes.version = "v1.36.4".into();
    world.round();
    assert_eq!(state(&world), TenantState::Upgrading);
    assert_eq!(
        world.condition(ConditionType::ControlPlaneReady).0,
        "Upgrading"
    );

    let mut world = World::new(&PLAIN.replace("v1.36.3", "v1.35.4"));
    world.settle();
    world.observed.tenant.spec.kubernetes.version = "v1.36.3".into();
    let Inside::Reachable { nodes, .. } = &mut world.observed.inside else {
        panic!()
    };
    nodes.push(NodeSeen {
        name: "old".into(),
        kubelet: "v1.32.9".into(),
        ready: true,
        address: None,
    });
    world.round();
    let (reason, message) = world.condition(ConditionType::VersionSkewSupported);
    assert_eq!(reason, Reason::NodesTooOld.as_str());
    assert!(message.contains("old (v1.32.9)"), "{message}");
    let image = &world.live(Kind::Deployment, "t1").unwrap()["spec"]["template"]["spec"]["containers"]
        [0]["image"];
    assert_eq!(image, "registry.k8s.io/kube-apiserver:v1.35.4");
}

#[test]
fn deletion_cleans_the_datastore_or_says_why_it_cannot() {
    let mut world = World::new(PLAIN);
    world.settle();
    let gone = teardown(&world.settings, &world.observed);
    assert_eq!(gone.datastore.len(), 1);
    assert!(gone.blocked.is_none() && !gone.abandon);

    world
        .observed
        .datastores
        .insert("default".into(), DatastoreSeen::Missing);
    let stuck = teardown(&world.settings, &world.observed);
    let message = stuck.blocked.unwrap();
    assert!(
        message.contains("steward.butlerlabs.dev/abandon-datastore=t1"),
        "{message}"
    );

    let note = (
        "steward.butlerlabs.dev/abandon-datastore".to_owned(),
        "t1".to_owned(),
    );
    world.observed.tenant.metadata.annotations = Some([note].into());
    assert!(teardown(&world.settings, &world.observed).abandon);
}

#[test]
fn limited_writes_are_a_policy_inside_the_tenant_for_as_long_as_they_are_limited() {
    let mut world = World::new(PLAIN);
    world.settle();
    let key = ObjectKey::cluster(Kind::ValidatingAdmissionPolicy, "steward-write-permissions");
    assert!(!world.inside.0.contains_key(&key));
    let limits = serde_json::from_value(json!({"blockCreation": true, "blockDeletion": true}));
    world.observed.tenant.spec.write_permissions = limits.unwrap();
    world.settle();
    let policy = &world.inside.0[&key];
    let operations = policy.pointer("/spec/matchConstraints/resourceRules/0/operations");
    assert_eq!(operations, Some(&json!(["CREATE", "DELETE"])));
    assert_eq!(state(&world), TenantState::WriteLimited);
    assert!(world.holds(ConditionType::Available));

    world.inside.0.remove(&key);
    let events = world.round().report.events;
    let [put_back] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(put_back.reason, "WritePermissionsRestored");
    assert!(put_back.note.contains("was deleted"), "{put_back:?}");
    assert!(world.inside.0.contains_key(&key));
    assert!(world.round().report.events.is_empty());

    world.observed.tenant.spec.write_permissions = None;
    world.observed.tenant.metadata.generation = Some(2);
    let round = world.settle();
    assert!(round.report.events.is_empty(), "{:?}", round.report.events);
    assert!(!world.inside.0.contains_key(&key));
    assert_eq!(state(&world), TenantState::Ready);
}

#[test]
fn a_changed_default_moves_no_tenant_and_deletion_cleans_where_the_data_is() {
    let mut world = World::new(PLAIN);
    world.settle();
    world.settings.default_datastore = "etcd-main".into();
    let round = world.settle();
    assert_eq!(round.writes, 0);
    let storage = round.report.status.storage.unwrap();
    assert_eq!(storage.data_store_name.as_deref(), Some("default"));

    world.observed.tenant.spec.data_store = Some("etcd-main".into());
    let problems = validate(&world.settings, &world.observed).unwrap_err();
    assert!(
        problems[0].to_string().contains("doesn't move data"),
        "{}",
        problems[0]
    );
    let wishes = format!("{:?}", teardown(&world.settings, &world.observed).datastore);
    assert!(
        wishes.contains("Gone(default:") && !wishes.contains("etcd-main"),
        "{wishes}"
    );
}
