//! Certificates on disk, as the operator would have put them there.

use std::{fs, path::PathBuf, sync::Arc};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer},
};
use tempfile::TempDir;

/// A CA and what it issued, in a directory that goes away with it.
pub(crate) struct Pki {
    issuer: CertifiedIssuer<'static, KeyPair>,
    dir: TempDir,
}

/// A certificate with its key: as files, and for rustls.
pub(crate) struct Identity {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) der: CertificateDer<'static>,
    pub(crate) key_der: PrivateKeyDer<'static>,
}

impl Pki {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "test authority");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("ca.crt"), issuer.pem()).unwrap();
        Self { issuer, dir }
    }

    pub(crate) fn ca(&self) -> PathBuf {
        self.path("ca.crt")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        Arc::new(roots)
    }

    /// Issues a certificate for `names`, whose common name is `name`, into `name.crt` and
    /// `name.key`. Issued again, the files are replaced the way a careful program does it.
    pub(crate) fn issue(&self, name: &str, names: &[&str]) -> Identity {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        // gnutls-cli wants the issuer to be findable by it.
        params.use_authority_key_identifier_extension = true;
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        Identity {
            cert: self.replace(&format!("{name}.crt"), &cert.pem()),
            key: self.replace(&format!("{name}.key"), &key.serialize_pem()),
            der: cert.der().clone(),
            key_der: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        }
    }

    pub(crate) fn replace(&self, name: &str, content: &str) -> PathBuf {
        let (new, path) = (self.path("new"), self.path(name));
        fs::write(&new, content).unwrap();
        fs::rename(new, &path).unwrap();
        path
    }
}
