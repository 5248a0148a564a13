//! The first flight of a TLS client: what it asks for, before anything is opened.
//!
//! Owns the incremental reading of a `ClientHello` for the two things a router may look at, the
//! server name and the ALPN list. It reads bytes it is given and does nothing else: no I/O, no
//! state beyond [`Parser`], no key. It refuses to guess: a hello that says two things at once
//! (two server names, two ALPN lists) is [`Malformed`], because two programs on the path could
//! read it differently.
//!
//! Invariants, each with a property test:
//! - the answer does not depend on how the bytes were cut, into segments or into TLS records;
//! - every prefix of an input answers [`Outcome::NeedMore`] or what the whole input answers;
//! - no length that was read is ever used to allocate: a copy is made only of what was received,
//!   and that is at most [`MAX_INPUT`];
//! - work is linear in the bytes received, however they arrive.

mod alert;
mod body;
mod foreign;
mod name;
mod records;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, fmt};

pub use alert::{Alert, alert_record};
pub use body::Alpn;
pub use foreign::NotTls;
pub use name::{BadName, Name};
pub use records::Parser;

/// The most bytes looked at before an answer is given, record headers included.
///
/// Post-quantum key shares make hellos of 1.5 to 4 KiB, early Kyber drafts and padding more; what
/// rustls accepts ends at 64 KiB, and so does this.
pub const MAX_INPUT: usize = 64 * 1024;

/// What the bytes received so far amount to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "lives on the stack for the length of one call"
)]
pub enum Outcome<'a> {
    /// A `ClientHello` may still be coming. Read more and ask again with all bytes.
    NeedMore,
    /// A whole `ClientHello`.
    Hello(Hello<'a>),
    /// The peer does not speak TLS.
    NotTls(NotTls),
    /// TLS that no server should accept, or that this program refuses to interpret.
    Malformed(Malformed),
}

/// A whole `ClientHello`: what it says about where it wants to go.
#[derive(Clone, PartialEq, Eq)]
pub struct Hello<'a> {
    sni: Option<Name>,
    message: Cow<'a, [u8]>,
    alpn: Option<std::ops::Range<usize>>,
    len: usize,
}

/// Why a hello was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Malformed {
    /// The major version of a record is not 3.
    #[error("a TLS record with an unknown version")]
    RecordVersion,
    /// A handshake record without content.
    #[error("an empty TLS handshake record")]
    EmptyRecord,
    /// A record longer than the protocol allows.
    #[error("a TLS record longer than 16 KiB")]
    RecordTooLong,
    /// Another kind of record inside the hello.
    #[error("a ClientHello interrupted by another TLS record")]
    Interrupted,
    /// A handshake that starts with another message.
    #[error("a TLS handshake that does not start with a ClientHello")]
    NotClientHello,
    /// A hello longer than [`MAX_INPUT`].
    #[error("a ClientHello longer than 64 KiB")]
    TooLong,
    /// A length that points outside of what contains it, or leaves bytes over.
    #[error("a ClientHello whose {0} does not fit")]
    Length(Field),
    /// The same extension twice.
    #[error("a ClientHello with two {0} extensions")]
    Duplicate(Field),
    /// A list of server names with anything but one host name in it.
    #[error("a server_name list that is not one host name")]
    NameList,
    /// A server name that is not a host name.
    #[error("a server name that {0}")]
    ServerName(BadName),
}

/// A part of a `ClientHello`, to say where it is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// Version and random.
    Head,
    /// The session id.
    SessionId,
    /// The cipher suites.
    CipherSuites,
    /// The compression methods.
    Compression,
    /// The extension block or one extension in it.
    Extensions,
    /// The `server_name` extension.
    ServerName,
    /// The ALPN extension.
    Alpn,
}

/// Reads `input`, all bytes received so far, from the start.
///
/// Callers that read in pieces keep a [`Parser`], which does not walk the same records twice.
pub fn parse(input: &[u8]) -> Outcome<'_> {
    Parser::default().advance(input)
}

impl Hello<'_> {
    /// The server name asked for: lower case, without a trailing dot.
    ///
    /// An address in place of a name counts as none: RFC 6066 does not allow it, some clients
    /// send it, and no route can be meant by it.
    pub fn sni(&self) -> Option<&str> {
        self.sni.as_deref()
    }

    /// The protocols offered by ALPN, in the client's order.
    pub fn alpn(&self) -> Alpn<'_> {
        let list = self.alpn.clone().and_then(|range| self.message.get(range));
        Alpn::new(list.unwrap_or_default())
    }

    /// Whether `protocol` is among those offered.
    pub fn offers(&self, protocol: &[u8]) -> bool {
        self.alpn().any(|offered| offered == protocol)
    }

    /// How many bytes of the input the hello occupies, record headers included.
    #[expect(clippy::len_without_is_empty, reason = "a hello is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }
}

impl fmt::Debug for Hello<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alpn: Vec<_> = self.alpn().map(|p| p.escape_ascii().to_string()).collect();
        f.debug_struct("Hello")
            .field("sni", &self.sni())
            .field("alpn", &alpn)
            .field("len", &self.len)
            .finish()
    }
}

impl Malformed {
    /// The TLS alert that answers it.
    pub fn alert(self) -> Alert {
        match self {
            Self::RecordVersion => Alert::ProtocolVersion,
            Self::RecordTooLong => Alert::RecordOverflow,
            Self::EmptyRecord | Self::Interrupted | Self::NotClientHello => {
                Alert::UnexpectedMessage
            }
            Self::TooLong | Self::Length(_) => Alert::DecodeError,
            Self::Duplicate(_) | Self::NameList | Self::ServerName(_) => Alert::IllegalParameter,
        }
    }

    /// A word for a metric label.
    pub fn label(self) -> &'static str {
        match self {
            Self::RecordVersion => "record_version",
            Self::EmptyRecord => "empty_record",
            Self::RecordTooLong => "record_too_long",
            Self::Interrupted => "interrupted",
            Self::NotClientHello => "not_client_hello",
            Self::TooLong => "too_long",
            Self::Length(_) => "length",
            Self::Duplicate(_) => "duplicate",
            Self::NameList => "name_list",
            Self::ServerName(_) => "server_name",
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Head => "head",
            Self::SessionId => "session id",
            Self::CipherSuites => "cipher suite list",
            Self::Compression => "compression list",
            Self::Extensions => "extension block",
            Self::ServerName => "server_name",
            Self::Alpn => "ALPN",
        })
    }
}
