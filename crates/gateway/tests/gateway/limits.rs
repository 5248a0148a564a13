//! Routes, their limits, PROXY headers and backends, as seen by a client.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    thread,
};

use steward_wire::proxy_protocol;

use crate::support::{Gateway, free_address, hello, named_echo, route, until, who};

/// Opens a connection that stays; reads who answered.
fn stay(gateway: &Gateway, host: &str, name: &str) -> TcpStream {
    let mut stream = gateway.connect();
    stream.write_all(&hello(host)).unwrap();
    let mut answer = vec![0; name.len()];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, name.as_bytes());
    stream
}

#[test]
fn the_most_specific_route_answers_and_the_rest_gets_an_alert() {
    let routes = format!(
        "routes:\n{}{}{}",
        route("t1.example.com", named_echo("exact")),
        route("*.example.com", named_echo("wide")),
        route("*.k8s.example.com", named_echo("narrow")),
    );
    let gateway = Gateway::start(&routes);
    assert_eq!(who(&gateway, "t1.example.com"), Ok("exact".into()));
    assert_eq!(who(&gateway, "t2.example.com"), Ok("wide".into()));
    assert_eq!(who(&gateway, "t1.k8s.example.com"), Ok("narrow".into()));
    assert_eq!(who(&gateway, "example.org"), Err(112));
    let outcome = "steward_gateway_handshakes_total{outcome=\"unrecognized_name\"}";
    until("it is counted", || gateway.metric(outcome) == 1);
}

#[test]
fn a_changed_file_is_seen_by_the_next_connection_and_no_other() {
    let gateway = Gateway::start(&format!(
        "routes:\n{}",
        route("a.example.com", named_echo("one"))
    ));
    let mut before = stay(&gateway, "a.example.com", "one");
    gateway.write_routes(&format!(
        "routes:\n{}",
        route("a.example.com", named_echo("two"))
    ));
    until("the new route answers", || {
        who(&gateway, "a.example.com") == Ok("two".into())
    });
    gateway.write_routes("routes: [");
    until("the broken file is noticed", || {
        gateway.metric("steward_gateway_routes_file_good") == 0
    });
    assert_eq!(who(&gateway, "a.example.com"), Ok("two".into()));
    gateway.write_routes("routes: []");
    until("the route is gone", || {
        who(&gateway, "a.example.com") == Err(112)
    });
    before.write_all(b"still here").unwrap();
    let mut answer = [0; 10];
    before.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"still here");
}

#[test]
fn a_full_route_turns_away_and_others_do_not_notice() {
    let routes = format!(
        "routes:\n{}  maxConnections: 2\n{}",
        route("full.example.com", named_echo("full")),
        route("free.example.com", named_echo("free")),
    );
    let gateway = Gateway::start(&routes);
    let first = stay(&gateway, "full.example.com", "full");
    let _second = stay(&gateway, "full.example.com", "full");
    assert_eq!(who(&gateway, "full.example.com"), Err(80));
    assert_eq!(who(&gateway, "free.example.com"), Ok("free".into()));
    drop(first);
    until("there is room again", || {
        who(&gateway, "full.example.com") == Ok("full".into())
    });
}

#[test]
fn handshakes_are_limited_per_route() {
    let routes = format!(
        "routes:\n{}  maxHandshakesPerSecond: 3\n{}",
        route("slow.example.com", named_echo("slow")),
        route("fast.example.com", named_echo("fast")),
    );
    let gateway = Gateway::start(&routes);
    let refused = (0..200)
        .filter(|_| who(&gateway, "slow.example.com") == Err(80))
        .count();
    assert!(refused > 0, "a flood is slowed down");
    assert_eq!(who(&gateway, "fast.example.com"), Ok("fast".into()));
    until("the flood is over", || {
        who(&gateway, "slow.example.com") == Ok("slow".into())
    });
}

#[test]
fn only_allowed_sources_get_in() {
    let routes = format!(
        "routes:\n{}  allow: [\"192.0.2.0/24\"]\n{}  allow: [\"127.0.0.0/8\"]\n",
        route("far.example.com", named_echo("far")),
        route("near.example.com", named_echo("near")),
    );
    let gateway = Gateway::start_with(&routes, &["--trust-proxy", "127.0.0.1/32"], "");
    assert_eq!(who(&gateway, "far.example.com"), Err(49));
    assert_eq!(who(&gateway, "near.example.com"), Ok("near".into()));
    // A trusted sender may speak for another client.
    let source: SocketAddr = "192.0.2.7:1000".parse().unwrap();
    for header in [
        proxy_protocol::encode_v1(source, gateway.address),
        proxy_protocol::encode_v2(source, gateway.address),
    ] {
        let mut stream = gateway.connect();
        for byte in [&header[..], &hello("far.example.com")].concat() {
            stream.write_all(&[byte]).unwrap();
        }
        let mut answer = [0; 3];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"far");
    }
}

#[test]
fn a_header_from_a_stranger_is_not_believed() {
    let gateway = Gateway::start(&format!("routes:\n{}", route("a.b", named_echo("x"))));
    let mut stream = gateway.connect();
    let header = proxy_protocol::encode_v2(gateway.address, gateway.address);
    stream.write_all(&[header, hello("a.b")].concat()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(answer, b"");
}

#[test]
fn backends_get_the_proxy_header_they_ask_for() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let backend = listener.local_addr().unwrap();
    for version in ["v1", "v2"] {
        let routes = format!("routes:\n{}  sendProxy: {version}\n", route("a.b", backend));
        let gateway = Gateway::start(&routes);
        let mut stream = gateway.connect();
        stream.write_all(&hello("a.b")).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut bytes = Vec::new();
        listener
            .accept()
            .unwrap()
            .0
            .read_to_end(&mut bytes)
            .unwrap();
        let (header, length) = proxy_protocol::parse(&bytes)
            .unwrap()
            .expect("a whole header");
        assert_eq!(header.source, Some(stream.local_addr().unwrap()));
        assert_eq!(header.destination, Some(gateway.address));
        assert_eq!(&bytes[length..length + 2], &[22, 3], "the hello follows");
    }
}

#[test]
fn a_dead_backend_is_passed_over_and_a_lone_one_gives_an_alert() {
    let dead = free_address();
    let living = named_echo("living");
    let routes = format!(
        "routes:\n- host: a.b\n  backends: [\"{dead}\", \"{living}\"]\n{}",
        route("c.d", dead)
    );
    let gateway = Gateway::start(&routes);
    for _ in 0..20 {
        assert_eq!(who(&gateway, "a.b"), Ok("living".into()));
    }
    let failures = "steward_gateway_route_backend_failures_total{route=\"a.b\"}";
    assert!(gateway.metric(failures) <= 4, "a dead backend rests");
    assert!(gateway.page("/routes").contains("\"healthy\":false"));
    assert_eq!(who(&gateway, "c.d"), Err(80));
}

/// A server that accepts and closes, as one that stops does with what waits in its queue.
fn closing() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || for _ in listener.incoming().flatten() {});
    address
}

#[test]
fn a_backend_that_closes_before_its_first_byte_is_passed_over() {
    let (closing, echo) = (closing(), named_echo("alive"));
    let header = headed_echo();
    let routes = format!(
        "routes:\n- host: two.example.com\n  backends: [\"{closing}\", \"{echo}\"]\n\
         - host: headed.example.com\n  backends: [\"{closing}\", \"{header}\"]\n  sendProxy: v2\n{}",
        route("lone.example.com", closing)
    );
    let gateway = Gateway::start(&routes);
    for _ in 0..50 {
        assert_eq!(who(&gateway, "two.example.com"), Ok("alive".into()));
        assert_eq!(who(&gateway, "headed.example.com"), Ok("headed".into()));
    }
    // It is not held against it: a client's words must not make a backend look dead.
    let failures = "steward_gateway_route_backend_failures_total{route=\"two.example.com\"}";
    assert!(gateway.metric(failures) > 1, "it was tried more than once");
    // Where there is no other, its end is the client's.
    assert_eq!(who(&gateway, "lone.example.com"), Ok(String::new()));
}

#[test]
fn a_client_whose_last_backend_leaves_goes_on_with_those_that_came_since() {
    let leaving = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let gateway = Gateway::start(&format!(
        "routes:\n{}",
        route("a.example.com", leaving.local_addr().unwrap())
    ));
    thread::scope(|scope| {
        let client = scope.spawn(|| who(&gateway, "a.example.com"));
        let (accepted, _) = leaving.accept().unwrap();
        let new = named_echo("new");
        gateway.write_routes(&format!("routes:\n{}", route("a.example.com", new)));
        until("the change is seen", || {
            gateway.page("/routes").contains(&new.to_string())
        });
        drop(accepted);
        assert_eq!(client.join().unwrap(), Ok("new".into()));
    });
}

/// A server that wants a PROXY header before the hello, and says so if it got one.
fn headed_echo() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut said = Vec::new();
            let _ = stream.read_to_end(&mut said);
            let answer = match proxy_protocol::parse(&said) {
                Ok(Some((_, length))) if said.get(length) == Some(&22) => "headed",
                _ => "bare",
            };
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

#[test]
fn connections_go_to_the_backend_with_the_fewest() {
    let backends = [named_echo("one"), named_echo("two"), named_echo("six")];
    let list = backends.map(|address| format!("\"{address}\"")).join(", ");
    let gateway = Gateway::start(&format!("routes:\n- host: a.b\n  backends: [{list}]\n"));
    let mut streams = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for _ in 0..9 {
        let mut stream = gateway.connect();
        stream.write_all(&hello("a.b")).unwrap();
        let mut name = [0; 3];
        stream.read_exact(&mut name).unwrap();
        names.push(String::from_utf8_lossy(&name).into_owned());
        streams.push(stream);
    }
    for name in ["one", "two", "six"] {
        assert_eq!(
            names.iter().filter(|seen| *seen == name).count(),
            3,
            "{names:?}"
        );
    }
}

#[test]
fn random_sizes_with_half_closes_arrive_as_sent() {
    let gateway = Gateway::start(&format!("routes:\n{}", route("a.b", named_echo("echo"))));
    thread::scope(|scope| {
        for number in 0..12_u32 {
            let mut stream = stay(&gateway, "a.b", "echo");
            scope.spawn(move || {
                let length = (number * 7919 % 13) as usize * 65_000 + number as usize;
                let sent: Vec<u8> = (0_u8..251)
                    .cycle()
                    .skip(number as usize)
                    .take(length)
                    .collect();
                let mut writer = stream.try_clone().unwrap();
                let expected = sent.clone();
                let writing = thread::spawn(move || {
                    writer.write_all(&sent).unwrap();
                    writer.shutdown(Shutdown::Write).unwrap();
                });
                let mut received = Vec::new();
                stream.read_to_end(&mut received).unwrap();
                writing.join().unwrap();
                assert!(received == expected, "{length} bytes");
            });
        }
    });
}
