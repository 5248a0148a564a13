//! A certificate as a server presented it: DER, of unknown origin.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// As PEM text, the form everything else here reads.
pub fn to_pem(der: &[u8]) -> String {
    let encoded = BASE64.encode(der);
    let lines: Vec<&str> = encoded
        .as_bytes()
        .chunks(64)
        .map(|line| std::str::from_utf8(line).unwrap_or_default())
        .collect();
    format!(
        "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
        lines.join("\n")
    )
}

/// Whether one of the authorities in this PEM bundle signed it. Anything that can't
/// be read did not.
pub fn is_signed_by(der: &[u8], authorities: &str) -> bool {
    let Ok((_, presented)) = X509Certificate::from_der(der) else {
        return false;
    };
    x509_parser::pem::Pem::iter_from_buffer(authorities.as_bytes())
        .flatten()
        .any(|block| {
            block.parse_x509().is_ok_and(|authority| {
                presented.issuer() == authority.subject()
                    && presented
                        .verify_signature(Some(authority.public_key()))
                        .is_ok()
            })
        })
}
