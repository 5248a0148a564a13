//! Who wants too much of the gateway gets no more than its share, and the others theirs.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    thread,
};

use steward_wire::proxy_protocol;

use crate::support::{Gateway, connect_from, hello, named_echo, route, until, who, who_on};

const GREEDY: Ipv4Addr = Ipv4Addr::LOCALHOST;
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

fn gateway(flags: &[&str], limits: &str) -> Gateway {
    let routes = format!(
        "routes:\n{}{}",
        route("greedy.example.com", named_echo("held")),
        route("modest.example.com", named_echo("good")),
    );
    Gateway::start_with(&routes, flags, limits)
}

/// A connection that stays, or the alert it got. What was `said` before the hello goes first.
fn stay(mut stream: TcpStream, said: &[u8], host: &str) -> Result<TcpStream, u8> {
    stream.write_all(&[said, &hello(host)].concat()).unwrap();
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).unwrap();
    if answer[0] != 21 {
        return Ok(stream);
    }
    let mut rest = [0; 3];
    stream.read_exact(&mut rest).unwrap();
    Err(rest[2])
}

/// As many as the gateway gives, and the alert of the first that it does not.
fn take(mut one: impl FnMut() -> Result<TcpStream, u8>) -> (Vec<TcpStream>, u8) {
    let mut held = Vec::new();
    for _ in 0..2000 {
        match one() {
            Ok(stream) => held.push(stream),
            Err(alert) => return (held, alert),
        }
    }
    panic!("{} connections, and no end", held.len());
}

fn refused(gateway: &Gateway, outcome: &str) -> u64 {
    gateway.metric(&format!(
        "steward_gateway_handshakes_total{{outcome=\"{outcome}\"}}"
    ))
}

#[test]
fn a_route_that_holds_its_connections_leaves_room_for_others() {
    let flags = ["--max-connections", "20", "--source-share", "100"];
    let gateway = gateway(&flags, "");
    assert_eq!(gateway.metric("steward_gateway_connection_limit"), 20);
    let (mut held, alert) = take(|| stay(gateway.connect(), b"", "greedy.example.com"));
    assert_eq!((held.len(), alert), (10, 80));
    for _ in 0..20 {
        assert_eq!(who(&gateway, "modest.example.com"), Ok("good".into()));
    }
    let by_route = "steward_gateway_route_refused_total\
                    {route=\"greedy.example.com\",reason=\"route_share\"}";
    assert_eq!(gateway.metric(by_route), 1);
    until("it is counted", || refused(&gateway, "route_share") == 1);
    until("only the held ones are left", || {
        gateway.metric("steward_gateway_routed_connections") == 10
    });
    held.pop();
    until("there is room again", || {
        who(&gateway, "greedy.example.com") == Ok("held".into())
    });
}

#[test]
fn a_source_that_floods_leaves_room_for_others() {
    let flags = ["--max-connections", "20", "--route-share", "100"];
    let gateway = gateway(&flags, "");
    let greedy = || connect_from(GREEDY, gateway.address);
    let (held, alert) = take(|| stay(greedy(), b"", "greedy.example.com"));
    assert_eq!((held.len(), alert), (10, 80));
    until("it is counted", || refused(&gateway, "source_share") == 1);
    let busiest = gateway.metric("steward_gateway_busiest_source_connections");
    assert_eq!(busiest, 10);
    // Whatever it asks for; and the other may have what it wants, on the same route too.
    assert_eq!(who_on(greedy(), "modest.example.com"), Err(80));
    for host in ["greedy.example.com", "modest.example.com"] {
        let other = connect_from(OTHER, gateway.address);
        assert!(who_on(other, host).is_ok(), "{host}");
    }
}

#[test]
fn shares_are_on_without_a_flag() {
    let gateway = gateway(&[], "ulimit -n 600");
    let limit = gateway.metric("steward_gateway_connection_limit");
    let (held, alert) = take(|| stay(gateway.connect(), b"", "greedy.example.com"));
    assert_eq!(alert, 80);
    assert_eq!(held.len() as u64, limit.div_ceil(2), "of {limit}");
    let other = connect_from(OTHER, gateway.address);
    assert_eq!(who_on(other, "modest.example.com"), Ok("good".into()));
}

#[test]
fn clients_that_never_say_what_they_want_are_held_to_the_share_of_their_source() {
    let flags = ["--max-connections", "20", "--hello-timeout", "60"];
    let gateway = gateway(&flags, "");
    let start = hello("greedy.example.com");
    let slow: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = connect_from(GREEDY, gateway.address);
            // It may be refused before it has spoken.
            let _ = stream.write_all(&start[..10]);
            stream
        })
        .collect();
    until("those beyond the share are refused", || {
        refused(&gateway, "source_share") == 180
    });
    for _ in 0..20 {
        let other = connect_from(OTHER, gateway.address);
        assert_eq!(who_on(other, "modest.example.com"), Ok("good".into()));
    }
    assert_eq!(gateway.metric("steward_gateway_evicted_total"), 0);
    drop(slow);
}

#[test]
fn a_source_that_comes_too_often_is_refused_and_another_is_not() {
    let gateway = gateway(&["--source-handshakes", "5"], "");
    let came = (0..200).map(|_| {
        let stream = connect_from(GREEDY, gateway.address);
        who_on(stream, "modest.example.com")
    });
    let hurried = came.filter(|answer| *answer == Err(80)).count();
    assert!(hurried > 0, "a flood is slowed down");
    until("all are counted", || {
        refused(&gateway, "source_handshakes") == hurried as u64
    });
    let other = connect_from(OTHER, gateway.address);
    assert_eq!(who_on(other, "modest.example.com"), Ok("good".into()));
}

#[test]
fn behind_a_trusted_proxy_the_client_of_the_header_is_the_source() {
    let flags = [
        "--max-connections",
        "20",
        "--route-share",
        "100",
        "--trust-proxy",
        "127.0.0.1/32",
    ];
    let gateway = gateway(&flags, "");
    let from = |client: &str| {
        let client: SocketAddr = client.parse().unwrap();
        let header = proxy_protocol::encode_v2(client, gateway.address);
        stay(gateway.connect(), &header, "greedy.example.com")
    };
    let (held, alert) = take(|| from("192.0.2.7:1000"));
    assert_eq!((held.len(), alert), (10, 80));
    assert!(from("192.0.2.8:1000").is_ok());
    // The proxy itself is another source.
    assert_eq!(who(&gateway, "modest.example.com"), Ok("good".into()));
}

/// A server that accepts and never reads.
fn deaf() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let held: Vec<TcpStream> = listener.incoming().flatten().collect();
        drop(held);
    });
    address
}

/// Sends as much as is taken, at most `most` bytes. Returns how much that was.
fn fill(stream: &mut TcpStream, most: usize) -> usize {
    stream.set_nonblocking(true).unwrap();
    let piece = vec![7; 64 * 1024];
    let mut sent = 0;
    while sent < most {
        match stream.write(&piece) {
            Ok(count) => sent += count,
            Err(_) => break,
        }
    }
    sent
}

#[test]
fn a_route_that_fills_buffers_loses_them_and_others_lose_nothing() {
    let routes = format!(
        "routes:\n{}{}{}",
        route("greedy.example.com", deaf()),
        route("slow.example.com", deaf()),
        route("modest.example.com", named_echo("good")),
    );
    let flags = ["--max-buffered", "8"];
    let gateway = Gateway::start_with(&routes, &flags, "");
    let mut modest = stay(gateway.connect(), b"", "modest.example.com").unwrap();
    let open = |host: &str| {
        let mut stream = gateway.connect();
        stream.write_all(&hello(host)).unwrap();
        stream
    };
    // More than what counts, and less than an equal part.
    let mut slow = open("slow.example.com");
    fill(&mut slow, 1 << 20);
    let mut greedy: Vec<TcpStream> = (0..40).map(|_| open("greedy.example.com")).collect();
    let shed = "steward_gateway_shed_total";
    until("the greedy are reset", || {
        for stream in &mut greedy {
            fill(stream, 8 << 20);
        }
        gateway.metric(shed) > 0
    });
    let live = |host: &str| {
        gateway.metric(&format!(
            "steward_gateway_route_connections{{route=\"{host}\"}}"
        ))
    };
    until("what is left fits", || {
        gateway.metric("steward_gateway_buffered_bytes") <= 8 << 20
    });
    until("they are gone", || live("greedy.example.com") < 40);
    assert_eq!(live("slow.example.com"), 1);
    modest.write_all(b"still here").unwrap();
    modest.read_exact(&mut [0; 10]).unwrap();
}
