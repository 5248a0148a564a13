//! Who we are and whom we believe: certificates, keys and CAs from files, followed as they change.
//!
//! Owns the reading and checking of the files and the rustls configurations made from them. A
//! rotated file is taken within two seconds, by new connections; those that live keep what they
//! have. A broken new file changes nothing: the old state stays, one log line says why, a counter
//! counts. At start there is no old state, so the error goes to the caller.
//!
//! It never writes, never logs what is in a key, and offers no way to trust without a CA.

mod files;
mod pem;
mod server;
mod sessions;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod tickets;
mod trust;

use std::path::PathBuf;

pub use files::{Counts, Followed, Follower};
pub use server::{ServerIdentity, Versions};
pub use trust::Trust;

/// Why files can't be used: which one, what is wrong with it, what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file can't be read.
    #[error("{}: can't be read ({reason}): check the path and its permissions", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// The file has no certificate in it.
    #[error("{}: holds no certificate: expected a PEM file with -----BEGIN CERTIFICATE-----", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The file has no private key in it.
    #[error("{}: holds no private key: expected a PEM file with -----BEGIN PRIVATE KEY-----", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// The file is PEM, but what is inside can't be used.
    #[error("{}: {reason}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What rustls says.
        reason: String,
    },
    /// Certificate and key are not a pair.
    #[error(
        "{}: does not belong to the key in {}: give the two files of one pair",
        cert.display(), key.display()
    )]
    Mismatch {
        /// The certificate.
        cert: PathBuf,
        /// The key.
        key: PathBuf,
    },
}
