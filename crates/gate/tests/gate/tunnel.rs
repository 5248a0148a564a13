//! What passes inside a tunnel, and what ends it.

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::Arc,
};

use rustls::{ClientConnection, HandshakeKind, StreamOwned};

use super::{
    ECHO, GATE, Program, TENANT, TUNNEL, World, clients, common_name_seen, crowd::any_below,
    metric, program, wait_until,
};

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
fn a_session_is_resumed_at_another_replica_that_has_the_same_key() {
    let world = World::new(&[]);
    let files = [&world.tunnel.cert, &world.tunnel.key].map(|path| path.display().to_string());
    let [cert, key] = &files;
    let apiserver = world.apiserver.address.to_string();
    let flags = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let rest = ["--apiserver", &apiserver, "--cert", cert, "--key", key];
    let mut replica = Program::start(GATE, &[&flags[..], &rest].concat());
    let config = clients::config(&world.pki, &[TUNNEL]);
    let handshake = |address: SocketAddr| {
        let name = TENANT.try_into().unwrap();
        let outer = ClientConnection::new(Arc::clone(&config), name).unwrap();
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(program::PATIENCE)).unwrap();
        let inner = clients::connection(&world.ask("kubernetes", &["http/1.1"]));
        let mut tls = StreamOwned::new(inner, StreamOwned::new(outer, socket));
        tls.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut report = String::new();
        tls.read_to_string(&mut report).unwrap();
        assert!(report.contains("server=apiserver"), "{report}");
        tls.sock.conn.handshake_kind()
    };
    assert_eq!(handshake(world.address), Some(HandshakeKind::Full));
    let replica = replica.address("listen");
    assert_eq!(handshake(replica), Some(HandshakeKind::Resumed));
}

#[test]
fn bytes_are_exact_and_each_direction_ends_by_itself() {
    let world = World::new(&[]);
    let random = std::iter::repeat_with(|| any_below(1_000_000)).take(6);
    for size in [0, 1, 16_384, 16_385].into_iter().chain(random) {
        let mut tls = world.inside();
        tls.write_all(ECHO).unwrap();
        let sent: Vec<u8> = (0..size).map(|n| (n ^ (n >> 8)).to_le_bytes()[0]).collect();
        // What is said last may still be under way when this half ends.
        let last = size - any_below(8 * 1024).min(size);
        // Read back as it is written, so that one thread suffices whatever fits on the way.
        let mut got = Vec::new();
        for piece in sent[..last].chunks(8 * 1024) {
            tls.write_all(piece).unwrap();
            tls.flush().unwrap();
            let mut back = vec![0; piece.len()];
            tls.read_exact(&mut back).unwrap();
            got.extend(back);
        }
        tls.write_all(&sent[last..]).unwrap();
        tls.flush().unwrap();
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
fn a_new_certificate_is_shown_while_old_tunnels_live() {
    let world = World::new(&[]);
    let mut old: Vec<_> = (0..100).map(|_| world.inside()).collect();
    for tunnel in &mut old {
        tunnel.write_all(ECHO).unwrap();
    }
    let mut all_live = |word: &str| {
        for (number, tunnel) in old.iter_mut().enumerate() {
            let sent = format!("{number} {word}");
            tunnel.write_all(sent.as_bytes()).unwrap();
            let mut back = vec![0; sent.len()];
            tunnel.read_exact(&mut back).unwrap();
            assert_eq!(String::from_utf8(back).unwrap(), sent);
        }
    };
    all_live("before");
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

    all_live("after");

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

    all_live("in spite of it");
}
