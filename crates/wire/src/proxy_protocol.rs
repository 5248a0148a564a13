//! The PROXY protocol, versions 1 and 2: who is on the other side of the program in front.
//!
//! Owns the header alone. Whether its sender may be believed is the caller's to decide, and
//! only a trusted source is asked for one. Strict in both directions: a
//! header that is almost right is refused, because what follows it would be read as something
//! that it is not. Nothing is allocated while reading.

#[cfg(test)]
mod tests;
mod v1;
mod v2;

use std::net::SocketAddr;

pub use v2::V2_SIGNATURE;

/// The longest header that is read.
///
/// Version 1 ends at 107 bytes. Version 2 may say 64 KiB, but addresses and the extensions that
/// load balancers send fit in 536 bytes, the smallest segment there is; more is refused.
pub const MAX_HEADER: usize = 536;

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// The client. None when the sender speaks for itself (a health check) or does not know.
    pub source: Option<SocketAddr>,
    /// The address the client connected to.
    pub destination: Option<SocketAddr>,
}

/// Why a header was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Error {
    /// The bytes do not start with one. The sender is configured not to send it.
    #[error("no PROXY protocol header")]
    Missing,
    /// A version 1 line without its end, or longer than 107 bytes.
    #[error("a PROXY v1 line without an end")]
    Endless,
    /// A version 1 line that is not as the protocol says.
    #[error("a PROXY v1 line with a wrong {0}")]
    Line(&'static str),
    /// A version 2 header with a version, command, family or protocol that does not exist.
    #[error("a PROXY v2 header with an unknown {0}")]
    Unknown(&'static str),
    /// A version 2 header too short for its addresses or its extensions.
    #[error("a PROXY v2 header whose {0} do not fit")]
    Length(&'static str),
    /// A header longer than [`MAX_HEADER`].
    #[error("a PROXY v2 header longer than 536 bytes")]
    TooLong,
}

/// Reads the header that `input` starts with, and says how many bytes it takes. None: it may be
/// one, but more bytes are needed to tell.
pub fn parse(input: &[u8]) -> Result<Option<(Header, usize)>, Error> {
    if starts_alike(input, v1::START) {
        return v1::parse(input);
    }
    if starts_alike(input, V2_SIGNATURE) {
        return v2::parse(input);
    }
    Err(Error::Missing)
}

/// The header as a line. Families that differ can't be said in it: then both are unknown.
pub fn encode_v1(source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
    v1::encode(source, destination)
}

/// The header in binary. Families that differ are written as IPv6.
pub fn encode_v2(source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
    v2::encode(source, destination)
}

/// The header of a connection that the sender made for itself.
pub fn encode_v2_local() -> Vec<u8> {
    v2::encode_local()
}

impl Error {
    /// A word for a metric label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Missing => "proxy_header_missing",
            _ => "proxy_header_malformed",
        }
    }
}

/// Whether one is a prefix of the other: `input` starts with `start`, or may yet.
fn starts_alike(input: &[u8], start: &[u8]) -> bool {
    let common = input.len().min(start.len());
    input.get(..common) == start.get(..common)
}
