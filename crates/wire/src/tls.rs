//! TLS on one leg of a connection: rustls without sockets and without buffers.
//!
//! Owns the two [`Transform`]s, [`ServerLeg`] (a client's TLS ends here) and [`ClientLeg`] (a
//! verified connection to an upstream starts here), and the crypto that both use. It refuses to
//! be configured into not verifying: a client leg is made from [`crate::identity::Trust`] only.
//!
//! The invariant is memory: an idle leg holds keys and nothing else. rustls' unbuffered interface
//! works on the bytes where the engine read them; only the beginning of a record whose end has
//! not come is kept, and given back with its last byte.

mod alpn;
mod leg;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{Arc, LazyLock},
};

use rustls::{
    ClientConfig, ServerConfig,
    client::UnbufferedClientConnection,
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::ServerName,
    server::UnbufferedServerConnection,
};

use crate::transform::{Opened, Transform, TransformError};

pub use alpn::Expected;
use leg::Leg;
pub use leg::explain;

/// The server side: the peer is a client whose TLS ends here.
#[derive(Debug)]
pub struct ServerLeg(Leg<UnbufferedServerConnection>);

/// The client side: the peer is an upstream whose certificate is checked.
#[derive(Debug)]
pub struct ClientLeg {
    leg: Leg<UnbufferedClientConnection>,
    expected: Option<Expected>,
}

/// The crypto of all legs: AES-128 before AES-256.
///
/// Both are beyond attack, every peer has both, and the shorter key costs a third less per byte.
pub fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
        let mut provider = aws_lc_rs::default_provider();
        // Stable: only the 128-bit suites move to the front.
        provider.cipher_suites.sort_by_key(|suite| {
            let name = suite.suite().as_str().unwrap_or_default();
            !name.contains("AES_128")
        });
        Arc::new(provider)
    });
    Arc::clone(&PROVIDER)
}

// === impl ServerLeg ===

impl ServerLeg {
    /// A leg that answers with `config`.
    pub fn new(config: Arc<ServerConfig>) -> Result<Self, TransformError> {
        let connection = UnbufferedServerConnection::new(config).map_err(leg::explained)?;
        Ok(Self(Leg::new(connection)))
    }
}

impl Transform for ServerLeg {
    fn open(
        &mut self,
        wire: &mut [u8],
        plain: &mut Vec<u8>,
        reply: &mut Vec<u8>,
    ) -> Result<Opened, TransformError> {
        self.0.open(wire, plain, reply)
    }

    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> Result<(), TransformError> {
        self.0.seal(plain, wire)
    }

    fn close(&mut self, wire: &mut Vec<u8>) {
        self.0.close(wire);
    }

    fn ready(&self) -> bool {
        self.0.ready()
    }

    fn alpn(&self) -> Option<&[u8]> {
        self.0.alpn()
    }
}

// === impl ClientLeg ===

impl ClientLeg {
    /// A leg to the server called `name`, offering `alpn`.
    pub fn new(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        alpn: Vec<Vec<u8>>,
    ) -> Result<Self, TransformError> {
        let connection = UnbufferedClientConnection::new_with_alpn(config, name, alpn)
            .map_err(leg::explained)?;
        Ok(Self {
            leg: Leg::new(connection),
            expected: None,
        })
    }

    /// Refuses a server that chooses anything but this protocol.
    #[must_use]
    pub fn expecting(mut self, expected: Expected) -> Self {
        self.expected = Some(expected);
        self
    }
}

impl Transform for ClientLeg {
    fn open(
        &mut self,
        wire: &mut [u8],
        plain: &mut Vec<u8>,
        reply: &mut Vec<u8>,
    ) -> Result<Opened, TransformError> {
        let opened = self.leg.open(wire, plain, reply)?;
        if self.leg.ready()
            && let Some(expected) = self.expected.take()
        {
            expected.check(self.leg.alpn())?;
        }
        Ok(opened)
    }

    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> Result<(), TransformError> {
        self.leg.seal(plain, wire)
    }

    fn close(&mut self, wire: &mut Vec<u8>) {
        self.leg.close(wire);
    }

    fn ready(&self) -> bool {
        self.leg.ready()
    }

    fn alpn(&self) -> Option<&[u8]> {
        self.leg.alpn()
    }
}

impl<C> fmt::Debug for Leg<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leg")
            .field("ready", &self.ready())
            .finish_non_exhaustive()
    }
}
