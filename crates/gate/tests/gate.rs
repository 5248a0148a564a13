//! The gate as a process, between clients that nobody here wrote and servers that report.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails should say where"
)]

#[path = "gate/access.rs"]
mod access;
#[path = "gate/attack.rs"]
mod attack;
#[path = "support/clients.rs"]
mod clients;
#[path = "support/crowd.rs"]
mod crowd;
#[path = "gate/crowd.rs"]
mod crowd_test;
#[path = "gate/lifecycle.rs"]
mod lifecycle;
#[path = "support/pki.rs"]
mod pki;
#[path = "support/program.rs"]
mod program;
#[path = "gate/routing.rs"]
mod routing;
#[path = "support/server.rs"]
mod server;
#[path = "gate/tunnel.rs"]
mod tunnel;

use std::net::{SocketAddr, TcpStream};

use clients::Ask;
use pki::{Identity, Pki};
use program::{Program, metric, page, run, wait_until};
use rustls::{ClientConnection, StreamOwned};
use server::{ECHO, Server};

const GATE: &str = env!("CARGO_BIN_EXE_steward-gate");
const TENANT: &str = "t1.example.com";
const TUNNEL: &str = "steward-tunnel/1";
const KONNECTIVITY: &str = "steward-konnectivity/1";

/// An API server, a konnectivity server, and a gate before them.
struct World {
    pki: Pki,
    client: Identity,
    tunnel: Identity,
    apiserver: Server,
    _konnectivity: Server,
    gate: Program,
    address: SocketAddr,
    admin: SocketAddr,
}

impl World {
    fn new(flags: &[&str]) -> Self {
        let pki = Pki::new();
        let names = [TENANT, "kubernetes", "k.example.com"];
        let apiserver = pki.issue("apiserver", &names);
        let apiserver = Server::start(&pki, "apiserver", apiserver, &["h2", "http/1.1"]);
        let konnectivity = pki.issue("konnectivity", &names);
        let konnectivity = Server::start(&pki, "konnectivity", konnectivity, &["h2"]);
        let tunnel = pki.issue("tunnel", &[TENANT]);
        let client = pki.issue("jane", &["jane.example"]);
        let mut args: Vec<String> = Vec::new();
        let mut flag = |name: &str, value: &dyn std::fmt::Display| {
            args.extend([name.to_owned(), value.to_string()]);
        };
        flag("--listen", &"127.0.0.1:0");
        flag("--admin", &"127.0.0.1:0");
        flag("--apiserver", &apiserver.address);
        flag("--konnectivity", &konnectivity.address);
        flag("--konnectivity-name", &"k.example.com");
        flag("--cert", &tunnel.cert.display());
        flag("--key", &tunnel.key.display());
        let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
        args.extend(flags);
        let mut gate = Program::start(GATE, &args);
        let (address, admin) = (gate.address("listen"), gate.address("admin"));
        Self {
            pki,
            client,
            tunnel,
            apiserver,
            _konnectivity: konnectivity,
            gate,
            address,
            admin,
        }
    }

    fn ask<'a>(&'a self, sni: &'a str, alpn: &'a [&'a str]) -> Ask<'a> {
        Ask {
            pki: &self.pki,
            address: self.address,
            sni,
            alpn,
            client: Some(&self.client),
        }
    }

    /// A tunnel through the gate, open for the inner connection.
    fn tunnel(&self) -> StreamOwned<ClientConnection, TcpStream> {
        let ask = Ask {
            client: None,
            ..self.ask(TENANT, &[TUNNEL])
        };
        let socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(program::PATIENCE)).unwrap();
        StreamOwned::new(clients::connection(&ask), socket)
    }

    /// A client of the API server inside a tunnel.
    fn inside(&self) -> StreamOwned<ClientConnection, StreamOwned<ClientConnection, TcpStream>> {
        let inner = clients::connection(&self.ask("kubernetes", &["http/1.1"]));
        StreamOwned::new(inner, self.tunnel())
    }
}

fn common_name_seen(connection: &ClientConnection) -> String {
    let chain = connection.peer_certificates().unwrap();
    let text = String::from_utf8_lossy(&chain[0]).into_owned();
    let names = ["konnectivity", "apiserver", "tunnel"];
    names
        .into_iter()
        .find(|name| text.contains(name))
        .unwrap()
        .to_owned()
}
