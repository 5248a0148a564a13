//! Legs with something between socket and relay.

use std::io::{Read, Write};

use steward_wire::{Config, End};

use crate::support::{GOODBYE, Mode, SIZES, exchange, mirror, noise, server, start};

/// What a client of the flipped protocol would send and get.
fn flip(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| byte ^ 0x33).collect()
}

#[test]
fn a_transform_on_the_clients_side_opens_and_seals() {
    for mode in [Mode::FlipClient, Mode::FlipBothLater] {
        // Behind the second mode the server speaks the flipped protocol too.
        let backend = match mode {
            Mode::FlipClient => mirror(),
            _ => server(|mut stream| {
                let mut first = [0];
                stream.read_exact(&mut first).unwrap();
                assert_eq!(first, [0x5a]);
                stream.write_all(&[0x77]).unwrap();
                let mut all = Vec::new();
                stream.read_to_end(&mut all).unwrap();
                assert_eq!(all.pop(), Some(GOODBYE ^ 0x77), "the end is said");
                all.push(GOODBYE ^ 0x77);
                stream.write_all(&all).unwrap();
            }),
        };
        let setup = start(mode, vec![backend], &Config::default());
        for (seed, size) in (1..).zip(SIZES) {
            let sent = noise(size, seed);
            let mut stream = setup.connect();
            stream.write_all(&[0x5a]).unwrap();
            let mut answer = [0];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(answer, [0x33]);
            let mut received = exchange(stream, flip(&sent), &[GOODBYE ^ 0x33]);
            assert_eq!(received.pop(), Some(GOODBYE ^ 0x33), "the end is said");
            assert!(flip(&received) == sent, "{mode:?}, {size} bytes");
            assert_eq!(setup.end(), (End::Closed, size as u64, size as u64));
        }
    }
}

#[test]
fn a_transform_on_the_servers_side_seals_and_opens() {
    let backend = server(|mut stream| {
        let mut first = [0];
        stream.read_exact(&mut first).unwrap();
        stream.write_all(&[0x77]).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(&all).unwrap();
    });
    let setup = start(Mode::FlipServer, vec![backend], &Config::default());
    let sent = noise(300_000, 9);
    assert!(exchange(setup.connect(), sent.clone(), &[]) == sent);
}

#[test]
fn a_broken_handshake_ends_the_connection_and_is_told() {
    let setup = start(Mode::FlipClient, vec![mirror()], &Config::default());
    let mut stream = setup.connect();
    stream.write_all(b"x").unwrap();
    let _ = stream.read(&mut [0]);
    drop(stream);
    assert_eq!(
        setup.end().0,
        End::ClientTls("that is not a handshake".into())
    );
}
