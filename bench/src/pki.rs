//! Certificates of a run: one CA, one leaf for every name in it, in memory and
//! as the files the proxies want. ECDSA P-256, as the operator issues.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};

/// Every name of a run lives under this domain, which the certificate covers.
pub(crate) const DOMAIN: &str = "bench.test";
/// The upstream's name as node proxies ask for it.
pub(crate) const NODE_NAME: &str = "t0.bench.test";

/// The files of a run's certificates.
#[derive(Clone, Debug)]
pub(crate) struct Pki {
    /// CA certificate, PEM.
    pub(crate) ca: PathBuf,
    /// Leaf certificate, PEM.
    pub(crate) cert: PathBuf,
    /// Its key, PEM.
    pub(crate) key: PathBuf,
    /// Leaf and key in one file, as HAProxy wants them.
    pub(crate) bundle: PathBuf,
}

impl Pki {
    /// Where the files of a run are.
    pub(crate) fn at(directory: &Path) -> Self {
        let file = |name: &str| directory.join(name);
        Self {
            ca: file("ca.pem"),
            cert: file("cert.pem"),
            key: file("key.pem"),
            bundle: file("bundle.pem"),
        }
    }

    /// Issues the certificates and writes them.
    pub(crate) fn issue(directory: &Path) -> Result<Self> {
        let pki = Self::at(directory);
        let mut ca = CertificateParams::new(Vec::new())?;
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        ca.distinguished_name
            .push(rcgen::DnType::CommonName, "steward-bench");
        let issuer = CertifiedIssuer::self_signed(ca, KeyPair::generate()?)?;
        let key = KeyPair::generate()?;
        let leaf = CertificateParams::new(vec![format!("*.{DOMAIN}")])?.signed_by(&key, &issuer)?;
        fs::write(&pki.ca, issuer.pem())?;
        fs::write(&pki.cert, leaf.pem())?;
        fs::write(&pki.key, key.serialize_pem())?;
        fs::write(&pki.bundle, leaf.pem() + &key.serialize_pem())?;
        Ok(pki)
    }

    /// The load generator's side: verified, never resumed, so that every
    /// connection costs both ends a full handshake.
    pub(crate) fn client(&self) -> Result<Arc<ClientConfig>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&self.ca).context("reading the CA")?)?;
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.resumption = rustls::client::Resumption::disabled();
        Ok(Arc::new(config))
    }

    /// The backend's side: offers tickets, so that proxies which resume can.
    pub(crate) fn server(&self) -> Result<Arc<ServerConfig>> {
        let certificate = CertificateDer::from_pem_file(&self.cert).context("reading the leaf")?;
        let key = PrivateKeyDer::from_pem_file(&self.key).context("reading the key")?;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)?;
        config.ticketer = aws_lc_rs::Ticketer::new()?;
        config.send_tls13_tickets = 1;
        Ok(Arc::new(config))
    }
}

/// One group and one cipher for everybody, so that no proxy is measured with
/// cheaper cryptography than another.
fn provider() -> Arc<CryptoProvider> {
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups = vec![aws_lc_rs::kx_group::X25519];
    provider.cipher_suites = vec![aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256];
    Arc::new(provider)
}
