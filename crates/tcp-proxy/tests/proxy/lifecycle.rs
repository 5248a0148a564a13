//! How a proxy starts, changes and stops.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use rustls::StreamOwned;

use super::{
    ECHO, PROXY, Pki, Program, SERVICE, Server, TENANT, Tenant, clients, metric, run, wait_until,
};

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
    let mut node = tenant.node(&["--shutdown-delay", "2"]);
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
    let mut live = tenant.connect(old.address);
    live.write_all(ECHO).unwrap();
    live.write_all(b"ping").unwrap();
    let mut back = [0; 4];
    live.read_exact(&mut back).unwrap();
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
    // It is ready although the old one still has a connection to finish.
    wait_until("the admin page is taken over", || {
        new.log().contains("admin pages")
    });
    old.wait_ready();
    for _ in 0..20 {
        assert!(tenant.report(&old).contains("client=jane"));
    }
    live.write_all(b"pong").unwrap();
    live.read_exact(&mut back).unwrap();
    drop(live);
    assert!(old.proxy.ended().success());
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
        (
            with(&["--address", "0.0.0.0"]),
            "not an address that a host can have",
        ),
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
