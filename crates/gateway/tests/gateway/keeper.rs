//! What a second process that keeps the listeners is good for.

use std::{fs, io::Write, net::TcpStream, time::Duration};

use crate::support::{Gateway, answered, hello, named_echo, route, signal, until};

fn gateway() -> Gateway {
    let routes = format!("routes:\n{}", route("a.b", named_echo("x")));
    Gateway::start_with(&routes, &["--restart-in-place"], "")
}

/// The process that serves, below the one that was started.
fn server(gateway: &Gateway) -> String {
    let keeper = gateway.child.id();
    let children = fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children")).unwrap();
    children.trim().to_owned()
}

fn state(process: &str) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

#[test]
fn who_connects_while_nobody_serves_waits_and_is_served_by_the_next() {
    let gateway = gateway();
    let keeper = gateway.child.id().to_string();
    for death in 1..=3 {
        let victim = server(&gateway);
        let mut old = gateway.connect();
        old.write_all(&hello("a.b")).unwrap();
        assert!(answered(&mut old));
        // Held still, so that there is time to connect while nobody serves.
        signal("-STOP", &keeper);
        signal("-KILL", &victim);
        until("it is dead", || state(&victim) == Some('Z'));
        assert!(!answered(&mut old), "its connections end with it");
        let mut early: Vec<TcpStream> = (0..20).map(|_| gateway.connect()).collect();
        for stream in &mut early {
            stream.write_all(&hello("a.b")).unwrap();
        }
        signal("-CONT", &keeper);
        for mut stream in early {
            assert!(answered(&mut stream), "a client that waited");
        }
        assert_ne!(server(&gateway), victim);
        until("the new one says how often it was", || {
            gateway.page("/metrics").contains(&format!(
                "\nsteward_gateway_restarts_in_place_total {death}\n"
            ))
        });
    }
}

/// Processor time so far, in ticks.
fn spent(process: &str) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields = stat.rsplit_once(") ").unwrap().1.split(' ');
    let times = fields.skip(11).take(2).map(str::parse::<u64>);
    times.map(Result::unwrap).sum()
}

#[test]
fn one_that_drains_waits_without_work() {
    let mut gateway = gateway();
    let server = server(&gateway);
    let mut stream = gateway.connect();
    stream.write_all(&hello("a.b")).unwrap();
    assert!(answered(&mut stream));
    signal("-TERM", &gateway.child.id().to_string());
    until("nobody listens", || {
        TcpStream::connect(gateway.address).is_err()
    });
    let before = spent(&server);
    std::thread::sleep(Duration::from_secs(2));
    let spent = spent(&server) - before;
    assert!(spent < 50, "{spent} ticks for one idle connection");
    drop(stream);
    assert!(gateway.child.wait().unwrap().success());
}

#[test]
fn one_that_only_dies_is_given_up() {
    let mut gateway = gateway();
    for _ in 0..6 {
        let mut victim = String::new();
        until("one serves", || {
            victim = server(&gateway);
            !victim.is_empty()
        });
        signal("-KILL", &victim);
        until("it is dead", || state(&victim).is_none());
    }
    let status = gateway.child.wait().unwrap();
    assert_eq!(status.code(), Some(128 + 9));
    assert!(TcpStream::connect(gateway.address).is_err());
}

#[test]
fn a_server_does_not_outlive_its_keeper() {
    let mut gateway = gateway();
    gateway.child.kill().unwrap();
    gateway.child.wait().unwrap();
    until("nobody listens", || {
        TcpStream::connect(gateway.address).is_err()
    });
}
