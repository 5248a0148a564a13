//! The CAs that an upstream's certificate is checked against.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use arc_swap::ArcSwap;
use rustls::{ClientConfig, RootCertStore, client::Resumption};

use super::{
    Error,
    files::{Content, Followed, Follows},
    pem,
    sessions::Sessions,
};
use crate::tls;

/// A client configuration that believes the CAs in a file, as the file is now.
#[derive(Debug)]
pub struct Trust {
    path: PathBuf,
    current: ArcSwap<ClientConfig>,
}

impl Trust {
    /// Reads the file. TLS 1.3 only. The second part is for a [`super::Follower`].
    pub fn open(path: &Path) -> Result<(Arc<Self>, Followed), Error> {
        let paths = vec![path.to_owned()];
        let content = Content::read(&paths)?;
        let trust = Arc::new(Self {
            path: path.to_owned(),
            current: ArcSwap::new(load(path, &content)?),
        });
        let followed = Followed::new("CA", paths, content, Arc::clone(&trust) as _);
        Ok((trust, followed))
    }

    /// The configuration for the next connection. Made anew when the CA changes, and with it the
    /// sessions to resume: who is no longer trusted is not resumed either.
    pub fn client_config(&self) -> Arc<ClientConfig> {
        self.current.load_full()
    }
}

impl Follows for Trust {
    fn load(&self, content: &Content) -> Result<(), Error> {
        self.current.store(load(&self.path, content)?);
        Ok(())
    }
}

fn load(path: &Path, content: &Content) -> Result<Arc<ClientConfig>, Error> {
    let unusable = |error: rustls::Error| Error::Unusable {
        path: path.to_owned(),
        reason: format!("holds a CA certificate that can't be used ({error})"),
    };
    let mut roots = RootCertStore::empty();
    for certificate in pem::certificates(path, content.file(0))? {
        roots.add(certificate).map_err(unusable)?;
    }
    let mut config = ClientConfig::builder_with_provider(tls::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(unusable)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = Resumption::store(Arc::new(Sessions::default()));
    Ok(Arc::new(config))
}
