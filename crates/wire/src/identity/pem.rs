//! PEM files into rustls' types, with an error that names the file.

use std::path::Path;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

use super::Error;

/// All certificates in the file: at least one.
pub(super) fn certificates(
    path: &Path,
    content: &[u8],
) -> Result<Vec<CertificateDer<'static>>, Error> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(content).collect();
    let certificates = certificates.map_err(|error| Error::Unusable {
        path: path.to_owned(),
        reason: format!("is not a PEM file ({error})"),
    })?;
    if certificates.is_empty() {
        return Err(Error::NoCertificate {
            path: path.to_owned(),
        });
    }
    Ok(certificates)
}

/// The first private key in the file.
pub(super) fn private_key(path: &Path, content: &[u8]) -> Result<PrivateKeyDer<'static>, Error> {
    // The PEM error is not passed on: it may quote what it could not read.
    PrivateKeyDer::from_pem_slice(content).map_err(|_| Error::NoKey {
        path: path.to_owned(),
    })
}
