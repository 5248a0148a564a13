//! Where each kind of client ends up.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
};

use rustls::StreamOwned;

use super::{
    Ask, GATE, KONNECTIVITY, Pki, Program, Server, TENANT, World, clients, common_name_seen,
    program,
};

#[test]
fn every_client_reaches_the_api_server_untouched() {
    let world = World::new(&[]);
    for (name, client) in clients::ALL {
        for alpn in [&["http/1.1"][..], &[]] {
            let report = client(&world.ask(TENANT, alpn));
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
    let report = clients::curl(&world.ask(TENANT, &["h2"]));
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

#[test]
fn a_second_name_means_konnectivity() {
    let world = World::new(&[]);
    let report = clients::curl(&world.ask("K.example.com", &["h2"]));
    assert!(report.contains("server=konnectivity"), "{report}");
    assert!(report.contains("alpn=h2"), "{report}");
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
