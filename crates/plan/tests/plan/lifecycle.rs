//! What happens over time: nothing at rest, renewal, moves, sleep, trouble.

use std::time::Duration;

use serde_json::{Value, json};
use steward_api::{
    conditions::{ConditionType, Reason},
    tenant_control_plane::{
        ExposureMode, IngressControllerType, IngressSpec, ServiceType, TcpProxy, TenantState,
    },
};
use steward_pki::inspect;
use steward_plan::{
    DatastoreSeen, Inside, Kind, NodeSeen, ObjectKey, Reach, report_problems, secret, teardown,
    validate,
};

use crate::world::{World, now};

const PLAIN: &str = include_str!("../tenants/load-balancer.yaml");
const INGRESS: &str = include_str!("../tenants/ingress-steward.yaml");

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

fn api_server_args(world: &World) -> Vec<String> {
    let live = world.live(Kind::Deployment, "t1").unwrap();
    let args = &live["spec"]["template"]["spec"]["containers"][0]["args"];
    args.as_array()
        .unwrap()
        .iter()
        .map(|arg| arg.as_str().unwrap().to_owned())
        .collect()
}

fn containers(world: &World) -> Vec<String> {
    let live = world.live(Kind::Deployment, "t1").unwrap();
    let list = live["spec"]["template"]["spec"]["containers"]
        .as_array()
        .unwrap();
    list.iter()
        .map(|container| container["name"].as_str().unwrap().to_owned())
        .collect()
}

fn endpoint_address(world: &World) -> Option<Value> {
    let key = ObjectKey::new(Kind::EndpointSlice, "default", "kubernetes");
    world
        .inside
        .0
        .get(&key)
        .map(|slice| slice["endpoints"][0]["addresses"][0].clone())
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
        facts.not_after > now() + Duration::from_secs(9 * 365 * 24 * 3600),
        "the CA stays"
    );
}

#[test]
fn a_certificate_is_made_anew_on_demand_and_the_demand_answered_once() {
    let mut world = World::new(PLAIN);
    world.settle();
    let key = ObjectKey::new(Kind::Secret, "tenants", "t1-api-server-certificate");
    let live = world.observed.live.0.get_mut(&key).unwrap();
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
    world.observed.live.0.get_mut(&key).unwrap()["data"]["scheduler.conf"] = json!("cnVzdA==");
    world.settle();
    let live = world.live(Kind::Secret, "t1-scheduler-kubeconfig").unwrap();
    assert!(secret::data(live)["scheduler.conf"].contains("127.0.0.1:6443"));

    let key = ObjectKey::new(Kind::Secret, "tenants", "t1-ca");
    let ca = world.observed.live.0.get_mut(&key).unwrap();
    ca["data"]["ca.crt"] = json!("cnVzdA==");
    let copy = world.observed.live.0[&key].clone();
    world.settle();
    assert_ne!(
        world.observed.live.0[&key], copy,
        "the second copy heals the first"
    );

    let ca = world.observed.live.0.get_mut(&key).unwrap();
    ca["data"]["ca.crt"] = json!("cnVzdA==");
    ca["data"]["tls.crt"] = json!("cnVzdA==");
    let problems = validate(&world.settings, &world.observed).unwrap_err();
    assert_eq!(problems[0].reason, Reason::SecretInvalid);
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
fn a_move_to_a_front_door_keeps_the_old_address_until_the_new_name_answers() {
    let mut world = World::new(PLAIN);
    world.settle();
    let control_plane = &mut world.observed.tenant.spec.control_plane;
    control_plane.service.service_type = ServiceType::ClusterIP;
    control_plane.ingress = Some(IngressSpec {
        hostname: Some("t1.example.com".into()),
        controller_type: IngressControllerType::Steward,
        ..IngressSpec::default()
    });
    world.observed.tenant.spec.addons.tcp_proxy = Some(TcpProxy::default());
    let round = world.settle();
    let service = |world: &World| world.live(Kind::Service, "t1").unwrap()["spec"]["type"].clone();
    let status = |world: &World| world.observed.tenant.status.clone().unwrap();
    assert_eq!(service(&world), "LoadBalancer");
    assert_eq!(
        status(&world).control_plane_endpoint.as_deref(),
        Some("192.0.2.77:6443")
    );
    assert!(world.live(Kind::Ingress, "t1").is_some());
    assert_eq!(
        world.condition(ConditionType::EndpointReady).0,
        Reason::Moving.as_str()
    );
    assert!(
        world.holds(ConditionType::Available),
        "clients notice nothing"
    );
    let data = secret::data(
        world
            .live(Kind::Secret, "t1-api-server-certificate")
            .unwrap(),
    );
    let sans = inspect(&data["apiserver.crt"]).unwrap().sans;
    for name in ["192.0.2.77", "t1.example.com"] {
        assert!(sans.contains(&steward_pki::San::parse(name)), "{name}");
    }

    world.knock(&round, Reach::Answers);
    let round = world.settle();
    assert_eq!(round.plan.knock.as_ref().unwrap().host, "t1.example.com");
    assert_eq!(service(&world), "ClusterIP");
    assert_eq!(
        status(&world).control_plane_endpoint.as_deref(),
        Some("t1.example.com:443")
    );
    assert_eq!(
        status(&world).exposure.unwrap().mode,
        Some(ExposureMode::Ingress)
    );
}

#[test]
fn an_answer_from_the_old_place_does_not_end_a_move() {
    let mut world = World::new(PLAIN);
    let round = world.settle();
    world.knock(&round, Reach::Answers);
    let control_plane = &mut world.observed.tenant.spec.control_plane;
    control_plane.ingress = Some(IngressSpec {
        hostname: Some("t1.example.com".into()),
        ..IngressSpec::default()
    });
    world.settle();
    assert_eq!(
        world.condition(ConditionType::EndpointReady).0,
        Reason::Moving.as_str()
    );
}

#[test]
fn pods_keep_their_way_while_the_node_proxy_comes_and_goes() {
    let mut world = World::new(PLAIN);
    world.settle();
    let none = "--endpoint-reconciler-type=none".to_owned();
    assert!(!api_server_args(&world).contains(&none));

    world.observed.tenant.spec.addons.tcp_proxy = Some(TcpProxy::default());
    let round = world.round();
    assert!(
        !api_server_args(&world).contains(&none),
        "not before the proxy is everywhere"
    );
    assert_eq!(endpoint_address(&world), None);
    assert!(
        round
            .plan
            .tenant_objects
            .iter()
            .any(|o| o.key.name == "steward-tcp-proxy")
    );
    world.settle();
    assert!(api_server_args(&world).contains(&none));
    assert_eq!(endpoint_address(&world), Some(json!("240.0.0.1")));

    world.observed.tenant.spec.addons.tcp_proxy = None;
    world.round();
    assert!(!api_server_args(&world).contains(&none));
    assert!(
        containers(&world).contains(&"steward-gate".to_owned()),
        "the proxy still needs it"
    );
    world.settle();
    let key = ObjectKey::new(Kind::DaemonSet, "kube-system", "steward-tcp-proxy");
    assert!(!world.inside.0.contains_key(&key));
    assert!(!containers(&world).contains(&"steward-gate".to_owned()));
}

#[test]
fn a_front_door_that_fails_makes_a_named_tenant_unavailable_with_the_reason() {
    let mut world = World::new(INGRESS);
    let round = world.settle();
    let message = "the certificate is the front door's own".to_owned();
    world.knock(
        &round,
        Reach::Fails {
            reason: Reason::TlsTerminated,
            message,
        },
    );
    world.settle();
    assert_eq!(
        world.condition(ConditionType::EndpointReady).0,
        "TlsTerminated"
    );
    assert!(!world.holds(ConditionType::Available));
}

#[test]
fn a_mode_that_is_left_leaves_nothing_behind() {
    let mut world = World::new(INGRESS);
    world.settle();
    assert!(world.live(Kind::Ingress, "t1").is_some());
    let control_plane = &mut world.observed.tenant.spec.control_plane;
    control_plane.ingress.as_mut().unwrap().controller_type = IngressControllerType::Traefik;
    world.settle();
    assert!(world.live(Kind::Ingress, "t1").is_none());
    assert!(world.live(Kind::IngressRouteTcp, "t1").is_some());
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
