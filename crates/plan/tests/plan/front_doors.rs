//! What a tenant behind a front door says of it, and what its nodes keep of it.

use steward_api::{
    conditions::{ConditionType, Reason},
    tenant_control_plane::IngressControllerType,
};
use steward_plan::{Kind, Reach};

use crate::world::World;

const INGRESS: &str = include_str!("../tenants/ingress-steward.yaml");

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

/// Traefik's own kind has no status: DNS tells where the front door is, and may fail when it is needed most.
#[test]
fn node_proxies_keep_the_addresses_they_know_when_nobody_can_tell_them() {
    let mut world = World::new(INGRESS);
    let control_plane = &mut world.observed.tenant.spec.control_plane;
    control_plane.ingress.as_mut().unwrap().controller_type = IngressControllerType::Traefik;
    world.settle();
    let pinned = |world: &World| {
        let proxy = world
            .inside
            .get(Kind::DaemonSet, "kube-system", "steward-tcp-proxy");
        let container = &proxy.unwrap()["spec"]["template"]["spec"]["containers"][0];
        container["args"].to_string().contains("--pin=192.0.2.50")
    };
    assert!(pinned(&world));
    world.observed.platform.front_door.clear();
    let round = world.round();
    assert_eq!(round.writes, 0);
    assert!(pinned(&world));
    // Under another name the front door may be elsewhere.
    let control_plane = &mut world.observed.tenant.spec.control_plane;
    control_plane.ingress.as_mut().unwrap().hostname = Some("other.example.com".into());
    world.settle();
    assert!(!pinned(&world));
}

#[test]
fn a_name_that_is_not_in_dns_is_told_and_stops_nothing() {
    let mut world = World::new(INGRESS);
    let round = world.settle();
    let told = Reach::AnswersBut {
        reason: Reason::HostnameNotResolved,
        message: "t1.k8s.example.com is not in DNS".into(),
    };
    world.knock(&round, told);
    world.settle();
    assert!(world.holds(ConditionType::Available));
    assert!(world.holds(ConditionType::EndpointReady));
    let (reason, message) = world.condition(ConditionType::EndpointReady);
    assert_eq!(reason, Reason::HostnameNotResolved.as_str());
    assert!(message.contains("not in DNS"), "{message}");
}

#[test]
fn a_class_that_does_not_exist_is_named_until_somebody_answers() {
    let mut world = World::new(INGRESS);
    let classes = |name: &str, default| Some([(name.to_owned(), default)].into());
    world.observed.platform.ingress_classes = classes("nginx", true);
    let round = world.settle();
    let (reason, message) = world.condition(ConditionType::EndpointReady);
    assert_eq!(reason, Reason::ControllerMissing.as_str());
    assert!(message.contains("no IngressClass steward"), "{message}");
    assert!(world.live(Kind::Ingress, "t1").is_some(), "it may come");

    // Some controllers take a class by their own arguments.
    world.knock(&round, Reach::Answers);
    world.settle();
    assert!(world.holds(ConditionType::EndpointReady));

    let mut world = World::new(INGRESS);
    world.observed.platform.ingress_classes = classes("steward", false);
    world.settle();
    assert!(world.holds(ConditionType::EndpointReady));
}

#[test]
fn a_route_that_the_user_makes_is_spelled_out_until_it_works() {
    let mut world = World::new(INGRESS);
    let control_plane = &mut world.observed.tenant.spec.control_plane;
    control_plane.ingress.as_mut().unwrap().deploy = false;
    let round = world.settle();
    assert!(world.live(Kind::Ingress, "t1").is_none());
    let fails = Reach::Fails {
        reason: Reason::HostnameNotResolved,
        message: "it is not in DNS".into(),
    };
    world.knock(&round, fails);
    let round = world.settle();
    let (reason, message) = world.condition(ConditionType::EndpointReady);
    assert_eq!(reason, Reason::RouteNotDeployed.as_str());
    assert!(
        message.contains("t1.k8s.example.com to t1.tenants.svc"),
        "{message}"
    );
    world.knock(&round, Reach::Answers);
    world.settle();
    assert!(world.holds(ConditionType::EndpointReady));
}
