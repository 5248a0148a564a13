//! What a process in another container that keeps the listeners too is good for.

use std::{
    io::Write,
    net::TcpStream,
    path::Path,
    process::{Command, Stdio},
};

use crate::support::{Gateway, Running, answered, hello, named_echo, route, signal, until};

fn hold(socket: &Path) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steward-gateway"));
    let child = command.arg("hold").arg(socket).stderr(Stdio::null());
    let running = Running(child.spawn().unwrap());
    until("it can be found", || socket.exists());
    running
}

fn gateway(socket: &Path) -> Gateway {
    let routes = format!("routes:\n{}", route("a.b", named_echo("x")));
    let holder = format!("--holder={}", socket.display());
    Gateway::start_with(&routes, &["--restart-in-place", &holder], "")
}

/// Ends the gateway; who comes while there is none waits, and is served by the next one.
fn is_missed_by_nobody(gateway: &mut Gateway) {
    let mut old = gateway.connect();
    old.write_all(&hello("a.b")).unwrap();
    assert!(answered(&mut old));
    gateway.kill();
    assert!(!answered(&mut old), "its connections end with it");
    let mut early: Vec<TcpStream> = (0..20).map(|_| gateway.connect()).collect();
    for stream in &mut early {
        stream.write_all(&hello("a.b")).unwrap();
    }
    gateway.start_again();
    for mut stream in early {
        assert!(answered(&mut stream), "a client that waited");
    }
}

/// Waits until what the gateway listens on is held by somebody else, too.
fn is_held(gateway: &Gateway, holder: &Running) {
    let port = format!(":{}", gateway.address.port());
    let holds = format!("pid={},", holder.0.id());
    until("the listeners are held", || {
        let words = ["-Hltnp", "sport", "=", &port];
        let seen = Command::new("ss").args(words).output().unwrap();
        String::from_utf8_lossy(&seen.stdout).contains(&holds)
    });
}

#[test]
fn who_connects_while_the_container_is_started_again_waits_and_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("hold");
    let holder = hold(&socket);
    let mut gateway = gateway(&socket);
    for _ in 0..3 {
        is_held(&gateway, &holder);
        is_missed_by_nobody(&mut gateway);
    }
}

#[test]
fn a_holder_that_comes_later_or_again_is_given_the_listeners() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("hold");
    let mut gateway = gateway(&socket);
    for _ in 0..2 {
        let holder = hold(&socket);
        is_held(&gateway, &holder);
        is_missed_by_nobody(&mut gateway);
        is_held(&gateway, &holder);
        drop(holder);
        let mut stream = gateway.connect();
        stream.write_all(&hello("a.b")).unwrap();
        assert!(answered(&mut stream), "its end changes nothing");
    }
}

#[test]
fn one_that_is_told_to_stop_refuses_though_its_listeners_are_held() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("hold");
    let holder = hold(&socket);
    let mut gateway = gateway(&socket);
    is_held(&gateway, &holder);
    signal("-TERM", &gateway.child.id().to_string());
    assert!(gateway.child.wait().unwrap().success());
    assert!(TcpStream::connect(gateway.address).is_err());
    gateway.start_again();
    is_missed_by_nobody(&mut gateway);
}

#[test]
fn a_place_that_cannot_be_had_is_told_in_a_sentence() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steward-gateway"));
    let output = command.args(["hold", "/proc/hold"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("can't be found at /proc/hold"), "{said}");
}

#[test]
fn a_holder_needs_one_that_keeps() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steward-gateway"));
    let flags = ["--listen", "127.0.0.1:0", "--routes", "r", "--holder", "h"];
    let output = command.args(flags).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--restart-in-place"), "{said}");
}
