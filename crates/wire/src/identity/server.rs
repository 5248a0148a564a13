//! The certificate and key that a server answers with.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use arc_swap::ArcSwap;
use rustls::{
    Error as TlsError, InconsistentKeys, ServerConfig,
    server::{ClientHello, ProducesTickets, ResolvesServerCert},
    sign::CertifiedKey,
};

use super::{
    Error,
    files::{Content, Followed, Follows},
    pem,
    tickets::Tickets,
};
use crate::tls;

/// A certificate with its key, as the files have it now.
#[derive(Debug)]
pub struct ServerIdentity {
    cert: PathBuf,
    key: PathBuf,
    current: ArcSwap<Serving>,
}

/// What was made of the two files.
#[derive(Debug)]
struct Serving {
    certified: Arc<CertifiedKey>,
    tickets: Tickets,
}

/// Which versions of TLS a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Versions {
    /// TLS 1.3 alone: both ends are ours.
    Tls13,
    /// TLS 1.2 too: the clients are anybody's.
    Tls12And13,
}

impl ServerIdentity {
    /// Reads both files. The second part is for a [`super::Follower`].
    pub fn open(cert: &Path, key: &Path) -> Result<(Arc<Self>, Followed), Error> {
        let paths = vec![cert.to_owned(), key.to_owned()];
        let content = Content::read(&paths)?;
        let identity = Arc::new(Self {
            cert: cert.to_owned(),
            key: key.to_owned(),
            current: ArcSwap::from_pointee(load(cert, key, &content)?),
        });
        let followed = Followed::new("certificate", paths, content, Arc::clone(&identity) as _);
        Ok((identity, followed))
    }

    /// A configuration that answers with whatever certificate is current, and resumes sessions
    /// without keeping any: what a client needs for it is sealed in its ticket, and every server with
    /// the same key can open that.
    pub fn server_config(
        self: &Arc<Self>,
        versions: Versions,
        alpn: Vec<Vec<u8>>,
    ) -> Result<ServerConfig, TlsError> {
        let versions: &[&rustls::SupportedProtocolVersion] = match versions {
            Versions::Tls13 => &[&rustls::version::TLS13],
            Versions::Tls12And13 => rustls::ALL_VERSIONS,
        };
        let mut config = ServerConfig::builder_with_provider(tls::provider())
            .with_protocol_versions(versions)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(self) as _);
        config.alpn_protocols = alpn;
        config.ticketer = Arc::clone(self) as _;
        // Each resumed connection spends one and gets one; connections at the same time find one
        // each because the first of them got theirs by a full handshake.
        config.send_tls13_tickets = 1;
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        Ok(config)
    }
}

#[cfg(test)]
impl ServerIdentity {
    pub(super) fn current_chain(&self) -> Vec<rustls::pki_types::CertificateDer<'static>> {
        self.current.load().certified.cert.clone()
    }
}

impl Follows for ServerIdentity {
    fn load(&self, content: &Content) -> Result<(), Error> {
        self.current
            .store(Arc::new(load(&self.cert, &self.key, content)?));
        Ok(())
    }
}

impl ResolvesServerCert for ServerIdentity {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.load().certified))
    }
}

impl ProducesTickets for ServerIdentity {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        Tickets::lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.current.load().tickets.seal(plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.current.load().tickets.open(cipher)
    }
}

fn load(cert: &Path, key: &Path, content: &Content) -> Result<Serving, Error> {
    let chain = pem::certificates(cert, content.file(0))?;
    let private_key = pem::private_key(key, content.file(1))?;
    let tickets = Tickets::of(&private_key);
    let certified = CertifiedKey::from_der(chain, private_key, &tls::provider());
    let certified = certified.map_err(|error| match error {
        TlsError::InconsistentKeys(InconsistentKeys::KeyMismatch) => Error::Mismatch {
            cert: cert.to_owned(),
            key: key.to_owned(),
        },
        TlsError::InvalidCertificate(_) => Error::Unusable {
            path: cert.to_owned(),
            reason: format!("holds a certificate that can't be used ({error})"),
        },
        error => Error::Unusable {
            path: key.to_owned(),
            reason: format!("holds a key that can't be used ({error})"),
        },
    })?;
    Ok(Serving {
        certified: Arc::new(certified),
        tickets,
    })
}
