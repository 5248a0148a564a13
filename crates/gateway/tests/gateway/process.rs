//! The program's manners: bad input, signals, probes.

use std::{
    fs,
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    process::Command,
};

use crate::support::{Gateway, free_address, hello, named_echo, route, until};

fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new("timeout")
        .args(["40", env!("CARGO_BIN_EXE_steward-gateway")])
        .args(arguments)
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn bad_input_at_the_start_is_a_sentence_and_code_two() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("routes.yaml").display().to_string();
    fs::write(&path, "routes:\n- host: a.b\n  backends: [\"10.0.0.1\"]\n").unwrap();
    let listen = free_address().to_string();
    let admin = free_address().to_string();
    let base = ["--routes", &path, "--admin", &admin, "--listen"];
    let (code, text) = run(&[&base[..], &[&listen]].concat());
    assert_eq!(code, Some(2));
    let expected = format!("{path}: line 3: routes[0].backends[0]: `10.0.0.1` is not an address");
    assert!(text.contains(&expected), "{text}");

    fs::write(&path, "routes: []\n").unwrap();
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for flags in [&[][..], &["--restart-in-place"]] {
        let (code, text) = run(&[&base[..], &[&taken], flags].concat());
        assert_eq!(code, Some(2));
        assert!(
            text.contains("--listen: cannot listen on") && text.contains("another process"),
            "{text}"
        );
    }

    let (code, text) = run(&["--listen", "nowhere", "--routes", &path]);
    assert_eq!(code, Some(2));
    assert!(text.contains("--listen"), "{text}");
}

fn terminate(gateway: &Gateway) {
    let id = gateway.child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &id])
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn sigterm_finishes_what_is_open_and_takes_nothing_new() {
    let routes = format!("routes:\n{}", route("a.b", named_echo("x")));
    for flags in [&[][..], &["--restart-in-place"]] {
        let mut gateway = Gateway::start_with(&routes, flags, "");
        let mut stream = gateway.connect();
        stream.write_all(&hello("a.b")).unwrap();
        stream.read_exact(&mut [0]).unwrap();
        terminate(&gateway);
        until("nobody listens", || {
            TcpStream::connect(gateway.address).is_err()
        });
        assert!(gateway.page("/readyz").starts_with("HTTP/1.1 503"));
        assert!(gateway.page("/livez").starts_with("HTTP/1.1 200"));
        stream.write_all(b"y").unwrap();
        stream.read_exact(&mut [0]).unwrap();
        drop(stream);
        assert!(gateway.child.wait().unwrap().success());
    }
}

#[test]
fn the_kernel_looks_for_dead_peers_on_both_sides_of_a_connection() {
    let backend = named_echo("x");
    let routes = format!("routes:\n{}", route("a.b", backend));
    // The server's side is looked after once it has outlived this.
    let gateway = Gateway::start_with(&routes, &["--connect-timeout", "1"], "");
    let mut stream = gateway.connect();
    stream.write_all(&hello("a.b")).unwrap();
    stream.read_exact(&mut [0]).unwrap();
    let kept = |side: &str, address: std::net::SocketAddr| {
        let filter = format!("{side} {address}");
        let words = ["-tnoH", "state", "established", &filter];
        let output = Command::new("ss").args(words).output().unwrap();
        let seen = String::from_utf8_lossy(&output.stdout).into_owned();
        seen.lines().any(|line| line.contains("timer:(keepalive"))
    };
    until("the client's side is watched", || {
        kept("src", gateway.address)
    });
    until("the server's side is watched", || kept("dst", backend));
}

#[test]
fn a_drain_ends_at_its_limit() {
    let mut gateway = Gateway::start(&format!("routes:\n{}", route("a.b", named_echo("x"))));
    let mut stream = gateway.connect();
    stream.write_all(&hello("a.b")).unwrap();
    stream.read_exact(&mut [0]).unwrap();
    terminate(&gateway);
    assert!(gateway.child.wait().unwrap().success());
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert_eq!(rest, b"");
}

#[test]
fn plain_http_is_told_to_use_tls() {
    let gateway = Gateway::start("routes: []\n");
    let mut stream = gateway.connect();
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a.b\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.0 400") && answer.contains("https://"),
        "{answer}"
    );
}
