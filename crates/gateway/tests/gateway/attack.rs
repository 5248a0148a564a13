//! Clients that mean harm, or behave as if: the others must not notice.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use crate::support::{
    Gateway, MANY_DESCRIPTORS, UNLIMITED, hello, named_echo, raise_limit, route, until, who,
};

const LIVE: &str = "steward_gateway_connections";

fn gateway(flags: &[&str], limits: &str) -> Gateway {
    let routes = format!("routes:\n{}", route("a.example.com", named_echo("good")));
    // All come from one address here; what shares do is tried apart.
    Gateway::start_with(&routes, &[&UNLIMITED[..], flags].concat(), limits)
}

fn others_are_served(gateway: &Gateway) {
    for _ in 0..20 {
        assert_eq!(who(gateway, "a.example.com"), Ok("good".into()));
    }
}

/// Makes the connection be reset instead of closed when it is dropped.
fn reset(stream: &TcpStream) {
    let zero = Some(std::time::Duration::ZERO);
    rustix::net::sockopt::set_socket_linger(stream, zero).unwrap();
}

#[test]
fn ten_thousand_half_open_clients_harm_nobody_and_are_closed() {
    let _alone = MANY_DESCRIPTORS.lock();
    raise_limit();
    let gateway = gateway(&["--hello-timeout", "20"], "");
    others_are_served(&gateway);
    let start = hello("a.example.com");
    let mut slow = Vec::new();
    for number in 0..10_000 {
        // The limit of this machine may be lower than the attack.
        let Ok(mut stream) = TcpStream::connect(gateway.address) else {
            break;
        };
        // A byte more for each, so that all positions are tried.
        let _ = stream.write_all(&start[..=number % (start.len() - 1)]);
        slow.push(stream);
        if number % 1000 == 999 {
            others_are_served(&gateway);
        }
    }
    assert!(slow.len() > 500, "the attack took place");
    others_are_served(&gateway);
    assert!(gateway.memory() < 150_000, "{} KiB", gateway.memory());
    until("all were closed", || gateway.metric(LIVE) == 0);
    drop(slow);
    others_are_served(&gateway);
}

#[test]
fn hellos_without_end_are_cut_off() {
    let gateway = gateway(&[], "");
    let mut attackers = Vec::new();
    for _ in 0..50 {
        let mut stream = gateway.connect();
        // A handshake message of 16 MiB, in records that all promise more.
        let mut record = vec![22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff];
        record.resize(5 + 0x4000, 7);
        for _ in 0..8 {
            if stream.write_all(&record).is_err() {
                break;
            }
            record[5..9].fill(7);
        }
        attackers.push(stream);
    }
    others_are_served(&gateway);
    until("all were closed", || gateway.metric(LIVE) == 0);
    assert!(gateway.memory() < 100_000, "{} KiB", gateway.memory());
}

#[test]
fn resets_at_every_byte_leave_nothing_behind() {
    let gateway = gateway(&[], "");
    let start = hello("a.example.com");
    for length in 0..start.len() {
        let mut stream = gateway.connect();
        stream.write_all(&start[..length]).unwrap();
        reset(&stream);
    }
    for length in 1..200 {
        let mut stream = gateway.connect();
        stream.write_all(&start).unwrap();
        stream.read_exact(&mut [0; 4]).unwrap();
        stream.write_all(&vec![1; length * 100]).unwrap();
        reset(&stream);
    }
    others_are_served(&gateway);
    until("all are gone", || gateway.metric(LIVE) == 0);
    let open = "steward_gateway_route_connections{route=\"a.example.com\"}";
    assert_eq!(gateway.metric(open), 0);
    assert!(gateway.page("/routes").contains("\"connections\":0}"));
}

#[test]
fn out_of_descriptors_the_gateway_recovers_by_itself() {
    let gateway = gateway(&[], "ulimit -n 300");
    let start = hello("a.example.com");
    // Served before there are others: who of many comes first is the kernel's choice.
    let mut first = gateway.connect();
    first.write_all(&start).unwrap();
    first.read_exact(&mut [0; 4]).unwrap();
    let mut streams = Vec::new();
    for _ in 0..400 {
        let mut stream = gateway.connect();
        stream.write_all(&start).unwrap();
        streams.push(stream);
    }
    until("it is noticed", || {
        gateway.metric("steward_gateway_accept_pauses_total") > 0
            || gateway.metric("steward_gateway_handshakes_total{outcome=\"no_descriptors\"}") > 0
            || gateway.metric("steward_gateway_handshakes_total{outcome=\"full\"}") > 0
    });
    // The admin page has its reserve.
    assert!(gateway.page("/livez").starts_with("HTTP/1.1 200"));
    drop(streams);
    // Descriptors come back as the gateway sees the ends of what it holds and of what still waits.
    until("it has recovered", || {
        gateway.metric(LIVE) == 1 && who(&gateway, "a.example.com").is_ok()
    });
    until("only the first is left", || gateway.metric(LIVE) == 1);
    others_are_served(&gateway);
    first.write_all(b"still here").unwrap();
    first.read_exact(&mut [0; 10]).unwrap();
}
