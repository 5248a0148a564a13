//! Where a control plane's connections go: by the egress selector, and by `NetworkPolicy`.

use serde_json::{Value, json};
use steward_api::{conditions::ConditionType, tenant_control_plane::EgressPath};
use steward_plan::{DatastoreSeen, Destination, Kind, validate};

use crate::world::{World, store};

const TUNNEL: &str = include_str!("../tenants/load-balancer.yaml");
const NO_TUNNEL: &str = include_str!("../tenants/cluster-ip.yaml");
const SELECTOR: &str = "t1-konnectivity-egress-selector-configuration";

/// Protocol and socket of each kind of calls.
fn selections(world: &World) -> Option<Vec<(String, String, Option<String>)>> {
    let map = world.live(Kind::ConfigMap, SELECTOR)?;
    let text = map["data"]["egress-selector-configuration.yaml"].as_str()?;
    let config: Value = serde_saphyr::from_str(text).unwrap();
    let all = config["egressSelections"].as_array()?;
    let text_of = |value: &Value| value.as_str().map(str::to_owned);
    let one = |selection: &Value| {
        let connection = &selection["connection"];
        (
            text_of(&selection["name"]).unwrap(),
            text_of(&connection["proxyProtocol"]).unwrap(),
            text_of(&connection["transport"]["uds"]["udsName"]),
        )
    };
    Some(all.iter().map(one).collect())
}

fn mentions(world: &World, flag: &str) -> bool {
    let pods = world.live(Kind::Deployment, "t1").unwrap();
    pods["spec"]["template"]["spec"]["containers"][0]["args"]
        .as_array()
        .unwrap()
        .iter()
        .any(|arg| arg.as_str().unwrap().starts_with(flag))
}

/// Rules of the tenant's policy that lead out, DNS left out.
fn ways_out(world: &World) -> Vec<Value> {
    let policy = world.live(Kind::NetworkPolicy, "t1").unwrap();
    let rules = policy["spec"]["egress"].as_array().unwrap();
    assert_eq!(rules[0]["ports"][0]["port"], 53);
    rules[1..].to_vec()
}

fn set_egress(world: &mut World, egress: Value) {
    world.observed.tenant.spec.control_plane.egress = serde_json::from_value(egress).unwrap();
}

fn set_store(world: &mut World, endpoints: &[&str]) {
    let mut store = store("default");
    store.endpoints = endpoints.iter().map(ToString::to_string).collect();
    let stores = &mut world.observed.datastores;
    stores.insert("default".into(), DatastoreSeen::Ready(store));
}

/// The tenant as an operator before this one left it.
fn from_before(manifest: &str) -> World {
    let mut world = World::new(manifest);
    world.settle();
    world.observed.tenant.status.as_mut().unwrap().egress = None;
    world
}

#[test]
fn both_kinds_of_calls_go_through_the_tunnel() {
    let mut world = World::new(TUNNEL);
    world.settle();
    let all = selections(&world).unwrap();
    let names: Vec<&str> = all.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["cluster", "controlplane"]);
    for (_, protocol, socket) in &all {
        assert_eq!(protocol, "GRPC");
        let socket = socket.as_deref();
        assert_eq!(socket, Some("/run/konnectivity/konnectivity-server.socket"));
    }
}

#[test]
fn without_a_tunnel_both_kinds_of_calls_end_at_a_socket_that_nobody_makes() {
    let mut world = World::new(NO_TUNNEL);
    world.settle();
    let all = selections(&world).unwrap();
    assert_eq!(all.len(), 2);
    let pods = world.live(Kind::Deployment, "t1").unwrap().to_string();
    for (_, protocol, socket) in all {
        assert_eq!(protocol, "HTTPConnect");
        let folder = socket.unwrap();
        let folder = folder.rsplit_once('/').unwrap().0;
        assert!(!pods.contains(folder), "{folder} is mounted");
    }
    assert!(mentions(&world, "--egress-selector-config-file"));
    let reason = world.condition(ConditionType::Accepted).0;
    assert_eq!(reason, "Ready");
}

#[test]
fn a_tenant_from_before_keeps_its_egress_until_the_field_is_set_and_is_told() {
    let mut world = from_before(NO_TUNNEL);
    let status = world.settle().report.status.egress.unwrap();
    assert!(status.kept);
    assert_eq!(status.cluster, EgressPath::Direct);
    assert_eq!(selections(&world), None);
    assert!(!mentions(&world, "--egress-selector-config-file"));
    let anywhere = |rule: &Value| rule["to"][0]["ipBlock"]["cidr"] == "0.0.0.0/0";
    let all_ports = |rule: &&Value| anywhere(rule) && rule["ports"].is_null();
    assert!(ways_out(&world).iter().any(|rule| all_ports(&rule)));
    let (reason, message) = world.condition(ConditionType::Accepted);
    assert_eq!(reason, "EgressKept");
    assert!(message.contains("spec.controlPlane.egress"), "{message}");
    assert!(world.holds(ConditionType::Available));

    set_egress(&mut world, json!({}));
    let status = world.settle().report.status.egress.unwrap();
    assert!(!status.kept);
    assert_eq!(selections(&world).unwrap().len(), 2);
    assert!(!ways_out(&world).iter().any(|rule| all_ports(&rule)));

    // Once closed, it doesn't open by forgetting.
    world.observed.tenant.spec.control_plane.egress = None;
    let status = world.settle().report.status.egress.unwrap();
    assert_eq!(status.cluster, EgressPath::Closed);
}

#[test]
fn a_tenant_from_before_with_a_tunnel_uses_it_for_urls_too_unless_arguments_name_webhooks() {
    let mut world = from_before(TUNNEL);
    let status = world.settle().report.status.egress.unwrap();
    assert_eq!(status.control_plane, EgressPath::Tunnel);
    assert!(!status.kept);

    let mut world = from_before(TUNNEL);
    let args = json!({"apiServer": ["--audit_webhook-config-file=/audit/config"]});
    let deployment = &mut world.observed.tenant.spec.control_plane.deployment;
    deployment.extra_args = serde_json::from_value(args).unwrap();
    let status = world.settle().report.status.egress.unwrap();
    assert!(status.kept);
    assert_eq!(status.cluster, EgressPath::Tunnel);
    assert_eq!(status.control_plane, EgressPath::Direct);
    assert_eq!(selections(&world).unwrap()[1].1, "Direct");
}

#[test]
fn direct_is_what_the_field_says_and_ends_with_it() {
    let mut world = World::new(NO_TUNNEL);
    set_egress(&mut world, json!({"cluster": "Direct"}));
    world.settle();
    let all = selections(&world).unwrap();
    assert_eq!(all[0].1, "Direct");
    assert_eq!(all[1].1, "HTTPConnect");
    set_egress(&mut world, Value::Null);
    world.settle();
    assert_eq!(selections(&world).unwrap()[0].1, "HTTPConnect");
}

#[test]
fn what_the_field_says_wrong_is_a_sentence() {
    let mut world = World::new(NO_TUNNEL);
    set_egress(
        &mut world,
        json!({"cluster": "Tunnel", "allow": [{"cidr": "10.0.0.1/8"}, {"cidr": "issuer.example"}]}),
    );
    let problems = validate(&world.settings, &world.observed).unwrap_err();
    let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let said = said.join("\n");
    for part in [
        "write 10.0.0.0/8",
        "\"issuer.example\" is not an address range",
        "Tunnel leads through konnectivity",
    ] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn a_managed_datastore_is_reached_by_its_pods_and_on_one_port() {
    let mut world = World::new(TUNNEL);
    let members = [0, 1, 2].map(|index| {
        format!("default-etcd-{index}.default-etcd.steward-system.svc.cluster.local:2379")
    });
    set_store(&mut world, &members.each_ref().map(String::as_str));
    world.settle();
    let expected = json!({
        "ports": [{"port": 2379, "protocol": "TCP"}],
        "to": [{
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "steward-system"}},
            "podSelector": {"matchLabels": {
                "steward.butlerlabs.dev/component": "etcd",
                "steward.butlerlabs.dev/datastore": "default",
                "steward.butlerlabs.dev/project": "steward",
            }},
        }],
    });
    assert_eq!(ways_out(&world), [expected]);
}

#[test]
fn a_name_that_only_looks_like_a_managed_datastore_is_not_taken_for_one() {
    let mut world = World::new(TUNNEL);
    let host = "evil-default-etcd.steward-system.svc.cluster.local:2379";
    set_store(&mut world, &[host]);
    world.settle();
    assert_eq!(ways_out(&world)[0]["to"][0]["ipBlock"]["cidr"], "0.0.0.0/0");
}

#[test]
fn an_external_datastore_is_reached_at_its_addresses_only() {
    let mut world = World::new(TUNNEL);
    set_store(&mut world, &["192.0.2.5:2379", "[2001:db8::5]:2380"]);
    world.settle();
    let all = ways_out(&world);
    let blocks: Vec<_> = all
        .iter()
        .map(|rule| {
            let peers = rule["to"].as_array().unwrap();
            assert_eq!(peers.len(), 1);
            (
                peers[0]["ipBlock"]["cidr"].as_str().unwrap(),
                rule["ports"][0]["port"].as_i64().unwrap(),
            )
        })
        .collect();
    assert_eq!(blocks, [("192.0.2.5/32", 2379), ("2001:db8::5/128", 2380)]);
}

#[test]
fn a_datastore_with_a_name_is_reached_on_its_port_but_not_at_blocked_addresses() {
    let mut world = World::new(TUNNEL);
    world.settle();
    let [rule] = &ways_out(&world)[..] else {
        panic!("one rule for two members")
    };
    assert_eq!(rule["ports"], json!([{"port": 2379, "protocol": "TCP"}]));
    assert_eq!(
        rule["to"][0]["ipBlock"]["except"],
        json!(["169.254.0.0/16"])
    );
    assert_eq!(rule["to"][1]["ipBlock"]["except"], json!(["fe80::/10"]));
}

#[test]
fn allowed_addresses_are_those_of_the_tenant_and_those_for_all_without_what_is_blocked() {
    let mut world = World::new(TUNNEL);
    set_store(&mut world, &["192.0.2.5:2379"]);
    world.settings.allowed_egress = vec!["203.0.113.7/32:443".parse::<Destination>().unwrap()];
    world.settings.blocked_egress = vec!["10.1.0.0/16".parse().unwrap()];
    let allow = json!([{"cidr": "10.0.0.0/8", "ports": [443, 8443]}, {"cidr": "10.1.2.0/24"}]);
    set_egress(&mut world, json!({ "allow": allow }));
    world.settle();
    let tcp = |port: u16| json!({"port": port, "protocol": "TCP"});
    let block = |cidr: &str| json!([{"ipBlock": {"cidr": cidr}}]);
    assert_eq!(
        ways_out(&world)[1..],
        [
            json!({"ports": [tcp(443)], "to": block("203.0.113.7/32")}),
            json!({
                "ports": [tcp(443), tcp(8443)],
                "to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}],
            }),
            json!({"to": block("10.1.2.0/24")}),
        ]
    );
}

#[test]
fn an_argument_that_dials_is_told_that_nothing_is_allowed() {
    let mut world = World::new(TUNNEL);
    let args = json!({"apiServer": ["--oidc-issuer-url=https://issuer.example"]});
    let deployment = &mut world.observed.tenant.spec.control_plane.deployment;
    deployment.extra_args = serde_json::from_value(args).unwrap();
    world.settle();
    assert_eq!(world.condition(ConditionType::Accepted).0, "EgressClosed");
    let allow = json!([{"cidr": "203.0.113.7/32", "ports": [443]}]);
    set_egress(&mut world, json!({ "allow": allow }));
    world.settle();
    assert_eq!(world.condition(ConditionType::Accepted).0, "Ready");
}

#[test]
fn clients_come_from_anywhere_and_metrics_are_for_named_namespaces() {
    let mut world = World::new(include_str!("../tenants/everything.yaml"));
    world.settle();
    let name = world.observed.tenant.metadata.name.clone().unwrap();
    let policy = world.live(Kind::NetworkPolicy, &name).unwrap();
    let rules = policy["spec"]["ingress"].as_array().unwrap();
    assert_eq!(rules.len(), 2);
    let ports = |rule: &Value| -> Vec<Value> {
        let ports = rule["ports"].as_array().unwrap();
        ports.iter().map(|port| port["port"].clone()).collect()
    };
    assert!(rules[0]["from"].is_null());
    let open = ports(&rules[0]);
    for port in [6443, 7443, 8132] {
        assert!(open.contains(&json!(port)), "{open:?}");
    }
    for closed in ports(&rules[1]) {
        assert!(!open.contains(&closed), "{closed} is open to everybody");
    }
    assert_eq!(rules[1]["from"].as_array().unwrap().len(), 2);
    let selected = &policy["spec"]["podSelector"]["matchLabels"];
    let pods = world.live(Kind::Deployment, &name).unwrap();
    assert_eq!(*selected, pods["spec"]["selector"]["matchLabels"]);
}

#[test]
fn policies_go_when_they_are_turned_off() {
    let mut world = World::new(TUNNEL);
    world.settle();
    assert!(world.live(Kind::NetworkPolicy, "t1").is_some());
    world.settings.network_policies = false;
    world.settle();
    assert!(world.live(Kind::NetworkPolicy, "t1").is_none());
}

#[test]
fn a_destination_is_a_range_with_perhaps_a_port() {
    let parse = |text: &str| text.parse::<Destination>();
    assert_eq!(parse("fd00::/8:443").unwrap().ports, [443]);
    assert_eq!(parse("10.0.0.0/8").unwrap().ports, Vec::<u16>::new());
    for wrong in [
        "10.0.0.0",
        "10.0.0.1/8",
        "10.0.0.0/8:0",
        "10.0.0.0/8:x",
        "x/8",
    ] {
        let said = parse(wrong).unwrap_err();
        assert!(said.contains("203.0.113.7/32:443"), "{said}");
    }
}
