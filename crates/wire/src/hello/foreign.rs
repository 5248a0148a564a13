//! What a peer speaks when it does not speak TLS, so that the log can say so.
//!
//! Diagnosis only: nothing is parsed beyond the first bytes, and nothing is routed by it.

use std::fmt;

use super::Outcome;

/// A protocol recognised on the wrong port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotTls {
    /// Plain HTTP.
    Http,
    /// SSH.
    Ssh,
    /// A PROXY protocol header from a source that is not trusted to send one.
    ProxyProtocol,
    /// An SSL 2.0 hello, or an SSL 3.0 hello in its format.
    Sslv2,
    /// Something else.
    Unknown,
}

/// What each protocol starts with.
const STARTS: [(&[u8], NotTls); 13] = [
    (b"GET ", NotTls::Http),
    (b"HEAD ", NotTls::Http),
    (b"POST ", NotTls::Http),
    (b"PUT ", NotTls::Http),
    (b"PATCH ", NotTls::Http),
    (b"DELETE ", NotTls::Http),
    (b"OPTIONS ", NotTls::Http),
    (b"CONNECT ", NotTls::Http),
    (b"TRACE ", NotTls::Http),
    (b"PRI * HTTP/2.0", NotTls::Http),
    (b"SSH-", NotTls::Ssh),
    (b"PROXY ", NotTls::ProxyProtocol),
    (crate::proxy_protocol::V2_SIGNATURE, NotTls::ProxyProtocol),
];

/// Names what `input`, which is not empty and not TLS, looks like.
pub(super) fn recognise(input: &[u8]) -> Outcome<'static> {
    for (start, kind) in STARTS {
        if input.starts_with(start) {
            return Outcome::NotTls(kind);
        }
    }
    // The first bytes of something known: the rest settles which.
    if STARTS.iter().any(|(start, _)| start.starts_with(input)) {
        return Outcome::NeedMore;
    }
    match input {
        // Two bytes of length with the high bit set, then the message type CLIENT-HELLO.
        [0x80..=0xff, _, 1, ..] => Outcome::NotTls(NotTls::Sslv2),
        [0x80..=0xff] | [0x80..=0xff, _] => Outcome::NeedMore,
        _ => Outcome::NotTls(NotTls::Unknown),
    }
}

impl NotTls {
    /// A word for a metric label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Ssh => "ssh",
            Self::ProxyProtocol => "proxy_protocol",
            Self::Sslv2 => "sslv2",
            Self::Unknown => "not_tls",
        }
    }
}

impl fmt::Display for NotTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "plain HTTP on a TLS port",
            Self::Ssh => "SSH on a TLS port",
            Self::ProxyProtocol => "a PROXY protocol header from a source that is not trusted",
            Self::Sslv2 => "an SSL 2.0 hello",
            Self::Unknown => "bytes that are not TLS",
        })
    }
}
