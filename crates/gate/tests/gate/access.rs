//! Who is let in.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use rustls::StreamOwned;

use super::{ECHO, TENANT, World, clients, metric, program, wait_until};

#[test]
fn only_allowed_sources_come_in() {
    let world = World::new(&["--allow", "192.0.2.0/24"]);
    let report = clients::rustls(&world.ask(TENANT, &["http/1.1"]));
    assert!(
        report.contains("error") && !report.contains("server="),
        "{report}"
    );
    let refused = r#"steward_gate_ended_total{end="source_not_allowed"}"#;
    wait_until("it is counted", || metric(world.admin, refused) >= 1);
}

#[test]
fn a_trusted_front_door_names_the_source() {
    let world = World::new(&["--allow", "192.0.2.0/24", "--trust-proxy", "127.0.0.0/8"]);
    let try_as = |header: &[u8]| {
        let mut socket = TcpStream::connect(world.address).unwrap();
        socket.set_read_timeout(Some(program::PATIENCE)).unwrap();
        socket.write_all(header).unwrap();
        let mut tls = StreamOwned::new(clients::connection(&world.ask(TENANT, &[])), socket);
        let mut report = String::new();
        let _ = tls.write_all(b"GET / HTTP/1.1\r\n\r\n");
        let _ = tls.read_to_string(&mut report);
        report
    };
    let to = "127.0.0.1:443".parse().unwrap();
    let inside = "192.0.2.9:5".parse().unwrap();
    let outside = "198.51.100.9:5".parse().unwrap();
    for encode in [
        steward_wire::proxy_protocol::encode_v1,
        steward_wire::proxy_protocol::encode_v2,
    ] {
        assert!(try_as(&encode(inside, to)).contains("server=apiserver"));
        assert_eq!(try_as(&encode(outside, to)), "");
    }
    assert_eq!(
        try_as(b""),
        "",
        "a header is not optional where it is expected"
    );
}

#[test]
fn one_connection_too_many_waits_its_turn() {
    let world = World::new(&["--max-connections", "1"]);
    let mut first = world.inside();
    first.write_all(ECHO).unwrap();
    first.write_all(b"x").unwrap();
    first.read_exact(&mut [0]).unwrap();
    let report = clients::rustls(&world.ask(TENANT, &[]));
    assert!(!report.contains("server="), "{report}");
    drop(first);
    wait_until("the place is free", || {
        clients::rustls(&world.ask(TENANT, &[])).contains("server=apiserver")
    });
}
