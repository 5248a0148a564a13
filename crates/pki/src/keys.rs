//! Private keys: kinds, where they come from, and the pair that signs service
//! account tokens.

use rand::TryRngCore as _;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, RsaKeySize};

use crate::{Drift, Error};

/// Kinds of private keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyKind {
    /// Small and fast: the default.
    #[default]
    EcdsaP256,
    /// For clients that can't do better; a thousand times slower to make.
    Rsa2048,
}

/// Where keys and other secrets come from.
pub trait KeySource {
    /// A new private key.
    fn key_pair(&self, kind: KeyKind) -> Result<KeyPair, Error>;
    /// Bytes nobody can guess.
    fn random(&self) -> Result<[u8; 32], Error>;
}

/// The operating system's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemKeys;

/// The pair with which the API server signs and checks service account tokens.
#[derive(Clone, PartialEq, Eq)]
pub struct ServiceAccountKeys {
    /// `sa.pub`: the public key, PEM.
    pub public: String,
    /// `sa.key`: the private key, PEM.
    pub private: String,
}

impl KeySource for SystemKeys {
    fn key_pair(&self, kind: KeyKind) -> Result<KeyPair, Error> {
        match kind {
            KeyKind::EcdsaP256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
            KeyKind::Rsa2048 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
        }
        .map_err(Error::GenerateKey)
    }

    fn random(&self) -> Result<[u8; 32], Error> {
        let mut bytes = [0; 32];
        rand::rngs::OsRng
            .try_fill_bytes(&mut bytes)
            .map_err(|error| Error::Random(error.to_string()))?;
        Ok(bytes)
    }
}

impl ServiceAccountKeys {
    /// A new pair.
    pub fn new(keys: &dyn KeySource, kind: KeyKind) -> Result<Self, Error> {
        let pair = keys.key_pair(kind)?;
        Ok(Self {
            public: pair.public_key_pem(),
            private: pair.serialize_pem(),
        })
    }

    /// The pair of a private key that is there.
    pub fn from_private(pem: &str) -> Result<Self, Error> {
        let pair = KeyPair::from_pem(pem).map_err(Error::ReadKey)?;
        Ok(Self {
            public: pair.public_key_pem(),
            private: pem.to_owned(),
        })
    }
}

/// What is wrong with a pair of service account keys.
pub fn service_account_drift(found: &ServiceAccountKeys) -> Vec<Drift> {
    match KeyPair::from_pem(&found.private) {
        Err(error) => vec![Drift::Unreadable(error.to_string())],
        // A bundle of several public keys (old ones still accepted) is fine as long
        // as ours is among them.
        Ok(pair) if body(&found.public).contains(&body(&pair.public_key_pem())) => vec![],
        Ok(_) => vec![Drift::KeyMismatch],
    }
}

fn body(pem: &str) -> String {
    pem.lines()
        .filter(|line| !line.starts_with("-----"))
        .map(str::trim)
        .collect()
}

/// Never prints the private key.
impl std::fmt::Debug for ServiceAccountKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceAccountKeys")
            .field("public", &self.public)
            .finish_non_exhaustive()
    }
}
