//! What each mode carries, and what it does not.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
};

use rustls::StreamOwned;

use super::{ECHO, Pki, SERVICE, TENANT, Tenant, clients, crowd::any_below, program, wait_until};

#[test]
fn end_to_end_every_client_arrives_as_itself() {
    let tenant = Tenant::new();
    let node = tenant.node(&[]);
    for (name, client) in clients::ALL {
        let report = client(&tenant.ask(node.address, &["http/1.1"]));
        let expected = format!("server=apiserver sni={SERVICE} alpn=http/1.1 client=jane");
        assert!(report.contains(&expected), "{name}: {report}");
    }
    let report = clients::curl(&tenant.ask(node.address, &["h2"]));
    assert!(
        report.contains(&format!("sni={SERVICE} alpn=h2 client=jane")),
        "{report}"
    );
    node.wait_ready();
}

#[test]
fn terminated_every_client_keeps_its_protocol_and_loses_its_certificate() {
    let tenant = Tenant::new();
    let node = tenant.terminating();
    // Twice: the second time both handshakes run at once.
    for _ in 0..2 {
        for (name, client) in clients::ALL {
            for alpn in [&["http/1.1"][..], &[]] {
                let report = client(&tenant.ask(node.address, alpn));
                let seen = if name == "curl" {
                    "http/1.1"
                } else {
                    alpn.first().unwrap_or(&"none")
                };
                let expected = format!("server=apiserver sni={TENANT} alpn={seen} client=none");
                assert!(report.contains(&expected), "{name}: {report}");
            }
        }
        let report = clients::curl(&tenant.ask(node.address, &["h2"]));
        assert!(
            report.contains(&format!("sni={TENANT} alpn=h2 client=none")),
            "{report}"
        );
    }
    assert!(node.proxy.log().contains("client certificates can't pass"));
    node.wait_ready();
}

#[test]
fn terminated_the_upstreams_choice_is_the_clients_even_when_it_changes() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let listen = port.to_string();
    let tenant = Tenant::at(Pki::new(), &listen, &["h2", "http/1.1"]);
    let node = tenant.terminating();
    let negotiated = |tenant: &Tenant| {
        let mut tls = StreamOwned::new(
            clients::connection(&tenant.ask(node.address, &["h2", "http/1.1"])),
            TcpStream::connect(node.address).unwrap(),
        );
        tls.sock.set_read_timeout(Some(program::PATIENCE)).unwrap();
        while tls.conn.is_handshaking() {
            tls.conn.complete_io(&mut tls.sock).ok()?;
        }
        tls.conn.alpn_protocol().map(<[u8]>::to_vec)
    };
    wait_until("h2 is chosen", || {
        negotiated(&tenant).as_deref() == Some(b"h2")
    });
    let Tenant {
        pki,
        gate,
        apiserver,
        ..
    } = tenant;
    drop((gate, apiserver));
    let tenant = Tenant::at(pki, &listen, &["http/1.1"]);
    wait_until("the new choice is followed", || {
        negotiated(&tenant).as_deref() == Some(b"http/1.1")
    });
}

#[test]
fn plain_http_is_told_what_to_do() {
    let tenant = Tenant::new();
    let node = tenant.terminating();
    let mut socket = TcpStream::connect(node.address).unwrap();
    socket.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(
        answer.contains("400 Bad Request") && answer.contains("https://"),
        "{answer}"
    );
}

#[test]
fn bytes_are_exact_in_both_modes() {
    let tenant = Tenant::new();
    for node in [tenant.node(&["--access-log"]), tenant.terminating()] {
        let random = std::iter::repeat_with(|| any_below(700_000)).take(6);
        for size in [0, 1, 16_384, 16_385].into_iter().chain(random) {
            let mut tls = tenant.connect(node.address);
            tls.write_all(ECHO).unwrap();
            let sent: Vec<u8> = (0..size).map(|n| (n ^ (n >> 7)).to_le_bytes()[0]).collect();
            // What is said last may still be under way when this half ends.
            let last = size - any_below(8 * 1024).min(size);
            let mut got = Vec::new();
            for piece in sent[..last].chunks(8 * 1024) {
                tls.write_all(piece).unwrap();
                tls.flush().unwrap();
                let mut back = vec![0; piece.len()];
                tls.read_exact(&mut back).unwrap();
                got.extend(back);
            }
            tls.write_all(&sent[last..]).unwrap();
            tls.conn.send_close_notify();
            tls.flush().unwrap();
            tls.sock.shutdown(Shutdown::Write).unwrap();
            let end = tls.read_to_end(&mut got);
            assert!(
                end.is_ok(),
                "{size} bytes came back as {}, then {end:?}",
                got.len()
            );
            assert!(got == sent, "{size} bytes came back as {}", got.len());
        }
    }
}
