//! Thousands of connections while certificates, CAs and gates change under them.
//!
//! The gates are processes of their own: together they would need more descriptors than one
//! process gets. In mode terminate they end the upstream's TLS, because the crowd offers the
//! tunnel's protocol; so in both modes a plain server echoes at the far end.

use std::{
    net::{SocketAddr, TcpListener},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

use clap::Parser;
use rustls::ClientConfig;
use steward_wire::{keeper::Keeper, signals::Stop};

use super::{
    Node, Pki, Program, SERVICE, TENANT, clients,
    crowd::{self, Echo, Stream},
    metric, wait_until,
};

const CONNECTIONS: usize = 5000;
const ROTATIONS: usize = 3;
const TUNNEL: &str = "steward-tunnel/1";
const IN_CHILD: &str = "STEWARD_TEST_GATE";

/// Not a test of its own: what the child process runs, with the gate's flags in the environment.
#[test]
fn gate_of_the_crowd() {
    let Ok(flags) = std::env::var(IN_CHILD) else {
        return;
    };
    let args = steward_gate::Args::parse_from(flags.split('\n'));
    steward_wire::logging::init(args.log_format);
    let mut stop = Stop::new().unwrap();
    let gate = steward_gate::Running::start(&args, &Keeper::default()).unwrap();
    gate.stop(stop.wait());
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    EndToEnd,
    Terminate,
}

/// A node, two gates of one name, and a server that echoes.
pub(super) struct Place {
    mode: Mode,
    pub(super) pki: Pki,
    echo: Echo,
    port: u16,
    gates: Vec<Program>,
    pub(super) node: Node,
    pub(super) config: Arc<ClientConfig>,
}

/// The hosts of both gates.
const HOSTS: [&str; 2] = ["127.0.0.1", "127.0.0.2"];

impl Place {
    /// `files` is how many descriptors the node's end may have.
    pub(super) fn new(mode: Mode, files: Option<u32>) -> Self {
        let (pki, echo) = (Pki::new(), Echo::start());
        pki.issue("tunnel", &[TENANT]);
        let shown = pki.issue("node", &[SERVICE]);
        let port = free_port();
        let gates = HOSTS
            .map(|host| gate(&pki, host, port, echo.address))
            .into();
        let (upstream, ca) = (format!("{TENANT}:{port}"), pki.ca());
        let aliases = HOSTS.map(|host| format!("{TENANT}={host}"));
        let mut flags = vec!["--upstream", &upstream, "--ca", ca.to_str().unwrap()];
        for alias in &aliases {
            flags.extend(["--host-alias", alias]);
        }
        if mode == Mode::Terminate {
            let (cert, key) = (shown.cert.to_str().unwrap(), shown.key.to_str().unwrap());
            flags.extend(["--mode", "terminate", "--cert", cert, "--key", key]);
        }
        let node = Node::start_with_files(files, &flags);
        let config = clients::config(&pki, &[TUNNEL]);
        Self {
            mode,
            pki,
            echo,
            port,
            gates,
            node,
            config,
        }
    }

    /// End to end the crowd's own bytes pass, whatever they are.
    pub(super) fn connect(&self) -> Box<dyn Stream> {
        match self.mode {
            Mode::EndToEnd => Box::new(crowd::connect(self.node.address)),
            Mode::Terminate => Box::new(crowd::tls(self.node.address, &self.config, SERVICE)),
        }
    }

    pub(super) fn others_are_served(&self) {
        drop(crowd::open(0..8, |_| self.connect()));
    }

    pub(super) fn live(&self) -> u64 {
        metric(self.node.admin, "steward_tcp_proxy_connections")
    }

    fn reloads(&self) -> u64 {
        metric(
            self.node.admin,
            "steward_tcp_proxy_certificate_reloads_total",
        )
    }

    /// New certificates everywhere, a CA file that is written anew, and a server that was away.
    fn rotate(&self) {
        let before = self.reloads();
        self.pki.issue("tunnel", &[TENANT]);
        self.pki.issue("node", &[SERVICE]);
        let ca = std::fs::read_to_string(self.pki.ca()).unwrap();
        self.pki.replace("ca.crt", &format!("{ca}\n"));
        wait_until("the change is followed", || self.reloads() > before);
        self.echo.go();
        self.echo.come_back();
        self.others_are_served();
    }
}

/// One that was free a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind((HOSTS[1], 0)).unwrap();
    listener.local_addr().unwrap().port()
}

fn gate(pki: &Pki, host: &str, port: u16, apiserver: SocketAddr) -> Program {
    let listen = format!("{host}:{port}");
    let flags = [
        "gate".to_owned(),
        format!("--listen={listen}"),
        "--admin=127.0.0.1:0".to_owned(),
        format!("--apiserver={apiserver}"),
        format!("--cert={}", pki.path("tunnel.crt").display()),
        format!("--key={}", pki.path("tunnel.key").display()),
        "--drain-timeout=600".to_owned(),
    ];
    let mut program = Program::started(
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crowd_test::gate_of_the_crowd", "--nocapture"])
            .env(IN_CHILD, flags.join("\n")),
    );
    assert_eq!(program.address("listen").to_string(), listen);
    program
}

fn five_thousand_live_on(mode: Mode) {
    let _alone = crowd::alone();
    let mut place = Place::new(mode, None);
    let mut live = crowd::open(0..CONNECTIONS / 2, |_| place.connect());
    // The first gate leaves, as in a rollout: it lets its connections finish.
    place.gates[0].terminate();
    wait_until("the first gate does not listen any more", || {
        place.gates[0].log().contains("stopping")
            && std::net::TcpStream::connect((HOSTS[0], place.port)).is_err()
    });
    live.extend(crowd::open(CONNECTIONS / 2..CONNECTIONS, |_| {
        place.connect()
    }));
    crowd::all_live(&mut live, 1);
    // Its successor comes.
    let successor = gate(&place.pki, HOSTS[0], place.port, place.echo.address);
    place.gates.push(successor);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..ROTATIONS {
                place.rotate();
            }
            done.store(true, Relaxed);
        });
        let mut round = 2;
        while round < 4 || !done.load(Relaxed) {
            crowd::all_live(&mut live, round);
            round += 1;
        }
    });
    wait_until("all others are gone", || place.live() == CONNECTIONS as u64);
    crowd::all_live(&mut live, 0);
    drop(live);
    wait_until("all are gone", || place.live() == 0);
}

#[test]
fn end_to_end_five_thousand_connections_live_through_certificates_and_gates() {
    five_thousand_live_on(Mode::EndToEnd);
}

#[test]
fn terminated_five_thousand_connections_live_through_certificates_and_gates() {
    five_thousand_live_on(Mode::Terminate);
}
