//! Which private keys a tenant's Secrets hold: half of an operator's CPU is in them.

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::api::core::v1::Secret;

/// Different private keys, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KeyCount {
    /// RSA.
    pub(super) rsa: usize,
    /// Elliptic curves.
    pub(super) ec: usize,
}

impl KeyCount {
    /// In the Secrets of one tenant, kubeconfigs included.
    pub(super) fn of<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut keys = BTreeSet::new();
        for secret in secrets {
            for value in secret.data.iter().flatten().map(|(_, value)| &value.0) {
                collect(&String::from_utf8_lossy(value), &mut keys);
            }
        }
        let ec = keys.iter().filter(|key| is_ec(key)).count();
        Self {
            rsa: keys.len() - ec,
            ec,
        }
    }
}

impl std::fmt::Display for KeyCount {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.rsa, self.ec) {
            (rsa, 0) => write!(formatter, "{rsa} RSA"),
            (0, ec) => write!(formatter, "{ec} EC"),
            (rsa, ec) => write!(formatter, "{rsa} RSA, {ec} EC"),
        }
    }
}

fn collect(text: &str, keys: &mut BTreeSet<String>) {
    let mut rest = text;
    while let Some(begin) = rest.find("-----BEGIN ") {
        let block = &rest[begin..];
        let end = block.find("-----END ").unwrap_or(block.len());
        let head = block.lines().next().unwrap_or_default();
        if head.contains("PRIVATE KEY") {
            keys.insert(block[..end].to_owned());
        }
        rest = &block[end..];
        rest = rest.get(9..).unwrap_or_default();
    }
    for line in text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("client-key-data:"))
    {
        if let Ok(inner) = STANDARD.decode(line.trim().trim_matches('"')) {
            collect(&String::from_utf8_lossy(&inner), keys);
        }
    }
}

/// A key on a curve says so in its head, or is too short to be RSA.
fn is_ec(block: &str) -> bool {
    block.contains("BEGIN EC ") || (!block.contains("BEGIN RSA ") && block.len() < 600)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    fn secret(text: &str) -> Secret {
        let data = [("value".to_owned(), ByteString(text.as_bytes().to_vec()))].into();
        Secret {
            data: Some(data),
            ..Secret::default()
        }
    }

    #[test]
    fn a_key_counts_once_wherever_it_is_kept() {
        let ec = "-----BEGIN PRIVATE KEY-----\nshort\n-----END PRIVATE KEY-----\n";
        let rsa = "-----BEGIN RSA PRIVATE KEY-----\nlong\n-----END RSA PRIVATE KEY-----\n";
        let certificate = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n";
        let kubeconfig = format!("    client-key-data: {}\n", STANDARD.encode(ec));
        let secrets = [
            secret(&format!("{certificate}{ec}")),
            secret(rsa),
            secret(&kubeconfig),
        ];
        assert_eq!(KeyCount::of(&secrets), KeyCount { rsa: 1, ec: 1 });
        assert_eq!(KeyCount { rsa: 1, ec: 1 }.to_string(), "1 RSA, 1 EC");
    }
}
