//! One try to reach the API server the whole way, on a thread that may block.
//!
//! In a tunnel the outer handshake proves the gate; a `ClientHello` inside, and the first byte of
//! its answer, prove the API server behind it. Nothing is authenticated there and nothing asked.
//! The connection is ended politely, so that the API server has nothing to log.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use rustls::{ClientConfig, ClientConnection, Stream, client::Resumption, pki_types::ServerName};
use steward_wire::{
    dial::{Resolution, Target, Upstream},
    identity::Trust,
    tls::explain,
};

use crate::proxy::Tunnel;

/// For each step of a probe.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most that is read to let the other side finish.
const LEFTOVERS: u64 = 1 << 20;

/// How to reach the API server.
#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) trust: Arc<Trust>,
    pub(crate) server_name: ServerName<'static>,
    /// None: TLS is terminated, and the upstream is the API server itself.
    pub(crate) tunnel: Option<Tunnel>,
}

impl Probe {
    pub(crate) fn target(&self) -> &Target {
        self.upstream.target()
    }

    /// Tries all addresses. The error is a sentence about the last.
    pub(crate) fn run(&self) -> Result<(), String> {
        self.await_resolution();
        let addresses = self.upstream.addresses();
        let mut trouble = self.unresolved();
        for &address in addresses.iter() {
            match self.try_address(address) {
                Ok(()) => return Ok(()),
                Err(error) => trouble = format!("{address}: {error}"),
            }
            self.upstream.failed(address);
        }
        Err(trouble)
    }

    /// Gives the name's first resolution a moment: not to know yet is no news.
    fn await_resolution(&self) {
        let deadline = Instant::now() + PATIENCE;
        while self.upstream.resolution() == Resolution::Pending
            && self.upstream.addresses().is_empty()
            && Instant::now() < deadline
        {
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn unresolved(&self) -> String {
        match self.upstream.resolution() {
            Resolution::Failed(reason) => format!(
                "the name does not resolve ({reason}): check this node's DNS, or give --pin, \
                 --host-alias or --internal-endpoint"
            ),
            Resolution::Pending => {
                "the name is still being resolved: DNS does not answer".to_owned()
            }
            Resolution::Known => "the name has no address".to_owned(),
        }
    }

    fn try_address(&self, address: SocketAddr) -> Result<(), String> {
        let io =
            |what: &'static str| move |error: io::Error| format!("{what}: {}", in_words(&error));
        let mut socket =
            TcpStream::connect_timeout(&address, PATIENCE).map_err(io("does not answer"))?;
        socket
            .set_read_timeout(Some(PATIENCE))
            .map_err(io("socket"))?;
        socket
            .set_write_timeout(Some(PATIENCE))
            .map_err(io("socket"))?;
        let config = self.trust.client_config();
        let alpn = match &self.tunnel {
            Some(tunnel) => tunnel.offered(),
            None => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        };
        let name = self.server_name.clone();
        let mut outer = ClientConnection::new_with_alpn(Arc::clone(&config), name, alpn)
            .map_err(|error| explain(&error))?;
        while outer.is_handshaking() {
            outer
                .complete_io(&mut socket)
                .map_err(|error| tls_reason(&error))?;
        }
        if let Some(tunnel) = &self.tunnel {
            if !tunnel.is(outer.alpn_protocol()) {
                return Err(format!(
                    "did not choose the tunnel protocol {tunnel}: is there a gate behind this name?"
                ));
            }
            self.hello_inside(&config, &mut outer, &mut socket)?;
        }
        leave(&mut outer, &mut socket);
        Ok(())
    }

    /// Says hello to the API server through the tunnel, and waits for its first byte.
    fn hello_inside(
        &self,
        config: &Arc<ClientConfig>,
        outer: &mut ClientConnection,
        socket: &mut TcpStream,
    ) -> Result<(), String> {
        let mut config = ClientConfig::clone(config);
        // Tickets are the outer connections' and would say nothing to the API server.
        config.resumption = Resumption::disabled();
        let mut inner = ClientConnection::new(Arc::new(config), self.server_name.clone())
            .map_err(|error| explain(&error))?;
        let mut hello = Vec::new();
        let silent = |error: io::Error| {
            let reason = in_words(&error);
            format!("the gate answers, but not the API server behind it: {reason}")
        };
        inner.write_tls(&mut hello).map_err(silent)?;
        let mut through = Stream::new(outer, socket);
        through.write_all(&hello).map_err(silent)?;
        let mut first = [0];
        through.read_exact(&mut first).map_err(silent)
    }
}

/// rustls hides its own error in one of I/O.
fn tls_reason(error: &io::Error) -> String {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(tls) => explain(tls),
        None => format!("TLS handshake: {}", in_words(error)),
    }
}

/// A socket with a timeout says "try again" when it means "too late".
fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("no answer within {} s", PATIENCE.as_secs())
        }
        io::ErrorKind::UnexpectedEof => "the other side hung up".to_owned(),
        _ => error.to_string(),
    }
}

/// Says goodbye and lets the other side do the same.
fn leave(connection: &mut ClientConnection, socket: &mut TcpStream) {
    connection.send_close_notify();
    // The answer is known by now; a failure here changes nothing.
    while connection.wants_write() {
        if connection.write_tls(socket).is_err() {
            return;
        }
    }
    let _ = socket.shutdown(Shutdown::Write);
    let _ = io::copy(&mut socket.take(LEFTOVERS), &mut io::sink());
}
