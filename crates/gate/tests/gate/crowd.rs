//! Thousands of connections while certificates and the API server change under them.

use std::{
    io::{Read, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

use rustls::ClientConfig;

use super::{
    GATE, Pki, Program, TENANT, TUNNEL, clients,
    crowd::{self, Echo, Stream},
    metric, wait_until,
};

const CONNECTIONS: usize = 5000;
const ROTATIONS: usize = 10;

/// A gate before a server that echoes whatever comes out of it.
pub(super) struct Place {
    pub(super) pki: Pki,
    pub(super) echo: Echo,
    pub(super) gate: Program,
    pub(super) address: std::net::SocketAddr,
    pub(super) admin: std::net::SocketAddr,
    /// Offers the tunnel.
    pub(super) tunnel: Arc<ClientConfig>,
    /// Does not.
    pub(super) plain: Arc<ClientConfig>,
}

impl Place {
    /// `files` is how many descriptors the gate may have.
    pub(super) fn new(files: Option<u32>) -> Self {
        let (pki, echo) = (Pki::new(), Echo::start());
        let shown = pki.issue("tunnel", &[TENANT]);
        let apiserver = echo.address.to_string();
        let args = [
            "--listen",
            "127.0.0.1:0",
            "--admin",
            "127.0.0.1:0",
            "--apiserver",
            &apiserver,
            "--cert",
            shown.cert.to_str().unwrap(),
            "--key",
            shown.key.to_str().unwrap(),
        ];
        let mut gate = match files {
            Some(files) => Program::start_with_files(files, GATE, &args),
            None => Program::start(GATE, &args),
        };
        let (address, admin) = (gate.address("listen"), gate.address("admin"));
        let (tunnel, plain) = (
            clients::config(&pki, &[TUNNEL]),
            clients::config(&pki, &["h2"]),
        );
        Self {
            pki,
            echo,
            gate,
            address,
            admin,
            tunnel,
            plain,
        }
    }

    /// A connection through a tunnel, or one that is passed on as it is: its own hello comes back.
    pub(super) fn connect(&self, number: usize) -> Box<dyn Stream> {
        if number.is_multiple_of(2) {
            return Box::new(crowd::tls(self.address, &self.tunnel, TENANT));
        }
        let hello = crowd::hello(&self.plain, TENANT);
        let mut stream = crowd::connect(self.address);
        stream.write_all(&hello).unwrap();
        let mut back = vec![0; hello.len()];
        stream.read_exact(&mut back).unwrap();
        assert!(back == hello, "connection {number}: the hello was changed");
        Box::new(stream)
    }

    /// The certificate that a new tunnel is shown, if it comes so far.
    fn shown(&self) -> Option<Vec<u8>> {
        let config = clients::config(&self.pki, &[TUNNEL]);
        let mut tls = crowd::tls(self.address, &config, TENANT);
        while tls.conn.is_handshaking() {
            tls.conn.complete_io(&mut tls.sock).ok()?;
        }
        Some(tls.conn.peer_certificates()?[0].to_vec())
    }

    /// Both ways through the gate work for new connections.
    pub(super) fn others_are_served(&self) {
        drop(crowd::open(0..8, |number| self.connect(number)));
    }

    pub(super) fn live(&self) -> u64 {
        metric(self.admin, "steward_gate_connections")
    }
}

#[test]
fn five_thousand_connections_live_through_certificates_and_an_absent_server() {
    let _alone = crowd::alone();
    let place = Place::new(None);
    let mut live = crowd::open(0..CONNECTIONS, |number| place.connect(number));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..ROTATIONS {
                let before = place.shown();
                place.pki.issue("tunnel", &[TENANT]);
                wait_until("the new certificate is shown", || {
                    place.shown().is_some_and(|now| Some(now) != before)
                });
                place.echo.go();
                let mut refused = crowd::connect(place.address);
                let _ = refused.write_all(&crowd::hello(&place.plain, TENANT));
                assert!(
                    !matches!(refused.read(&mut [0; 1]), Ok(1)),
                    "nobody is there"
                );
                place.echo.come_back();
            }
            place.pki.replace("tunnel.crt", "broken");
            let failures = "steward_gate_certificate_reload_failures_total";
            wait_until("the broken file is counted", || {
                metric(place.admin, failures) == 1
            });
            done.store(true, Relaxed);
        });
        let mut round = 1;
        while round < 4 || !done.load(Relaxed) {
            crowd::all_live(&mut live, round);
            round += 1;
        }
    });
    place.others_are_served();
    wait_until("all others are gone", || place.live() == CONNECTIONS as u64);
    crowd::all_live(&mut live, 0);
    drop(live);
    wait_until("all are gone", || place.live() == 0);
}
