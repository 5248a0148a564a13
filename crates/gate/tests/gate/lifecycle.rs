//! How a gate starts and stops.

use std::io::{Read, Write};

use super::{ECHO, GATE, Pki, Server, TENANT, World, page, run, wait_until};

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
