//! The node's end as a process: through a real gate to a server that reports, in both modes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails should say where"
)]

#[path = "../../gate/tests/support/clients.rs"]
mod clients;
#[path = "../../gate/tests/support/pki.rs"]
mod pki;
#[path = "../../gate/tests/support/program.rs"]
mod program;
#[path = "../../gate/tests/support/server.rs"]
mod server;

use std::{
    fmt::Display,
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
};

use clap::Parser;
use clients::Ask;
use pki::{Identity, Pki};
use program::{Program, metric, page, run, wait_until};
use rustls::{ClientConnection, StreamOwned};
use server::{ECHO, Server};

const PROXY: &str = env!("CARGO_BIN_EXE_steward-tcp-proxy");
const TENANT: &str = "t1.example.com";
const SERVICE: &str = "kubernetes.default.svc";

/// A tenant's side: an API server and its gate.
struct Tenant {
    pki: Pki,
    client: Identity,
    apiserver: Server,
    gate: steward_gate::Running,
}

/// A node's side.
struct Node {
    proxy: Program,
    address: SocketAddr,
    admin: SocketAddr,
}

impl Tenant {
    fn new() -> Self {
        Self::at(Pki::new(), "127.0.0.1:0", &["h2", "http/1.1"])
    }

    fn at(pki: Pki, listen: &str, alpn: &[&str]) -> Self {
        let apiserver = pki.issue("apiserver", &[TENANT, SERVICE]);
        let apiserver = Server::start(&pki, "apiserver", apiserver, alpn);
        let client = pki.issue("jane", &["jane.example"]);
        let gate = gate(&pki, listen, apiserver.address);
        Self {
            pki,
            client,
            apiserver,
            gate,
        }
    }

    fn gate(&self) -> SocketAddr {
        self.gate.addresses()[0]
    }

    /// A proxy with `flags`, to this tenant's gate.
    fn node(&self, flags: &[&str]) -> Node {
        let upstream = format!("{TENANT}:{}", self.gate().port());
        let alias = format!("{TENANT}=127.0.0.1");
        let ca = self.pki.ca();
        let args = [
            "--upstream",
            &upstream,
            "--host-alias",
            &alias,
            "--ca",
            ca.to_str().unwrap(),
        ];
        Node::start(&[&args, flags].concat())
    }

    fn terminating(&self) -> Node {
        let shown = self.pki.issue("node", &[SERVICE]);
        let (cert, key) = (shown.cert.to_str().unwrap(), shown.key.to_str().unwrap());
        self.node(&["--mode", "terminate", "--access-log", "--cert", cert, "--key", key])
    }

    fn ask<'a>(&'a self, address: SocketAddr, alpn: &'a [&'a str]) -> Ask<'a> {
        Ask {
            pki: &self.pki,
            address,
            sni: SERVICE,
            alpn,
            client: Some(&self.client),
        }
    }

    fn connect(&self, address: SocketAddr) -> StreamOwned<ClientConnection, TcpStream> {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(program::PATIENCE)).unwrap();
        StreamOwned::new(
            clients::connection(&self.ask(address, &["http/1.1"])),
            socket,
        )
    }

    /// The report of the API server, or what went wrong.
    fn report(&self, node: &Node) -> String {
        clients::rustls(&self.ask(node.address, &["http/1.1"])).unwrap()
    }
}

fn gate(pki: &Pki, listen: &str, apiserver: SocketAddr) -> steward_gate::Running {
    let shown = pki.issue("tunnel", &[TENANT]);
    let words: [&dyn Display; 11] = [
        &"gate",
        &"--listen",
        &listen,
        &"--admin",
        &"127.0.0.1:0",
        &"--apiserver",
        &apiserver,
        &"--cert",
        &shown.cert.display(),
        &"--key",
        &shown.key.display(),
    ];
    let args = steward_gate::Args::parse_from(words.map(|word| word.to_string()));
    steward_gate::Running::start(&args).unwrap()
}

impl Node {
    fn start(flags: &[&str]) -> Self {
        let own = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        let mut proxy = Program::start(PROXY, &[&own, flags].concat());
        let (address, admin) = (proxy.address("listen"), proxy.address("admin"));
        Self {
            proxy,
            address,
            admin,
        }
    }

    fn readiness(&self) -> String {
        page(self.admin, "/readyz")
    }

    fn wait_ready(&self) {
        wait_until("the proxy is ready", || self.readiness().contains("200 OK"));
    }

    fn wait_unready(&self, because: &str) {
        wait_until(because, || {
            let page = self.readiness();
            page.contains("503") && page.contains(because)
        });
    }
}

#[test]
fn end_to_end_every_client_arrives_as_itself() {
    let tenant = Tenant::new();
    let node = tenant.node(&[]);
    for (name, client) in clients::ALL {
        let Some(report) = client(&tenant.ask(node.address, &["http/1.1"])) else {
            continue;
        };
        let expected = format!("server=apiserver sni={SERVICE} alpn=http/1.1 client=jane");
        assert!(report.contains(&expected), "{name}: {report}");
    }
    let report = clients::curl(&tenant.ask(node.address, &["h2"])).unwrap();
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
                let Some(report) = client(&tenant.ask(node.address, alpn)) else {
                    continue;
                };
                let seen = if name == "curl" {
                    "http/1.1"
                } else {
                    alpn.first().unwrap_or(&"none")
                };
                let expected = format!("server=apiserver sni={TENANT} alpn={seen} client=none");
                assert!(report.contains(&expected), "{name}: {report}");
            }
        }
        let report = clients::curl(&tenant.ask(node.address, &["h2"])).unwrap();
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
        for size in [0, 1, 16_384, 16_385, 700_001] {
            let mut tls = tenant.connect(node.address);
            tls.write_all(ECHO).unwrap();
            let sent: Vec<u8> = (0..size)
                .map(|n: u32| (n ^ (n >> 7)).to_le_bytes()[0])
                .collect();
            let mut got = Vec::new();
            for piece in sent.chunks(8 * 1024) {
                tls.write_all(piece).unwrap();
                tls.flush().unwrap();
                let mut back = vec![0; piece.len()];
                tls.read_exact(&mut back).unwrap();
                got.extend(back);
            }
            tls.conn.send_close_notify();
            tls.flush().unwrap();
            tls.sock.shutdown(Shutdown::Write).unwrap();
            let end = tls.read_to_end(&mut got);
            assert!(end.is_ok(), "{size} bytes came back as {}, then {end:?}", got.len());
            assert!(got == sent, "{size} bytes came back as {}", got.len());
        }
    }
}

#[test]
fn an_upstream_of_another_authority_or_name_is_refused() {
    let tenant = Tenant::new();
    let stranger = Pki::new();
    let ca = stranger.ca();
    let upstream = format!("{TENANT}:{}", tenant.gate().port());
    let alias = format!("{TENANT}=127.0.0.1");
    let foreign = Node::start(&[
        "--upstream",
        &upstream,
        "--host-alias",
        &alias,
        "--ca",
        ca.to_str().unwrap(),
    ]);
    foreign.wait_unready("not signed by the CA");
    assert!(!tenant.report(&foreign).contains("server="));

    let misnamed = tenant.node(&["--server-name", "t2.example.com"]);
    misnamed.wait_unready("another name");
    assert!(!tenant.report(&misnamed).contains("server="));
}

#[test]
fn a_server_without_a_gate_gets_none_of_the_pods_bytes() {
    let tenant = Tenant::new();
    let upstream = format!("{TENANT}:{}", tenant.apiserver.address.port());
    let alias = format!("{TENANT}=127.0.0.1");
    let ca = tenant.pki.ca();
    let node = Node::start(&[
        "--upstream",
        &upstream,
        "--host-alias",
        &alias,
        "--ca",
        ca.to_str().unwrap(),
    ]);
    node.wait_unready("no protocol in common");
    assert!(!tenant.report(&node).contains("server="));
}

#[test]
fn it_waits_for_an_upstream_that_is_not_there_yet() {
    let pki = Pki::new();
    let place = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let (upstream, alias) = (
        format!("{TENANT}:{}", place.port()),
        format!("{TENANT}=127.0.0.1"),
    );
    let ca = pki.ca();
    let node = Node::start(&[
        "--upstream",
        &upstream,
        "--host-alias",
        &alias,
        "--ca",
        ca.to_str().unwrap(),
    ]);
    node.wait_unready("does not answer");
    assert!(page(node.admin, "/livez").contains("200 OK"));
    let tenant = Tenant::at(pki, &place.to_string(), &["http/1.1"]);
    node.wait_ready();
    assert!(tenant.report(&node).contains("server=apiserver"));

    // The gate answers, the API server behind it does not.
    let Tenant {
        pki,
        gate: old,
        apiserver,
        ..
    } = tenant;
    drop((old, apiserver));
    node_sees_silence(&node, &pki, place);
    let log = node.proxy.log();
    assert_eq!(log.matches("API server reached").count(), 1, "{log}");
}

fn node_sees_silence(node: &Node, pki: &Pki, place: SocketAddr) {
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let _gate = gate(pki, &place.to_string(), nobody);
    // A connection that fails makes it look.
    wait_until("a failing connection is noticed", || {
        let _ = TcpStream::connect(node.address).and_then(|mut socket| socket.write_all(b"x"));
        let page = node.readiness();
        page.contains("503") && page.contains("not the API server behind it")
    });
}

#[test]
fn without_dns_pins_and_the_internal_endpoint_are_used() {
    let tenant = Tenant::new();
    let ca = tenant.pki.ca();
    let upstream = format!("no-such-name.invalid:{}", tenant.gate().port());
    let common = [
        "--upstream",
        &upstream,
        "--server-name",
        TENANT,
        "--ca",
        ca.to_str().unwrap(),
    ];
    let endpoint = tenant.gate().to_string();
    for flags in [["--pin", "127.0.0.1"], ["--internal-endpoint", &endpoint]] {
        let node = Node::start(&[&common[..], &flags].concat());
        node.wait_ready();
        assert!(tenant.report(&node).contains("client=jane"));
    }
    let lost = Node::start(&common);
    lost.wait_unready("does not resolve");
    assert_eq!(metric(lost.admin, "steward_tcp_proxy_upstream_up"), 0);
}

#[test]
fn the_next_address_is_tried_when_one_does_not_answer() {
    let tenant = Tenant::new();
    // Nothing listens on the first two.
    let (one, two) = (format!("{TENANT}=127.0.0.2"), format!("{TENANT}=127.0.0.3"));
    let ca = tenant.pki.ca();
    let upstream = format!("{TENANT}:{}", tenant.gate().port());
    let node = Node::start(&[
        "--upstream",
        &upstream,
        "--host-alias",
        &one,
        "--host-alias",
        &two,
        "--pin",
        "127.0.0.1",
        "--ca",
        ca.to_str().unwrap(),
    ]);
    assert!(tenant.report(&node).contains("client=jane"));
}

#[test]
fn certificates_and_cas_rotate_under_live_connections() {
    let tenant = Tenant::new();
    let node = tenant.terminating();
    let mut old = tenant.connect(node.address);
    old.write_all(ECHO).unwrap();
    let mut echoed = |text: &[u8; 5]| {
        old.write_all(text).unwrap();
        let mut back = [0; 5];
        old.read_exact(&mut back).unwrap();
        assert_eq!(&back, text);
    };
    echoed(b"first");
    let shown = || {
        let mut tls = tenant.connect(node.address);
        while tls.conn.is_handshaking() {
            tls.conn.complete_io(&mut tls.sock).unwrap();
        }
        tls.conn.peer_certificates().unwrap()[0].clone()
    };
    let before = shown();
    tenant.pki.issue("node", &[SERVICE]);
    wait_until("the new certificate is shown", || shown() != before);
    echoed(b"later");

    // A CA that did not issue the gate's certificate: new connections fail, old ones live.
    let ours = std::fs::read_to_string(tenant.pki.ca()).unwrap();
    let theirs = std::fs::read_to_string(Pki::new().ca()).unwrap();
    tenant.pki.replace("ca.crt", &theirs);
    wait_until("the CA is no longer believed", || {
        let socket = TcpStream::connect(node.address).unwrap();
        let ask = tenant.ask(node.address, &[]);
        let mut tls = StreamOwned::new(clients::connection(&ask), socket);
        let _ = tls.write_all(b"GET / HTTP/1.1\r\n\r\n");
        let mut report = String::new();
        let _ = tls.read_to_string(&mut report);
        !report.contains("server=")
    });
    echoed(b"still");
    tenant.pki.replace("ca.crt", &ours);
    wait_until("the CA is believed again", || {
        tenant.report(&node).contains("server=apiserver")
    });
    tenant.pki.replace("ca.crt", "rubbish");
    wait_until("the broken file is counted", || {
        metric(
            node.admin,
            "steward_tcp_proxy_certificate_reload_failures_total",
        ) == 1
    });
    assert!(tenant.report(&node).contains("server=apiserver"));
    echoed(b"enjoy");
}

#[test]
fn a_stop_lets_live_connections_finish() {
    let tenant = Tenant::new();
    let mut node = tenant.node(&[]);
    let mut tls = tenant.connect(node.address);
    tls.write_all(ECHO).unwrap();
    tls.write_all(b"ping").unwrap();
    let mut back = [0; 4];
    tls.read_exact(&mut back).unwrap();
    node.proxy.terminate();
    wait_until("it says no", || node.readiness().contains("draining"));
    tls.write_all(b"pong").unwrap();
    tls.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"pong");
    drop(tls);
    assert!(node.proxy.ended().success());
}

#[test]
fn a_successor_shares_the_address_and_takes_over() {
    let tenant = Tenant::new();
    let mut old = tenant.node(&[]);
    let (listen, admin) = (old.address.to_string(), old.admin.to_string());
    let upstream = format!("{TENANT}:{}", tenant.gate().port());
    let alias = format!("{TENANT}=127.0.0.1");
    let ca = tenant.pki.ca();
    let mut new = Program::start(
        PROXY,
        &[
            "--listen",
            &listen,
            "--admin",
            &admin,
            "--upstream",
            &upstream,
            "--host-alias",
            &alias,
            "--ca",
            ca.to_str().unwrap(),
        ],
    );
    assert_eq!(new.address("listen"), old.address);
    old.proxy.terminate();
    assert!(old.proxy.ended().success());
    for _ in 0..20 {
        assert!(tenant.report(&old).contains("client=jane"));
    }
    wait_until("the admin page is taken over", || {
        TcpStream::connect(old.admin).is_ok()
    });
    old.wait_ready();
}

#[test]
fn bad_input_gets_a_sentence_and_exit_code_2() {
    let pki = Pki::new();
    let good = pki.issue("good", &[TENANT]);
    let other = pki.issue("other", &[TENANT]);
    let (cert, key) = (good.cert.to_str().unwrap(), good.key.to_str().unwrap());
    let (ca, empty) = (pki.ca(), pki.replace("empty", "\n"));
    let (ca, empty) = (ca.to_str().unwrap(), empty.to_str().unwrap());
    let taken = Server::raw_echo();
    let taken = taken.address.to_string();
    let listen = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let to = ["--upstream", "t1.example.com:443"];
    let base = [&listen[..], &to, &["--ca", ca]].concat();
    let with = |flags: &[&'static str]| [&base[..], flags].concat();
    let cases: &[(Vec<&str>, &str)] = &[
        ([&listen[..], &to].concat(), "--ca"),
        (
            [&listen[..], &to, &["--ca", empty]].concat(),
            "empty: holds no certificate",
        ),
        (
            [&listen[..], &to, &["--ca", "/nowhere"]].concat(),
            "/nowhere: can't be read",
        ),
        (
            [&listen[..], &["--ca", ca, "--upstream", "t1.example.com"]].concat(),
            "has no port",
        ),
        (
            [&listen[..], &["--ca", ca, "--upstream", "t1..x:443"]].concat(),
            "not a host name",
        ),
        (with(&["--mode", "terminate"]), "--cert"),
        (
            [&base[..], &["--cert", cert, "--key", key]].concat(),
            "are for --mode terminate",
        ),
        (
            [
                &base[..],
                &[
                    "--mode",
                    "terminate",
                    "--cert",
                    cert,
                    "--key",
                    other.key.to_str().unwrap(),
                ],
            ]
            .concat(),
            "does not belong to the key",
        ),
        (with(&["--mode", "insecure"]), "end-to-end"),
        (with(&["--host-alias", "t1"]), "write NAME=IP"),
        (with(&["--address", "t1"]), "--address"),
        (with(&["--address", "0.0.0.0"]), "not an address that a host can have"),
        (
            with(&["--internal-endpoint", "t1:443"]),
            "not an IP address",
        ),
        (
            with(&["--server-name", "a b"]),
            "neither a host name nor an address",
        ),
        (
            [&to[..], &["--ca", ca, "--listen", &taken]].concat(),
            "another process listens there",
        ),
    ];
    for (args, sentence) in cases {
        let output = run(PROXY, args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(sentence), "{args:?}: {said}");
    }
}
