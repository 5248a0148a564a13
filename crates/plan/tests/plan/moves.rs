//! Moves from one way to another: nothing that someone still uses goes before its
//! replacement works.

use jiff::SignedDuration;
use serde_json::{Value, json};
use steward_api::{
    conditions::{ConditionType, Reason},
    metadata::annotations,
    tenant_control_plane::{
        ExposureMode, GatewayParentRef, GatewaySpec, IngressControllerType, IngressSpec,
        ServiceType, TcpProxy, TcpProxyMode,
    },
};
use steward_pki::inspect;
use steward_plan::{Kind, ObjectKey, Reach, secret};

use crate::world::World;

const PLAIN: &str = include_str!("../tenants/load-balancer.yaml");
const INGRESS: &str = include_str!("../tenants/ingress-steward.yaml");

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

/// From an address of its own to a name, with a node proxy.
fn wish_for_a_name(world: &mut World) {
    let control_plane = &mut world.observed.tenant.spec.control_plane;
    control_plane.service.service_type = ServiceType::ClusterIP;
    control_plane.ingress = Some(IngressSpec {
        hostname: Some("t1.example.com".into()),
        controller_type: IngressControllerType::Steward,
        ..IngressSpec::default()
    });
    world.observed.tenant.spec.addons.tcp_proxy = Some(TcpProxy::default());
}

#[test]
fn a_move_to_a_front_door_keeps_the_old_address_until_the_new_name_answers() {
    let mut world = World::new(PLAIN);
    world.settle();
    wish_for_a_name(&mut world);
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
    assert_eq!(
        service(&world),
        "LoadBalancer",
        "kubelets keep the endpoint they joined by"
    );
    assert_eq!(
        world.condition(ConditionType::EndpointReady).0,
        Reason::EndpointKept.as_str()
    );
    assert!(world.holds(ConditionType::EndpointReady));
    assert_eq!(
        status(&world).control_plane_endpoint.as_deref(),
        Some("t1.example.com:443")
    );
    assert_eq!(
        status(&world).exposure.unwrap().mode,
        Some(ExposureMode::Ingress)
    );

    world.annotate(annotations::RELEASE_ENDPOINT, "192.0.2.77:6443");
    world.settle();
    assert_eq!(service(&world), "ClusterIP");
    assert_eq!(status(&world).exposure.unwrap().previous, None);
}

/// A tenant that has moved from an address of its own to a name, and whose kubelets use the address.
fn moved_to_a_name() -> World {
    let mut world = World::new(PLAIN);
    world.settle();
    move_to_a_name(&mut world);
    world
}

fn move_to_a_name(world: &mut World) {
    wish_for_a_name(world);
    let round = world.settle();
    world.knock(&round, Reach::Answers);
    world.settle();
}

fn has_its_own_address(world: &World) -> bool {
    world.live(Kind::Service, "t1").unwrap()["spec"]["type"] == "LoadBalancer"
}

#[test]
fn a_released_address_stays_while_replaced_node_proxies_serve_their_last_connections() {
    let mut world = moved_to_a_name();
    world.annotate(annotations::RELEASE_ENDPOINT, "192.0.2.77:6443");
    let now = world.observed.now;
    world.leaving = Some(now + SignedDuration::from_mins(1));
    let round = world.settle();
    assert!(has_its_own_address(&world));
    let (reason, message) = world.condition(ConditionType::EndpointReady);
    assert_eq!(reason, Reason::EndpointKept.as_str());
    assert!(
        message.contains("192.0.2.77:6443 goes as soon as"),
        "{message}"
    );
    let next = round.plan.next_check.unwrap();
    assert!(next <= now + SignedDuration::from_secs(15), "{next}");

    world.leaving = None;
    world.settle();
    assert!(!has_its_own_address(&world));
}

#[test]
fn a_proxy_that_never_leaves_holds_a_released_address_no_longer_than_it_may_take() {
    let mut world = moved_to_a_name();
    world.annotate(annotations::RELEASE_ENDPOINT, "192.0.2.77:6443");
    world.leaving = Some(world.observed.now - SignedDuration::from_mins(1));
    world.settle();
    assert!(!has_its_own_address(&world));
}

#[test]
fn a_release_holds_once_and_has_to_be_said_again_for_the_next_time() {
    let mut world = moved_to_a_name();
    world.annotate(annotations::RELEASE_ENDPOINT, "192.0.2.77:6443");
    world.settle();
    assert!(!has_its_own_address(&world));

    let control_plane = &mut world.observed.tenant.spec.control_plane;
    control_plane.service.service_type = ServiceType::LoadBalancer;
    control_plane.ingress = None;
    world.observed.tenant.spec.addons.tcp_proxy = None;
    let round = world.settle();
    world.knock(&round, Reach::Answers);
    world.settle();
    move_to_a_name(&mut world);
    assert!(has_its_own_address(&world), "that was said of another time");
    let (_, message) = world.condition(ConditionType::EndpointReady);
    assert!(message.contains("remove the annotation"), "{message}");

    world.observed.tenant.metadata.annotations = None;
    world.settle();
    assert!(has_its_own_address(&world));
    let (_, message) = world.condition(ConditionType::EndpointReady);
    assert!(message.contains("set the annotation"), "{message}");
    world.annotate(annotations::RELEASE_ENDPOINT, "192.0.2.77:6443");
    world.settle();
    assert!(!has_its_own_address(&world));
}

#[test]
fn while_a_tenant_moves_pods_are_never_sent_to_the_front_door_itself() {
    let mut world = World::new(PLAIN);
    world.settle();
    wish_for_a_name(&mut world);
    for _ in 0..6 {
        let round = world.round();
        // The front door answers at once, long before the proxy is on every node.
        world.knock(&round, Reach::Answers);
        let args = api_server_args(&world);
        let announced = args
            .iter()
            .find_map(|arg| arg.strip_prefix("--advertise-address="));
        assert!(
            args.iter()
                .any(|arg| arg == "--endpoint-reconciler-type=none")
                || announced == Some("192.0.2.77"),
            "{announced:?}"
        );
    }
    let status = world.observed.tenant.status.clone().unwrap();
    assert_eq!(status.exposure.unwrap().mode, Some(ExposureMode::Ingress));
}

#[test]
fn a_move_back_to_an_address_of_its_own_keeps_the_route_until_nobody_uses_it() {
    let mut world = World::new(INGRESS);
    let round = world.settle();
    world.knock(&round, Reach::Answers);
    world.settle();
    let control_plane = &mut world.observed.tenant.spec.control_plane;
    control_plane.service.service_type = ServiceType::LoadBalancer;
    let ingress = control_plane.ingress.take();
    let round = world.settle();
    let status = |world: &World| world.observed.tenant.status.clone().unwrap();
    assert_eq!(
        world.live(Kind::Service, "t1").unwrap()["spec"]["type"],
        "LoadBalancer",
        "it needs an address before anything can be checked"
    );
    assert_eq!(
        status(&world).exposure.unwrap().mode,
        Some(ExposureMode::Ingress)
    );
    assert!(world.live(Kind::Ingress, "t1").is_some());

    world.knock(&round, Reach::Answers);
    world.settle();
    assert_eq!(
        status(&world).exposure.unwrap().mode,
        Some(ExposureMode::LoadBalancer)
    );
    assert!(world.live(Kind::Ingress, "t1").is_some(), "kubelets use it");
    let old = status(&world).exposure.unwrap().previous.unwrap();
    let old = format!("{}:{}", old.host, old.port);
    world.annotate(annotations::RELEASE_ENDPOINT, &old);
    world.settle();
    assert!(world.live(Kind::Ingress, "t1").is_none());
    drop(ingress);
}

#[test]
fn under_one_name_a_route_goes_only_when_the_other_is_taken_up() {
    let mut world = World::new(INGRESS);
    let round = world.settle();
    world.knock(&round, Reach::Answers);
    world.settle();
    let control_plane = &mut world.observed.tenant.spec.control_plane;
    let hostname = control_plane.ingress.take().unwrap().hostname;
    control_plane.gateway = Some(GatewaySpec {
        hostname,
        parent_refs: vec![GatewayParentRef {
            name: "front".into(),
            ..GatewayParentRef::default()
        }],
        ..GatewaySpec::default()
    });
    let round = world.round();
    assert!(world.live(Kind::TlsRouteV1, "t1").is_some());
    assert!(
        world.live(Kind::Ingress, "t1").is_some(),
        "an answer under this name may still be the Ingress'"
    );
    world.knock(&round, Reach::Answers);
    world.settle();
    assert!(world.live(Kind::Ingress, "t1").is_none());
    let status = world.observed.tenant.status.clone().unwrap();
    assert_eq!(status.exposure.unwrap().mode, Some(ExposureMode::Gateway));
}

#[test]
fn one_kind_of_node_proxy_starts_beside_the_other_before_pods_are_sent_to_it() {
    let mut world = World::new(INGRESS);
    world.settle();
    let there = |world: &World, kind| {
        let key = ObjectKey::new(kind, "kube-system", "steward-tcp-proxy");
        world.inside.0.contains_key(&key)
    };
    assert_eq!(endpoint_address(&world), Some(json!("240.0.0.1")));
    let modes = [
        (TcpProxyMode::Terminate, Kind::Deployment, "198.51.100.7"),
        (TcpProxyMode::EndToEnd, Kind::DaemonSet, "240.0.0.1"),
    ];
    let mut before = (Kind::DaemonSet, "240.0.0.1");
    for (mode, kind, address) in modes {
        let spec = TcpProxy {
            mode,
            ..TcpProxy::default()
        };
        world.observed.tenant.spec.addons.tcp_proxy = Some(spec);
        world.round();
        assert!(there(&world, kind) && there(&world, before.0), "{mode:?}");
        assert_eq!(endpoint_address(&world), Some(json!(before.1)));
        world.settle();
        assert_eq!(endpoint_address(&world), Some(json!(address)));
        assert!(there(&world, kind) && !there(&world, before.0), "{mode:?}");
        before = (kind, address);
    }
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
    assert!(
        api_server_args(&world).contains(&none),
        "where pods are sent is ours to say"
    );
    let own = endpoint_address(&world);
    assert!(own.is_some());

    world.observed.tenant.spec.addons.tcp_proxy = Some(TcpProxy::default());
    let round = world.round();
    assert_eq!(
        endpoint_address(&world),
        own,
        "not before the proxy is everywhere"
    );
    assert!(
        round
            .plan
            .tenant_objects
            .iter()
            .any(|o| o.key.name == "steward-tcp-proxy")
    );
    world.settle();
    assert_eq!(endpoint_address(&world), Some(json!("240.0.0.1")));

    world.observed.tenant.spec.addons.tcp_proxy = None;
    world.round();
    assert_eq!(endpoint_address(&world), own);
    let key = ObjectKey::new(Kind::DaemonSet, "kube-system", "steward-tcp-proxy");
    assert!(
        world.inside.0.contains_key(&key),
        "not before every node has heard of it"
    );
    assert!(
        containers(&world).contains(&"steward-gate".to_owned()),
        "the proxy still needs it"
    );
    world.settle();
    assert!(!world.inside.0.contains_key(&key));
    assert!(!containers(&world).contains(&"steward-gate".to_owned()));
}

#[test]
fn endpoints_that_somebody_broke_are_mended_whatever_the_proxy_does() {
    let mut world = World::new(INGRESS);
    world.settle();
    let key = ObjectKey::new(Kind::EndpointSlice, "default", "kubernetes");
    let slice = world.inside.get_mut(&key).unwrap();
    slice["endpoints"][0]["addresses"][0] = json!("10.99.99.99");
    world.round();
    assert_eq!(endpoint_address(&world), Some(json!("240.0.0.1")));
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
