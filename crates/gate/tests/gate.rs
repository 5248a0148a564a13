//! The gate as a process, between clients that nobody here wrote and servers that report.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails should say where"
)]

#[path = "support/clients.rs"]
mod clients;
#[path = "support/pki.rs"]
mod pki;
#[path = "support/program.rs"]
mod program;
#[path = "support/server.rs"]
mod server;

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
};

use clients::Ask;
use pki::{Identity, Pki};
use program::{Program, metric, page, run, wait_until};
use rustls::{ClientConnection, StreamOwned};
use server::{ECHO, Server};

const GATE: &str = env!("CARGO_BIN_EXE_steward-gate");
const TENANT: &str = "t1.example.com";
const TUNNEL: &str = "steward-tunnel/1";
const KONNECTIVITY: &str = "steward-konnectivity/1";

/// An API server, a konnectivity server, and a gate before them.
struct World {
    pki: Pki,
    client: Identity,
    _apiserver: Server,
    _konnectivity: Server,
    gate: Program,
    address: SocketAddr,
    admin: SocketAddr,
}

impl World {
    fn new(flags: &[&str]) -> Self {
        let pki = Pki::new();
        let names = [TENANT, "kubernetes", "k.example.com"];
        let apiserver = pki.issue("apiserver", &names);
        let apiserver = Server::start(&pki, "apiserver", apiserver, &["h2", "http/1.1"]);
        let konnectivity = pki.issue("konnectivity", &names);
        let konnectivity = Server::start(&pki, "konnectivity", konnectivity, &["h2"]);
        let tunnel = pki.issue("tunnel", &[TENANT]);
        let client = pki.issue("jane", &["jane.example"]);
        let mut args: Vec<String> = Vec::new();
        let mut flag = |name: &str, value: &dyn std::fmt::Display| {
            args.extend([name.to_owned(), value.to_string()]);
        };
        flag("--listen", &"127.0.0.1:0");
        flag("--admin", &"127.0.0.1:0");
        flag("--apiserver", &apiserver.address);
        flag("--konnectivity", &konnectivity.address);
        flag("--konnectivity-name", &"k.example.com");
        flag("--cert", &tunnel.cert.display());
        flag("--key", &tunnel.key.display());
        let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
        args.extend(flags);
        let mut gate = Program::start(GATE, &args);
        let (address, admin) = (gate.address("listen"), gate.address("admin"));
        Self {
            pki,
            client,
            _apiserver: apiserver,
            _konnectivity: konnectivity,
            gate,
            address,
            admin,
        }
    }

    fn ask<'a>(&'a self, sni: &'a str, alpn: &'a [&'a str]) -> Ask<'a> {
        Ask {
            pki: &self.pki,
            address: self.address,
            sni,
            alpn,
            client: Some(&self.client),
        }
    }

    /// A tunnel through the gate, open for the inner connection.
    fn tunnel(&self) -> StreamOwned<ClientConnection, TcpStream> {
        let ask = Ask {
            client: None,
            ..self.ask(TENANT, &[TUNNEL])
        };
        let socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(program::PATIENCE)).unwrap();
        StreamOwned::new(clients::connection(&ask), socket)
    }

    /// A client of the API server inside a tunnel.
    fn inside(&self) -> StreamOwned<ClientConnection, StreamOwned<ClientConnection, TcpStream>> {
        let inner = clients::connection(&self.ask("kubernetes", &["http/1.1"]));
        StreamOwned::new(inner, self.tunnel())
    }
}

#[test]
fn every_client_reaches_the_api_server_untouched() {
    let world = World::new(&[]);
    for (name, client) in clients::ALL {
        for alpn in [&["http/1.1"][..], &[]] {
            let Some(report) = client(&world.ask(TENANT, alpn)) else {
                continue;
            };
            // curl always offers something.
            let seen = if name == "curl" {
                "http/1.1"
            } else {
                alpn.first().unwrap_or(&"none")
            };
            let expected = format!("server=apiserver sni={TENANT} alpn={seen} client=jane");
            assert!(report.contains(&expected), "{name}: {report}");
        }
    }
    let report = clients::curl(&world.ask(TENANT, &["h2"])).unwrap();
    assert!(report.contains("alpn=h2 client=jane"), "{report}");
}

#[test]
fn agents_are_told_by_membership_and_get_their_h2() {
    let world = World::new(&[]);
    let mut tls = StreamOwned::new(
        clients::connection(&world.ask(TENANT, &[KONNECTIVITY, "h2"])),
        TcpStream::connect(world.address).unwrap(),
    );
    while tls.conn.is_handshaking() {
        tls.conn.complete_io(&mut tls.sock).unwrap();
    }
    assert_eq!(tls.conn.alpn_protocol(), Some(&b"h2"[..]));
    assert_eq!(common_name_seen(&tls.conn), "konnectivity");
    // In any order; and an offer that is no agent's.
    let answering = |alpn: &[&str]| {
        let ask = Ask {
            client: None,
            ..world.ask("kubernetes", alpn)
        };
        let mut socket = StreamOwned::new(
            clients::connection(&ask),
            TcpStream::connect(world.address).unwrap(),
        );
        while socket.conn.is_handshaking() {
            socket.conn.complete_io(&mut socket.sock).unwrap();
        }
        common_name_seen(&socket.conn)
    };
    assert_eq!(answering(&["h2", KONNECTIVITY]), "konnectivity");
    assert_eq!(answering(&["h2", "http/1.1"]), "apiserver");
}

fn common_name_seen(connection: &ClientConnection) -> String {
    let chain = connection.peer_certificates().unwrap();
    let text = String::from_utf8_lossy(&chain[0]).into_owned();
    let names = ["konnectivity", "apiserver", "tunnel"];
    names
        .into_iter()
        .find(|name| text.contains(name))
        .unwrap()
        .to_owned()
}

#[test]
fn a_second_name_means_konnectivity() {
    let world = World::new(&[]);
    let report = clients::curl(&world.ask("K.example.com", &["h2"])).unwrap();
    assert!(report.contains("server=konnectivity"), "{report}");
    assert!(report.contains("alpn=h2"), "{report}");
}

#[test]
fn inside_the_tunnel_the_pods_own_tls_is_untouched() {
    let world = World::new(&[]);
    for _ in 0..3 {
        let mut tls = world.inside();
        tls.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut report = String::new();
        tls.read_to_string(&mut report).unwrap();
        let expected = "server=apiserver sni=kubernetes alpn=http/1.1 client=jane";
        assert!(report.contains(expected), "{report}");
        assert_eq!(tls.sock.conn.alpn_protocol(), Some(TUNNEL.as_bytes()));
        assert_eq!(common_name_seen(&tls.sock.conn), "tunnel");
    }
    let routed = r#"steward_gate_routed_total{destination="tunnel"}"#;
    assert_eq!(metric(world.admin, routed), 3);
}

#[test]
fn bytes_are_exact_and_each_direction_ends_by_itself() {
    let world = World::new(&[]);
    for size in [0, 1, 16_384, 16_385, 1_000_003] {
        let mut tls = world.inside();
        tls.write_all(ECHO).unwrap();
        let sent: Vec<u8> = (0..size)
            .map(|n: u32| (n ^ (n >> 8)).to_le_bytes()[0])
            .collect();
        // Read back as it is written, so that one thread suffices whatever fits on the way.
        let mut got = Vec::new();
        for piece in sent.chunks(8 * 1024) {
            tls.write_all(piece).unwrap();
            tls.flush().unwrap();
            let mut back = vec![0; piece.len()];
            tls.read_exact(&mut back).unwrap();
            got.extend(back);
        }
        // The end of the inner stream, then of the outer, then of the socket.
        tls.conn.send_close_notify();
        while tls.conn.wants_write() {
            tls.conn.write_tls(&mut tls.sock).unwrap();
        }
        tls.sock.conn.send_close_notify();
        tls.sock.flush().unwrap();
        tls.sock.sock.shutdown(Shutdown::Write).unwrap();
        tls.read_to_end(&mut got).unwrap();
        assert!(got == sent, "{size} bytes came back as {}", got.len());
    }
}

#[test]
fn what_is_not_tls_is_the_api_servers_to_answer() {
    let pki = Pki::new();
    let tunnel = pki.issue("tunnel", &[TENANT]);
    let echo = Server::raw_echo();
    let mut gate = Program::start(
        GATE,
        &[
            "--listen",
            "127.0.0.1:0",
            "--admin",
            "127.0.0.1:0",
            "--apiserver",
            &echo.address.to_string(),
            "--cert",
            tunnel.cert.to_str().unwrap(),
            "--key",
            tunnel.key.to_str().unwrap(),
        ],
    );
    let address = gate.address("listen");
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"SSH-2.0-x\r\n",
        b"\x16\x03\x01\x00\x00",
        &[0x80; 9],
    ] {
        let mut socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(program::PATIENCE)).unwrap();
        socket.write_all(bytes).unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        let mut back = Vec::new();
        socket.read_to_end(&mut back).unwrap();
        assert_eq!(back, bytes);
    }
}

#[test]
fn a_new_certificate_is_shown_while_old_tunnels_live() {
    let world = World::new(&[]);
    let mut old = world.inside();
    old.write_all(ECHO).unwrap();
    old.write_all(b"before").unwrap();
    let mut back = [0; 6];
    old.read_exact(&mut back).unwrap();
    let shown = |world: &World| {
        let mut tunnel = world.tunnel();
        while tunnel.conn.is_handshaking() {
            tunnel.conn.complete_io(&mut tunnel.sock).unwrap();
        }
        tunnel.conn.peer_certificates().unwrap()[0].clone()
    };
    let before = shown(&world);
    world.pki.issue("tunnel", &[TENANT]);
    wait_until("the new certificate is shown", || shown(&world) != before);
    let reloads = metric(world.admin, "steward_gate_certificate_reloads_total");
    assert!(reloads >= 1);

    world.pki.replace("tunnel.crt", "broken");
    wait_until("the broken file is counted", || {
        metric(
            world.admin,
            "steward_gate_certificate_reload_failures_total",
        ) == 1
    });
    let now = shown(&world);
    assert_ne!(now, before);
    assert!(
        world
            .gate
            .log()
            .contains("tunnel.crt: holds no certificate")
    );

    old.write_all(b"after!").unwrap();
    old.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"after!");
}

#[test]
fn only_allowed_sources_come_in() {
    let world = World::new(&["--allow", "192.0.2.0/24"]);
    let report = clients::rustls(&world.ask(TENANT, &["http/1.1"])).unwrap();
    assert!(
        report.contains("error") && !report.contains("server="),
        "{report}"
    );
    let refused = r#"steward_gate_ended_total{end="source_not_allowed"}"#;
    assert!(metric(world.admin, refused) >= 1);
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
    let report = clients::rustls(&world.ask(TENANT, &[])).unwrap();
    assert!(!report.contains("server="), "{report}");
    drop(first);
    wait_until("the place is free", || {
        clients::rustls(&world.ask(TENANT, &[]))
            .unwrap()
            .contains("server=apiserver")
    });
}

#[test]
fn a_stop_lets_live_connections_finish() {
    let mut world = World::new(&[]);
    let mut tls = world.inside();
    tls.write_all(ECHO).unwrap();
    tls.write_all(b"ping").unwrap();
    let mut back = [0; 4];
    tls.read_exact(&mut back).unwrap();
    world.gate.terminate();
    wait_until("it says no", || {
        page(world.admin, "/readyz").contains("503")
    });
    assert!(page(world.admin, "/livez").contains("200"));
    tls.write_all(b"pong").unwrap();
    tls.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"pong");
    drop(tls);
    assert!(world.gate.ended().success());
    assert!(
        world.gate.log().contains("stopped cut=0"),
        "{}",
        world.gate.log()
    );
}

#[test]
fn bad_input_gets_a_sentence_and_exit_code_2() {
    let pki = Pki::new();
    let good = pki.issue("good", &[TENANT]);
    let other = pki.issue("other", &[TENANT]);
    let empty = pki.replace("empty", "");
    let (cert, key) = (good.cert.to_str().unwrap(), good.key.to_str().unwrap());
    let taken = Server::raw_echo();
    let taken = taken.address.to_string();
    let base = [
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--apiserver",
        "127.0.0.1:1",
    ];
    let pair = ["--cert", cert, "--key", key];
    let cases: &[(&[&str], &str)] = &[
        (
            &[&base[..], &["--cert", "/nowhere", "--key", key]].concat(),
            "/nowhere: can't be read",
        ),
        (
            &[
                &base[..],
                &["--cert", empty.to_str().unwrap(), "--key", key],
            ]
            .concat(),
            "holds no certificate",
        ),
        (
            &[&base[..], &["--cert", cert, "--key", cert]].concat(),
            "holds no private key",
        ),
        (
            &[
                &base[..],
                &["--cert", cert, "--key", other.key.to_str().unwrap()],
            ]
            .concat(),
            "does not belong to the key",
        ),
        (
            &[&base[..], &pair, &["--allow", "10.0.0.0/33"]].concat(),
            "--allow",
        ),
        (
            &[&base[..], &pair, &["--max-connections", "0"]].concat(),
            "--max-connections",
        ),
        (
            &[&base[..], &pair, &["--konnectivity-name", "k"]].concat(),
            "--konnectivity",
        ),
        (
            &[&base[..], &pair, &["--tunnel-alpn", ""]].concat(),
            "at least one character",
        ),
        (
            &[&base[..], &pair, &["--log-format", "xml"]].concat(),
            "text or json",
        ),
        (
            &[&base[2..], &pair, &["--listen", &taken]].concat(),
            "another process listens there",
        ),
        (
            &[&base[2..], &pair, &["--listen", "here"]].concat(),
            "--listen",
        ),
        (&pair, "--listen"),
    ];
    for (args, sentence) in cases {
        let output = run(GATE, args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(sentence), "{args:?}: {said}");
    }
}
