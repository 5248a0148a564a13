//! The table against the rule stated plainly: the longest match wins.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn host(text: &str) -> Host {
    text.parse().unwrap()
}

fn to(port: u16) -> RouteSpec {
    RouteSpec {
        backends: vec![([10, 0, 0, 1], port).into()],
        ..RouteSpec::default()
    }
}

fn port(table: &Table, name: &str) -> Option<u16> {
    table
        .lookup(name)
        .map(|route| route.backends()[0].address().port())
}

#[test]
fn exact_beats_wildcard_and_longer_beats_shorter() {
    let table = Table::new()
        .with_route(host("*.example.com"), &to(1))
        .with_route(host("*.k8s.example.com"), &to(2))
        .with_route(host("t1.k8s.example.com"), &to(3));
    assert_eq!(port(&table, "t1.k8s.example.com"), Some(3));
    assert_eq!(port(&table, "t2.k8s.example.com"), Some(2));
    assert_eq!(port(&table, "a.t1.k8s.example.com"), Some(2));
    assert_eq!(port(&table, "www.example.com"), Some(1));
    assert_eq!(
        port(&table, "example.com"),
        None,
        "a wildcard is not its own parent"
    );
    assert_eq!(port(&table, "example.org"), None);
}

#[test]
fn a_wildcard_of_one_label_leaves_longer_names_to_wider_routes() {
    let narrow = RouteSpec {
        one_label: true,
        ..to(2)
    };
    let table = Table::new()
        .with_route(host("*.example.com"), &to(1))
        .with_route(host("*.k8s.example.com"), &narrow);
    assert_eq!(port(&table, "t1.k8s.example.com"), Some(2));
    assert_eq!(port(&table, "a.t1.k8s.example.com"), Some(1));
}

#[test]
fn an_exact_and_a_wildcard_route_of_one_name_are_two_routes() {
    let table = Table::new()
        .with_route(host("example.com"), &to(1))
        .with_route(host("*.example.com"), &to(2));
    assert_eq!(table.len(), 2);
    let table = table.without(&host("example.com"));
    assert_eq!(port(&table, "example.com"), None);
    assert_eq!(port(&table, "a.example.com"), Some(2));
}

#[test]
fn a_reader_keeps_its_table_while_the_next_one_is_made() {
    let router = Router::new(Table::new().with_route(host("a.b"), &to(1)));
    let before = router.table();
    router.update(|table| table.with_route(host("a.b"), &to(2)));
    assert_eq!(port(&before, "a.b"), Some(1));
    assert_eq!(port(&router.table(), "a.b"), Some(2));
}

#[test]
fn a_whole_new_table_keeps_the_state_of_hosts_that_stay() {
    let limited = RouteSpec {
        max_connections: Some(1),
        ..to(1)
    };
    let old = Table::new()
        .with_route(host("a.b"), &limited)
        .with_route(host("c.d"), &to(1));
    let source = [127, 0, 0, 1].into();
    let now = crate::limits::Clock::zero();
    let shares = crate::shares::Shares::new(crate::shares::Limits::none());
    let enter = |table: &Table| table.lookup("a.b").unwrap().enter(source, now, &shares);
    enter(&old).unwrap();
    let new = old.replaced([(host("a.b"), &limited)]);
    assert_eq!(new.len(), 1);
    assert!(enter(&new).is_err());
}

#[test]
fn changes_made_at_once_from_two_threads_are_both_there() {
    let router = Router::default();
    std::thread::scope(|scope| {
        for half in 0..2 {
            let router = &router;
            scope.spawn(move || {
                for number in 0..200 {
                    let host = host(&format!("t{number}.h{half}.example.com"));
                    router.update(|table| table.with_route(host, &to(1)));
                }
            });
        }
    });
    assert_eq!(router.table().len(), 400);
}

/// The rule, over a list.
fn by_rule(routes: &BTreeMap<Host, u16>, name: &str) -> Option<u16> {
    if let Some(port) = routes.get(&Host::Exact(name.into())) {
        return Some(*port);
    }
    routes
        .iter()
        .filter(|(host, _)| {
            matches!(host, Host::Below(parent) if name.ends_with(&format!(".{parent}")))
        })
        .max_by_key(|(host, _)| host.name().len())
        .map(|(_, port)| *port)
}

fn names() -> impl Strategy<Value = String> {
    proptest::collection::vec("[ab]", 1..5).prop_map(|labels| labels.join("."))
}

proptest! {
    #[test]
    fn lookup_follows_the_rule(
        steps in proptest::collection::vec((names(), any::<bool>(), any::<Option<u16>>()), 1..60),
        asked in proptest::collection::vec(names(), 1..30),
    ) {
        let mut routes = BTreeMap::new();
        let mut table = Table::new();
        for (name, wildcard, port) in steps {
            let host = if wildcard { Host::Below(name.into()) } else { Host::Exact(name.into()) };
            if let Some(port) = port {
                table = table.with_route(host.clone(), &to(port));
                routes.insert(host, port);
            } else {
                table = table.without(&host);
                routes.remove(&host);
            }
        }
        prop_assert_eq!(table.len(), routes.len());
        prop_assert_eq!(table.iter().count(), routes.len());
        for name in asked {
            prop_assert_eq!(port(&table, &name), by_rule(&routes, &name), "{}", name);
        }
    }
}
