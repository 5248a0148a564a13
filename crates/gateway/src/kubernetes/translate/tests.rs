//! Stories about objects: each is a few lines of YAML and what must follow.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::*;
use crate::kubernetes::status;
use crate::kubernetes::world::{Grant, Published, Route};

fn parse<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

fn world(yaml: &str) -> World {
    let mut world = World {
        published: vec![Published::Ip("192.0.2.10".parse().unwrap())],
        ..World::default()
    };
    for document in yaml.split("---").filter(|d| !d.trim().is_empty()) {
        let value: Value = serde_saphyr::from_str(document).unwrap();
        match value["kind"].as_str().unwrap() {
            "Ingress" => world.ingresses.push(Arc::new(parse(&value))),
            "IngressClass" => world.ingress_classes.push(Arc::new(parse(&value))),
            "GatewayClass" => world.gateway_classes.push(Arc::new(parse(&value))),
            "Gateway" => world.gateways.push(Arc::new(parse(&value))),
            "Service" => world.services.push(Arc::new(parse(&value))),
            "EndpointSlice" => world.slices.push(Arc::new(parse(&value))),
            "Namespace" => world.namespaces.push(Arc::new(parse(&value))),
            "TLSRoute" => world.routes.push(Route {
                metadata: parse(&value["metadata"]),
                spec: parse(&value["spec"]),
                status: None,
            }),
            "ReferenceGrant" => world.grants.push(Grant {
                namespace: value["metadata"]["namespace"].as_str().unwrap().to_owned(),
                spec: parse(&value["spec"]),
            }),
            other => panic!("no such kind in these tests: {other}"),
        }
    }
    world
}

/// The same under a name that a local `world` does not hide.
fn world_of(yaml: &str) -> World {
    world(yaml)
}

const BASE: &str = r"
kind: IngressClass
metadata: { name: steward }
spec: { controller: steward.butlerlabs.dev/gateway }
---
kind: GatewayClass
metadata: { name: steward, generation: 1 }
spec: { controllerName: steward.butlerlabs.dev/gateway }
---
kind: Gateway
metadata: { name: front, namespace: infra, generation: 1 }
spec:
  gatewayClassName: steward
  listeners:
  - { name: tls, port: 443, protocol: TLS, hostname: '*.example.com', tls: { mode: Passthrough }, allowedRoutes: { namespaces: { from: All } } }
---
kind: Service
metadata: { name: t1, namespace: tenants }
spec: { ports: [ { name: kube-apiserver, port: 6443 }, { name: konnectivity-server, port: 8132 } ] }
---
kind: EndpointSlice
metadata: { name: t1-abc, namespace: tenants, labels: { kubernetes.io/service-name: t1 } }
addressType: IPv4
ports: [ { name: kube-apiserver, port: 7443 }, { name: konnectivity-server, port: 8132 } ]
endpoints:
- { addresses: [ 10.0.0.1 ], conditions: { ready: true } }
- { addresses: [ 10.0.0.2 ], conditions: { ready: false } }
- { addresses: [ 10.0.0.3 ] }
";

fn with(more: &str) -> World {
    world(&format!("{BASE}---{more}"))
}

fn addresses(t: &Translation<'_>, host: &str) -> Vec<String> {
    t.settled.routes[host]
        .backends
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// The status, reason and message of a condition of the first route's first parent.
fn said(t: &Translation<'_>, kind: &str) -> (bool, &'static str, String) {
    let found = t.attachments[0].parents[0]
        .said
        .iter()
        .find(|s| s.kind == kind)
        .unwrap();
    (found.holds, found.reason, found.message.clone())
}

#[test]
fn an_ingress_of_our_class_routes_to_the_ready_pods_of_its_service() {
    let world = with(
        "
kind: Ingress
metadata: { name: t1, namespace: tenants }
spec:
  ingressClassName: steward
  rules:
  - { host: T1.example.com, http: { paths: [ { path: /, pathType: Prefix, backend: { service: { name: t1, port: { number: 6443 } } } } ] } }
  - { host: t1-konnectivity.example.com, http: { paths: [ { path: /, pathType: Prefix, backend: { service: { name: t1, port: { name: konnectivity-server } } } } ] } }
",
    );
    let t = translate(&world, 443);
    assert_eq!(
        addresses(&t, "t1.example.com"),
        ["10.0.0.1:7443", "10.0.0.3:7443"]
    );
    assert_eq!(
        addresses(&t, "t1-konnectivity.example.com"),
        ["10.0.0.1:8132", "10.0.0.3:8132"]
    );
}

#[test]
fn a_wildcard_is_one_label_in_an_ingress_and_any_number_in_a_route() {
    let ingress = "
kind: Ingress
metadata: { name: wide, namespace: tenants }
spec:
  ingressClassName: steward
  rules: [ { host: '*.apps.example.com', http: { paths: [ { path: /, pathType: Prefix, backend: { service: { name: t1, port: { number: 6443 } } } } ] } } ]
";
    let route = ROUTE.replace(
        "hostnames: [ t1.example.com ]",
        "hostnames: [ '*.example.com' ]",
    );
    let world = with(&format!("{ingress}---{route}"));
    let t = translate(&world, 443);
    assert!(t.settled.routes["*.apps.example.com"].one_label);
    assert!(!t.settled.routes["*.example.com"].one_label);
}

#[test]
fn an_ingress_of_another_class_is_left_alone() {
    let world = with(
        "
kind: Ingress
metadata: { name: t1, namespace: tenants }
spec:
  ingressClassName: traefik
  rules: [ { host: t1.example.com, http: { paths: [ { path: /, pathType: Prefix, backend: { service: { name: t1, port: { number: 6443 } } } } ] } } ]
",
    );
    assert!(translate(&world, 443).settled.routes.is_empty());
}

const ROUTE: &str = "
kind: TLSRoute
metadata: { name: t1, namespace: tenants, generation: 1 }
spec:
  hostnames: [ t1.example.com ]
  parentRefs: [ { name: front, namespace: infra } ]
  rules: [ { backendRefs: [ { name: t1, port: 6443 } ] } ]
";

#[test]
fn a_route_attaches_to_a_listener_that_admits_its_namespace() {
    let world = with(ROUTE);
    let t = translate(&world, 443);
    assert_eq!(
        addresses(&t, "t1.example.com"),
        ["10.0.0.1:7443", "10.0.0.3:7443"]
    );
    assert!(said(&t, "Accepted").0 && said(&t, "ResolvedRefs").0);
}

#[test]
fn status_says_it_once_and_then_nothing_more_is_due() {
    let mut world = with(ROUTE);
    let now = k8s_openapi::jiff::Timestamp::from_second(1_000).unwrap();
    let t = translate(&world, 443);
    let writes = status::due(&world, &t, now);
    assert_eq!(writes.len(), 3, "class, gateway and route: {writes:?}");
    let gateway = writes
        .iter()
        .find(|w| w.target == status::Target::Gateway)
        .unwrap();
    assert_eq!(gateway.status["listeners"][0]["attachedRoutes"], 1);
    assert_eq!(gateway.status["addresses"][0]["value"], "192.0.2.10");
    for write in writes {
        match write.target {
            status::Target::GatewayClass => {
                Arc::make_mut(&mut world.gateway_classes[0]).status = Some(parse(&write.status));
            }
            status::Target::Gateway => {
                Arc::make_mut(&mut world.gateways[0]).status = Some(parse(&write.status));
            }
            status::Target::TlsRoute => world.routes[0].status = Some(parse(&write.status)),
            status::Target::Ingress => unreachable!("there is none"),
        }
    }
    let later = k8s_openapi::jiff::Timestamp::from_second(2_000).unwrap();
    let t = translate(&world, 443);
    assert!(status::due(&world, &t, later).is_empty());
}

#[test]
fn a_route_learns_why_it_is_refused() {
    let cases = [
        (
            "name: front, namespace: infra }",
            "name: front, namespace: infra, sectionName: other }",
            "NoMatchingParent",
        ),
        (
            "t1.example.com",
            "t1.example.org",
            "NoMatchingListenerHostname",
        ),
    ];
    for (from, to, reason) in cases {
        let world = with(&ROUTE.replace(from, to));
        let t = translate(&world, 443);
        assert_eq!(said(&t, "Accepted").1, reason);
        assert!(t.settled.routes.is_empty(), "{reason}");
    }
    let closed = format!("{BASE}---{ROUTE}").replace("from: All", "from: Same");
    let world = world(&closed);
    let t = translate(&world, 443);
    assert_eq!(said(&t, "Accepted").1, "NotAllowedByListeners");
}

#[test]
fn a_parent_of_another_controller_is_not_spoken_about() {
    let world = with(&ROUTE.replace("name: front", "name: foreign"));
    assert!(translate(&world, 443).attachments[0].parents.is_empty());
}

#[test]
fn backends_that_cannot_be_used_are_named() {
    let cases = [
        (
            "name: t1, port: 6443",
            "name: nobody, port: 6443",
            "BackendNotFound",
        ),
        (
            "name: t1, port: 6443",
            "name: t1, port: 1",
            "BackendNotFound",
        ),
        (
            "name: t1, port: 6443",
            "name: t1, port: 6443, kind: Bucket, group: x.example",
            "InvalidKind",
        ),
        (
            "name: t1, port: 6443",
            "name: t1, port: 6443, namespace: elsewhere",
            "RefNotPermitted",
        ),
    ];
    for (from, to, reason) in cases {
        let world = with(&ROUTE.replace(from, to));
        let t = translate(&world, 443);
        assert_eq!(said(&t, "ResolvedRefs").1, reason);
        assert!(t.settled.routes["t1.example.com"].backends.is_empty());
    }
}

#[test]
fn a_grant_opens_the_way_to_another_namespace() {
    let elsewhere = ROUTE
        .replace("namespace: tenants", "namespace: apps")
        .replace(
            "name: t1, port: 6443",
            "name: t1, namespace: tenants, port: 6443",
        );
    let grant = "
kind: ReferenceGrant
metadata: { name: g, namespace: tenants }
spec:
  from: [ { group: gateway.networking.k8s.io, kind: TLSRoute, namespace: apps } ]
  to: [ { group: '', kind: Service, name: t1 } ]
";
    let world = with(&format!("{elsewhere}---{grant}"));
    let t = translate(&world, 443);
    assert!(said(&t, "ResolvedRefs").0);
    assert_eq!(addresses(&t, "t1.example.com").len(), 2);
}

#[test]
fn listeners_we_cannot_serve_say_what_to_write_instead() {
    for (from, to, reason) in [
        (
            "mode: Passthrough",
            "mode: Terminate",
            "UnsupportedProtocol",
        ),
        ("protocol: TLS", "protocol: HTTPS", "UnsupportedProtocol"),
        ("port: 443", "port: 8443", "PortUnavailable"),
    ] {
        let world = world(&BASE.replace(from, to));
        let t = translate(&world, 443);
        let accepted = t.listeners[0]
            .said
            .iter()
            .find(|s| s.kind == "Accepted")
            .unwrap();
        assert_eq!((accepted.holds, accepted.reason), (false, reason));
    }
}

#[test]
fn the_older_of_two_routes_keeps_the_name_and_the_younger_is_told_who_has_it() {
    let old = ROUTE.replace(
        "generation: 1",
        "generation: 1, creationTimestamp: '2026-01-01T00:00:00Z'",
    );
    let young = old
        .replace(
            "name: t1, namespace: tenants, gen",
            "name: thief, namespace: tenants, gen",
        )
        .replace("2026-01", "2026-02");
    let world = with(&format!("{young}---{old}"));
    let t = translate(&world, 443);
    assert_eq!(
        t.settled.routes["t1.example.com"].owner,
        "TLSRoute tenants/t1"
    );
    let (holds, reason, message) = said(&t, "Accepted");
    assert_eq!((holds, reason), (false, "HostnameConflict"));
    assert!(message.contains("TLSRoute tenants/t1"), "{message}");
}

#[test]
fn a_wildcard_route_does_not_take_a_name_that_another_claims_exactly() {
    let wildcard = ROUTE
        .replace(
            "name: t1, namespace: tenants, gen",
            "name: wide, namespace: tenants, creationTimestamp: '2020-01-01T00:00:00Z', gen",
        )
        .replace("hostnames: [ t1.", "hostnames: [ '*.")
        .replace(".example.com ]", ".example.com' ]");
    let world = with(&format!("{wildcard}---{ROUTE}"));
    let t = translate(&world, 443);
    assert_eq!(
        t.settled.routes["t1.example.com"].owner,
        "TLSRoute tenants/t1"
    );
    assert_eq!(
        t.settled.routes["*.example.com"].owner,
        "TLSRoute tenants/wide"
    );
}

#[test]
fn a_listener_may_select_namespaces_by_label() {
    let base = BASE.replace(
        "from: All",
        "from: Selector, selector: { matchLabels: { tier: gold } }",
    );
    let gold = "
kind: Namespace
metadata: { name: tenants, labels: { tier: gold } }
";
    let world = world(&format!("{base}---{gold}---{ROUTE}"));
    assert!(said(&translate(&world, 443), "Accepted").0);
    let tin = world_of(&format!(
        "{base}---{}---{ROUTE}",
        gold.replace("tier: gold", "tier: tin")
    ));
    assert_eq!(
        said(&translate(&tin, 443), "Accepted").1,
        "NotAllowedByListeners"
    );
}
