//! The node's end as a process: through a real gate to a server that reports, in both modes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails should say where"
)]

#[path = "proxy/address.rs"]
mod address;
#[path = "proxy/attack.rs"]
mod attack;
#[path = "../../gate/tests/support/clients.rs"]
mod clients;
#[path = "../../gate/tests/support/crowd.rs"]
mod crowd;
#[path = "proxy/crowd.rs"]
mod crowd_test;
#[path = "proxy/lifecycle.rs"]
mod lifecycle;
#[path = "proxy/modes.rs"]
mod modes;
#[path = "../../gate/tests/support/pki.rs"]
mod pki;
#[path = "../../gate/tests/support/program.rs"]
mod program;
#[path = "../../gate/tests/support/server.rs"]
mod server;
#[path = "proxy/upstream.rs"]
mod upstream;

use std::{
    fmt::Display,
    net::{SocketAddr, TcpStream},
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
        self.node(&[
            "--mode",
            "terminate",
            "--access-log",
            "--cert",
            cert,
            "--key",
            key,
        ])
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
        clients::rustls(&self.ask(node.address, &["http/1.1"]))
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
    let args = steward_gate::Args::parse_from(words.map(ToString::to_string));
    steward_gate::Running::start(&args, &steward_wire::keeper::Keeper::default()).unwrap()
}

impl Node {
    fn start(flags: &[&str]) -> Self {
        Self::start_with_files(None, flags)
    }

    /// `files` is how many descriptors it may have.
    fn start_with_files(files: Option<u32>, flags: &[&str]) -> Self {
        let own = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        let args = [&own, flags].concat();
        let mut proxy = match files {
            Some(files) => Program::start_with_files(files, PROXY, &args),
            None => Program::start(PROXY, &args),
        };
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
