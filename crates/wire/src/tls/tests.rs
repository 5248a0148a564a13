//! Both legs against each other and against rustls' own buffered connections, in memory.

use std::io::{Read, Write};

use proptest::prelude::*;
use rustls::{ClientConnection, ServerConnection};

use super::*;
use crate::identity::{
    Trust,
    testing::{Authority, client_config, server_config},
};

fn tunnel() -> Vec<Vec<u8>> {
    vec![b"steward-tunnel/1".to_vec()]
}

fn server_name() -> ServerName<'static> {
    ServerName::try_from("t1.example.com").unwrap()
}

/// Two legs wired to each other, with the cuts that a network makes.
struct Wired {
    client: ClientLeg,
    server: ServerLeg,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
    server_got: Vec<u8>,
    client_got: Vec<u8>,
    cut: usize,
}

impl Wired {
    fn new(authority: &Authority, cut: usize) -> Self {
        let mut config = server_config(authority, "t1.example.com");
        config.alpn_protocols = tunnel();
        let client = client_config(authority);
        Self {
            client: ClientLeg::new(Arc::new(client), server_name(), tunnel()).unwrap(),
            server: ServerLeg::new(Arc::new(config)).unwrap(),
            to_server: Vec::new(),
            to_client: Vec::new(),
            server_got: Vec::new(),
            client_got: Vec::new(),
            cut,
        }
    }

    /// Carries bytes both ways until nothing moves; says whether either side saw the end.
    fn settle(&mut self) -> Result<(bool, bool), TransformError> {
        let (mut server_eof, mut client_eof) = (false, false);
        self.client
            .open(&mut [], &mut self.client_got, &mut self.to_server)?;
        while !self.to_server.is_empty() || !self.to_client.is_empty() {
            for piece in std::mem::take(&mut self.to_server).chunks_mut(self.cut) {
                let opened = self
                    .server
                    .open(piece, &mut self.server_got, &mut self.to_client)?;
                server_eof |= opened == Opened::Eof;
            }
            for piece in std::mem::take(&mut self.to_client).chunks_mut(self.cut) {
                let opened = self
                    .client
                    .open(piece, &mut self.client_got, &mut self.to_server)?;
                client_eof |= opened == Opened::Eof;
            }
        }
        Ok((server_eof, client_eof))
    }
}

#[test]
fn bytes_pass_both_ways_and_each_way_ends_by_itself() {
    let authority = Authority::new("tunnel");
    for cut in [1, 7, 1000, 65_536] {
        let mut wired = Wired::new(&authority, cut);
        wired.settle().unwrap();
        assert!(wired.client.ready() && wired.server.ready());
        assert_eq!(wired.client.alpn(), Some(&b"steward-tunnel/1"[..]));
        assert_eq!(wired.server.alpn(), Some(&b"steward-tunnel/1"[..]));

        let sent: Vec<u8> = (0..100_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        wired.client.seal(&sent, &mut wired.to_server).unwrap();
        wired.client.close(&mut wired.to_server);
        assert_eq!(wired.settle().unwrap(), (true, false));
        assert_eq!(wired.server_got, sent);

        wired
            .server
            .seal(&sent[..70_000], &mut wired.to_client)
            .unwrap();
        wired.server.close(&mut wired.to_client);
        assert!(wired.settle().unwrap().1);
        assert_eq!(wired.client_got, sent[..70_000]);
    }
}

#[test]
fn a_client_that_says_all_in_one_flight_is_answered() {
    let authority = Authority::new("ca");
    let mut wired = Wired::new(&authority, 65_536);
    // The client's hello there, the server's flight back, and nothing further.
    wired
        .client
        .open(&mut [], &mut Vec::new(), &mut wired.to_server)
        .unwrap();
    let mut flight = std::mem::take(&mut wired.to_server);
    wired
        .server
        .open(&mut flight, &mut wired.server_got, &mut wired.to_client)
        .unwrap();
    let mut flight = std::mem::take(&mut wired.to_client);
    wired
        .client
        .open(&mut flight, &mut wired.client_got, &mut wired.to_server)
        .unwrap();
    // The end of the handshake, data and the end of the stream at once.
    wired.client.seal(b"all", &mut wired.to_server).unwrap();
    wired.client.close(&mut wired.to_server);
    assert!(wired.settle().unwrap().0);
    assert_eq!(wired.server_got, b"all");
    assert!(wired.server.ready());
    wired.server.seal(b"answer", &mut wired.to_client).unwrap();
    wired.settle().unwrap();
    assert_eq!(wired.client_got, b"answer");
}

#[test]
fn a_ticket_travels_with_the_first_answer_or_the_last_word() {
    let authority = Authority::new("ca");
    for answers in [true, false] {
        let mut wired = Wired::new(&authority, 65_536);
        wired.settle().unwrap();
        let ticket = wired.server.0.unhurried();
        assert!(ticket > 0 && wired.to_client.is_empty());
        if answers {
            wired.server.seal(b"answer", &mut wired.to_client).unwrap();
        } else {
            wired.server.close(&mut wired.to_client);
        }
        assert!(wired.to_client.len() > ticket);
        assert_eq!(wired.server.0.unhurried(), 0);
        assert_eq!(wired.settle().unwrap().1, !answers);
    }
}

#[test]
fn nothing_is_held_at_rest() {
    let authority = Authority::new("tunnel");
    let mut wired = Wired::new(&authority, 100);
    wired.settle().unwrap();
    wired
        .client
        .seal(&vec![7; 50_000], &mut wired.to_server)
        .unwrap();
    wired.settle().unwrap();
    assert_eq!(wired.client.leg.pending_capacity(), 0);
    assert_eq!(wired.server.0.pending_capacity(), 0);
}

#[test]
fn an_upstream_of_another_authority_is_refused_and_told_so() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let mut wired = Wired::new(&theirs, 65_536);
    let client = Arc::new(client_config(&ours));
    wired.client = ClientLeg::new(client, server_name(), tunnel()).unwrap();
    let error = wired.settle().unwrap_err().to_string();
    assert_eq!(error, "its certificate is not signed by the CA in --ca");
    assert!(!wired.client.ready());
    // The alert went out in the clear: the server's keys are not for it yet.
    assert!(!wired.to_server.is_empty(), "an alert for the peer");
}

#[test]
fn an_upstream_of_another_name_is_refused() {
    let authority = Authority::new("ca");
    let mut wired = Wired::new(&authority, 65_536);
    let client = Arc::new(client_config(&authority));
    let other = ServerName::try_from("t2.example.com").unwrap();
    wired.client = ClientLeg::new(client, other, tunnel()).unwrap();
    let error = wired.settle().unwrap_err().to_string();
    assert!(error.contains("another name"), "{error}");
}

#[test]
fn an_upstream_that_is_no_gate_is_refused() {
    let authority = Authority::new("ca");
    let mut wired = Wired::new(&authority, 65_536);
    let config = server_config(&authority, "t1.example.com");
    wired.server = ServerLeg::new(Arc::new(config)).unwrap();
    let id: Arc<[u8]> = Arc::from(&b"steward-tunnel/1"[..]);
    let client = Arc::new(client_config(&authority));
    wired.client = ClientLeg::new(client, server_name(), tunnel())
        .unwrap()
        .expecting(Expected::Tunnel(id));
    let error = wired.settle().unwrap_err().to_string();
    assert!(
        error.contains("did not choose the tunnel protocol"),
        "{error}"
    );
}

#[test]
fn a_second_connection_resumes_the_first() {
    let authority = Authority::new("ca");
    let mut server = server_config(&authority, "t1.example.com");
    server.alpn_protocols = tunnel();
    let (server, client) = (Arc::new(server), Arc::new(client_config(&authority)));
    let mut kinds = Vec::new();
    for _ in 0..2 {
        let mut wired = Wired::new(&authority, 65_536);
        wired.server = ServerLeg::new(Arc::clone(&server)).unwrap();
        wired.client = ClientLeg::new(Arc::clone(&client), server_name(), tunnel()).unwrap();
        wired.settle().unwrap();
        // The ticket comes with the first answer.
        wired.server.seal(b"answer", &mut wired.to_client).unwrap();
        wired.settle().unwrap();
        kinds.push(wired.client.leg.connection().handshake_kind());
    }
    assert_eq!(
        kinds,
        [
            Some(rustls::HandshakeKind::Full),
            Some(rustls::HandshakeKind::Resumed)
        ]
    );
}

#[test]
fn a_crowd_that_comes_at_once_resumes() {
    let authority = Authority::new("ca");
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca.crt");
    std::fs::write(&ca, authority.pem()).unwrap();
    let (trust, _) = Trust::open(&ca).unwrap();
    let mut server = server_config(&authority, "t1.example.com");
    server.alpn_protocols = tunnel();
    let server = Arc::new(server);
    for expected in [rustls::HandshakeKind::Full, rustls::HandshakeKind::Resumed] {
        let mut crowd: Vec<_> = (0..30)
            .map(|_| {
                let mut wired = Wired::new(&authority, 65_536);
                let config = trust.client_config();
                wired.server = ServerLeg::new(Arc::clone(&server)).unwrap();
                wired.client = ClientLeg::new(config, server_name(), tunnel()).unwrap();
                wired
            })
            .collect();
        for wired in &mut crowd {
            wired.settle().unwrap();
            wired.server.seal(b"answer", &mut wired.to_client).unwrap();
            wired.settle().unwrap();
            let kind = wired.client.leg.connection().handshake_kind();
            assert_eq!(kind, Some(expected));
        }
    }
}

#[test]
fn garbage_after_the_handshake_is_refused_with_an_alert() {
    let authority = Authority::new("ca");
    let mut wired = Wired::new(&authority, 65_536);
    wired.settle().unwrap();
    let mut reply = Vec::new();
    let mut garbage = *b"\x17\x03\x03\x00\x20aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    let answer = wired.server.open(&mut garbage, &mut Vec::new(), &mut reply);
    assert!(answer.is_err());
    assert!(!reply.is_empty(), "an alert for the peer");
}

/// A buffered rustls client against our server leg, and the other way round: what the legs write
/// is TLS, not merely what the legs read.
#[test]
fn legs_speak_with_buffered_connections() {
    let authority = Authority::new("ca");
    let server = Arc::new(server_config(&authority, "t1.example.com"));
    let client = Arc::new(client_config(&authority));

    let mut theirs = ClientConnection::new(Arc::clone(&client), server_name()).unwrap();
    let mut ours = ServerLeg::new(Arc::clone(&server)).unwrap();
    theirs.writer().write_all(b"hello from outside").unwrap();
    let mut got = Vec::new();
    for _ in 0..4 {
        let (mut wire, mut reply) = (Vec::new(), Vec::new());
        while theirs.wants_write() {
            theirs.write_tls(&mut wire).unwrap();
        }
        ours.open(&mut wire, &mut got, &mut reply).unwrap();
        if ours.ready() && got == b"hello from outside" {
            ours.seal(b"and back", &mut reply).unwrap();
        }
        let mut reply = &reply[..];
        while !reply.is_empty() {
            theirs.read_tls(&mut reply).unwrap();
            theirs.process_new_packets().unwrap();
        }
    }
    let mut back = [0; 8];
    theirs.reader().read_exact(&mut back).unwrap();
    assert_eq!(&back, b"and back");

    let mut theirs = ServerConnection::new(server).unwrap();
    let mut ours = ClientLeg::new(client, server_name(), Vec::new()).unwrap();
    let (mut wire, mut reply) = (Vec::new(), Vec::new());
    ours.open(&mut [], &mut Vec::new(), &mut wire).unwrap();
    for _ in 0..4 {
        let mut sent = &wire[..];
        while !sent.is_empty() {
            theirs.read_tls(&mut sent).unwrap();
            theirs.process_new_packets().unwrap();
        }
        wire.clear();
        reply.clear();
        while theirs.wants_write() {
            theirs.write_tls(&mut reply).unwrap();
        }
        ours.open(&mut reply, &mut Vec::new(), &mut wire).unwrap();
    }
    assert!(ours.ready());
    ours.seal(b"ping", &mut wire).unwrap();
    theirs.read_tls(&mut &wire[..]).unwrap();
    theirs.process_new_packets().unwrap();
    let mut got = [0; 4];
    theirs.reader().read_exact(&mut got).unwrap();
    assert_eq!(&got, b"ping");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damage_never_panics(
        rounds in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..3),
        cut in 1_usize..3000,
        clean in 0_usize..4,
    ) {
        let mut wired = Wired::new(&Authority::new("ca"), cut);
        wired.client.open(&mut [], &mut Vec::new(), &mut wired.to_server).unwrap();
        for round in 0..6 {
            if round >= clean {
                for wire in [&mut wired.to_server, &mut wired.to_client] {
                    if wire.is_empty() {
                        continue;
                    }
                    for (place, value) in &rounds {
                        *place.get_mut(wire) = *value;
                    }
                }
            }
            for piece in std::mem::take(&mut wired.to_server).chunks_mut(cut) {
                let _ = wired.server.open(piece, &mut wired.server_got, &mut wired.to_client);
                let _ = wired.server.seal(b"pong", &mut wired.to_client);
            }
            for piece in std::mem::take(&mut wired.to_client).chunks_mut(cut) {
                let _ = wired.client.open(piece, &mut wired.client_got, &mut wired.to_server);
                let _ = wired.client.seal(b"ping", &mut wired.to_server);
            }
            wired.to_server.truncate(20_000);
            wired.to_client.truncate(20_000);
        }
        wired.client.close(&mut wired.to_server);
        wired.server.close(&mut wired.to_client);
    }

    #[test]
    fn any_sizes_and_cuts_arrive_whole(
        sizes in proptest::collection::vec(0_usize..70_000, 1..6),
        cut in 1_usize..70_000,
    ) {
        let mut wired = Wired::new(&Authority::new("ca"), cut);
        wired.settle().unwrap();
        let mut sent = Vec::new();
        for size in sizes {
            let piece = vec![size.to_le_bytes()[0]; size];
            wired.client.seal(&piece, &mut wired.to_server).unwrap();
            sent.extend(piece);
        }
        wired.settle().unwrap();
        prop_assert_eq!(&wired.server_got, &sent);
        prop_assert_eq!(wired.server.0.pending_capacity(), 0);
    }
}
