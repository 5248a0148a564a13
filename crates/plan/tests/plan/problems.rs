//! Bad input gets a sentence: the field, what is wrong, what to do.

use steward_api::conditions::Reason;
use steward_plan::{HostnameClaim, Problem, validate};

use crate::world::World;

const PLAIN: &str = include_str!("../tenants/load-balancer.yaml");
const INGRESS: &str = include_str!("../tenants/ingress-steward.yaml");

fn problems(manifest: &str, change: impl FnOnce(&mut World)) -> Vec<Problem> {
    let mut world = World::new(manifest);
    change(&mut world);
    validate(&world.settings, &world.observed).unwrap_err()
}

fn refused(change: impl FnOnce(&mut World), field: &str, words: &str) {
    let found = problems(PLAIN, change);
    let text = found[0].to_string();
    assert!(
        found[0].field.contains(field) && text.contains(words),
        "{text}"
    );
}

#[test]
fn a_version_that_is_none() {
    refused(
        |world| world.observed.tenant.spec.kubernetes.version = "latest".into(),
        "spec.kubernetes.version",
        "write it as v1.36.3",
    );
}

#[test]
fn ranges_that_overlap_or_are_none() {
    let profile = |world: &mut World, pods: &str| {
        world.observed.tenant.spec.network_profile.pod_cidr = Some(pods.into());
    };
    refused(
        |world| profile(world, "10.96.0.0/12"),
        "podCidrs",
        "overlaps the Service range",
    );
    refused(
        |world| profile(world, "10.244.0.0"),
        "podCidrs",
        "not an address range",
    );
    refused(
        |world| profile(world, "10.244.0.1/16"),
        "podCidrs",
        "write 10.244.0.0/16",
    );
}

#[test]
fn a_dns_address_outside_the_service_range() {
    refused(
        |world| {
            world.observed.tenant.spec.network_profile.dns_service_ips = vec!["10.1.0.10".into()];
        },
        "dnsServiceIPs",
        "outside of the Service ranges",
    );
}

#[test]
fn a_fixed_address_inside_a_range_in_use() {
    let found = problems(PLAIN, |world| {
        let proxy = steward_api::tenant_control_plane::TcpProxy {
            address: "10.96.3.3".into(),
            ..Default::default()
        };
        world.observed.tenant.spec.addons.tcp_proxy = Some(proxy);
    });
    assert_eq!(found[0].reason, Reason::AddressConflict, "{}", found[0]);
}

#[test]
fn a_fixed_address_that_is_a_nodes_or_the_front_doors() {
    let address: std::net::IpAddr = "10.20.0.11".parse().unwrap();
    let with_address = |world: &mut World| {
        let proxy = steward_api::tenant_control_plane::TcpProxy {
            address: address.to_string(),
            ..Default::default()
        };
        world.observed.tenant.spec.addons.tcp_proxy = Some(proxy);
    };
    let found = problems(PLAIN, |world| {
        with_address(world);
        world.observed.platform.front_door = vec![address];
    });
    assert!(
        found[0].to_string().contains("the front door"),
        "{}",
        found[0]
    );
    let found = problems(PLAIN, |world| {
        with_address(world);
        let node = steward_plan::NodeSeen {
            name: "worker-1".into(),
            kubelet: "v1.36.3".into(),
            ready: true,
            address: Some(address),
        };
        world.observed.inside = steward_plan::Inside::Reachable {
            version: "v1.36.3".into(),
            nodes: vec![node],
            workloads: std::collections::BTreeMap::default(),
            proxies: Vec::new(),
            leaving: None,
            endpoints: None,
        };
    });
    assert_eq!(found[0].reason, Reason::AddressConflict);
    assert!(found[0].to_string().contains("worker-1"), "{}", found[0]);
}

#[test]
fn hostnames_that_are_missing_or_not_names() {
    for (hostname, words) in [
        (None, "is not set"),
        (Some("10.0.0.1"), "is an address"),
        (Some("*.example.com"), "is a wildcard"),
        (Some("t1_example"), "not a DNS name"),
    ] {
        let found = problems(INGRESS, |world| {
            let ingress = world
                .observed
                .tenant
                .spec
                .control_plane
                .ingress
                .as_mut()
                .unwrap();
            ingress.hostname = hostname.map(str::to_owned);
        });
        assert!(found[0].to_string().contains(words), "{}", found[0]);
    }
}

#[test]
fn who_wants_a_hostname_that_another_holds_is_told_whose_it_is() {
    let claim = |hostname: &str| HostnameClaim {
        hostname: hostname.into(),
        tenant: "other/t9".into(),
    };
    let found = problems(INGRESS, |world| {
        world.observed.claims.push(claim("t1.k8s.example.com"));
    });
    assert_eq!(found[0].reason, Reason::HostnameTaken);
    assert!(found[0].to_string().contains("other/t9"), "{}", found[0]);
    let mut world = World::new(INGRESS);
    world.observed.claims.push(claim("t2.k8s.example.com"));
    assert!(validate(&world.settings, &world.observed).is_ok());
}

#[test]
fn what_the_mode_needs_is_named_when_it_is_not_installed() {
    let found = problems(include_str!("../tenants/gateway.yaml"), |world| {
        world.observed.platform.tls_route = None;
    });
    assert_eq!(found[0].reason, Reason::ControllerMissing, "{}", found[0]);
    let found = problems(include_str!("../tenants/seed-1.yaml"), |world| {
        world.observed.platform.ingress_route_tcp = false;
    });
    assert_eq!(found[0].reason, Reason::ControllerMissing, "{}", found[0]);
}

#[test]
fn a_patch_that_does_not_fit_the_kubelet() {
    refused(
        |world| {
            world
                .observed
                .tenant
                .spec
                .kubernetes
                .kubelet
                .configuration_json_patches =
                vec![steward_api::tenant_control_plane::JsonPatchOperation {
                    op: steward_api::tenant_control_plane::JsonPatchOp::Replace,
                    path: "/no/such/path".into(),
                    from: None,
                    value: Some(1.into()),
                }];
        },
        "configurationJSONPatches",
        "check path and value",
    );
}

#[test]
fn an_authority_that_is_not_there_or_none() {
    let certificates = |name: &str| steward_api::tenant_control_plane::CertificatesSpec {
        ca_secret_name: Some(name.into()),
        ..Default::default()
    };
    let found = problems(PLAIN, |world| {
        world.observed.tenant.spec.certificates = Some(certificates("mine"));
    });
    assert_eq!(found[0].reason, Reason::SecretMissing, "{}", found[0]);
}

#[test]
fn a_tenant_is_not_started_empty_in_another_datastore() {
    let mut world = World::new(PLAIN);
    world.settle();
    world.settings.default_datastore = "etcd-main".into();
    world.settle();
    let used = world
        .observed
        .tenant
        .status
        .clone()
        .unwrap()
        .storage
        .unwrap();
    assert_eq!(
        used.data_store_name.as_deref(),
        Some("default"),
        "a new default is for others"
    );

    world.observed.tenant.spec.data_store = Some("etcd-main".into());
    let found = validate(&world.settings, &world.observed).unwrap_err();
    assert_eq!(found[0].reason, Reason::NotSupported);
    assert!(
        found[0]
            .to_string()
            .contains("set the field back to default"),
        "{}",
        found[0]
    );
}

#[test]
fn a_container_named_like_one_of_ours() {
    refused(
        |world| {
            let deployment = &mut world.observed.tenant.spec.control_plane.deployment;
            deployment.additional_containers = vec![k8s_openapi::api::core::v1::Container {
                name: "kube-apiserver".into(),
                ..Default::default()
            }];
        },
        "additionalContainers",
        "rename yours",
    );
}
