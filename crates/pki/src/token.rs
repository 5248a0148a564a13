//! Bootstrap tokens: `id.secret`, with which a node joins.

use crate::{Error, KeySource};

/// A token that lets a node join.
#[derive(Clone, PartialEq, Eq)]
pub struct BootstrapToken {
    /// Six characters; public, part of the Secret's name.
    pub id: String,
    /// Sixteen characters.
    pub secret: String,
}

impl BootstrapToken {
    /// A new token.
    pub fn new(keys: &dyn KeySource) -> Result<Self, Error> {
        let bytes = keys.random()?;
        let text: String = bytes.iter().map(|byte| letter(*byte)).collect();
        Ok(Self {
            id: text[..6].to_owned(),
            secret: text[6..22].to_owned(),
        })
    }

    /// `bootstrap-token-<id>`, in kube-system.
    pub fn secret_name(&self) -> String {
        format!("bootstrap-token-{}", self.id)
    }

    /// As it is given to `kubeadm join --token`.
    pub fn expose(&self) -> String {
        format!("{}.{}", self.id, self.secret)
    }
}

/// 32 letters and digits, so that every one is equally likely.
fn letter(byte: u8) -> char {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    char::from(LETTERS[usize::from(byte) % LETTERS.len()])
}

/// Never prints the secret part.
impl std::fmt::Debug for BootstrapToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BootstrapToken({}.…)", self.id)
    }
}
