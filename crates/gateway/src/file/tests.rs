//! Good files are read in full; bad ones are refused with file, line and field.

use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Result<Vec<(Host, RouteSpec)>, String> {
    parse(Path::new("routes.yaml"), text).map_err(|error| error.to_string())
}

#[test]
fn a_full_route_is_read() {
    let routes = read(concat!(
        "routes:\n",
        "- host: T1.k8s.example.com        # a comment\n",
        "  backends: [\"10.0.0.1:6443\", \"[2001:db8::1]:6443\"]\n",
        "  sendProxy: v2\n",
        "  allow: [\"192.0.2.0/24\", \"2001:db8::5\"]\n",
        "  maxConnections: 10000\n",
        "  maxHandshakesPerSecond: 200\n",
        "- host: '*.k8s.example.com'\n",
        "  backends: ['10.0.0.9:6443']\n",
    ))
    .unwrap();
    assert_eq!(routes[0].0.to_string(), "t1.k8s.example.com");
    assert_eq!(
        routes[0].1,
        RouteSpec {
            backends: vec![
                "10.0.0.1:6443".parse().unwrap(),
                "[2001:db8::1]:6443".parse().unwrap()
            ],
            send_proxy: Some(ProxyVersion::V2),
            allow: vec![
                "192.0.2.0/24".parse().unwrap(),
                "2001:db8::5/128".parse().unwrap()
            ],
            max_connections: Some(10_000),
            max_handshakes_per_second: Some(200),
            one_label: false,
        }
    );
    assert_eq!(routes[1].0.to_string(), "*.k8s.example.com");
}

#[test]
fn no_routes_are_fine_when_said_so() {
    assert_eq!(read("routes: []\n").unwrap(), []);
    assert_eq!(read("routes:\n").unwrap(), []);
    assert_eq!(
        read(" \n").unwrap_err(),
        "routes.yaml: line 1: routes: is missing; write `routes: []` for none"
    );
}

#[test]
fn bad_values_are_named_with_line_and_field() {
    let good = "routes:\n- host: a.b\n  backends: ['10.0.0.1:1']\n";
    for (text, expected) in [
        (
            format!("{good}- host: A.B.\n  backends: ['10.0.0.1:1']\n"),
            "line 4: routes[1].host: `a.b` has a route on line 2 already",
        ),
        (
            "routes:\n- host: 'no host'\n  backends: ['10.0.0.1:1']\n".into(),
            "line 2: routes[0].host: `no host` has a character",
        ),
        (
            "routes:\n- host: a.b\n  backends: ['10.0.0.1']\n".into(),
            "line 3: routes[0].backends[0]: `10.0.0.1` is not an address and port",
        ),
        (
            "routes:\n- host: a.b\n  backends: ['10.0.0.1:0']\n".into(),
            "line 3: routes[0].backends[0]: `10.0.0.1:0` has port 0",
        ),
        (
            "routes:\n- host: a.b\n  backends: []\n".into(),
            "line 3: routes[0].backends: give 1 to 64 backends",
        ),
        (
            format!("{good}  allow: [x]\n"),
            "line 4: routes[0].allow[0]: `x` is not a range",
        ),
        (
            format!("{good}  sendProxy: v3\n"),
            "line 4: routes[0].sendProxy: `v3` is not a version",
        ),
        (
            format!("{good}  maxConnections: 0\n"),
            "line 4: routes[0].maxConnections: 0 would let nobody in",
        ),
        (
            format!("{good}  maxConnections: many\n"),
            "line 4: invalid u32",
        ),
        (
            format!("{good}  backend: x\n"),
            "line 4: unknown field `backend`, expected one of host, backends",
        ),
        ("routes:\n- host: a.b\n".into(), "missing field `backends`"),
        ("routes: [\n".into(), "routes.yaml: line "),
        ("- a\n".into(), "routes.yaml: "),
    ] {
        let error = read(&text).unwrap_err();
        assert!(
            error.starts_with("routes.yaml: ") && error.contains(expected),
            "{text}\n→ {error}"
        );
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = load(Path::new("/nonexistent/routes.yaml"))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("/nonexistent/routes.yaml: cannot be read"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[ -~\n]{0,200}") {
        let _ = read(&text);
        let _ = read(&format!("routes:\n- host: {text}"));
    }
}
