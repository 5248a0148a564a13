//! The `ClientHello` message itself: every length checked, two extensions read, the rest skipped.

use std::ops::Range;

use super::{BadName, Field, Malformed, Name};

const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
const HOST_NAME: u8 = 0;
const RANDOM: usize = 32;
const MAX_SESSION_ID: usize = 32;

/// What a router wants to know.
#[derive(Default)]
pub(super) struct Found {
    pub(super) sni: Option<Name>,
    /// Where the protocol list lies in the message.
    pub(super) alpn: Option<Range<usize>>,
}

/// The protocols of an ALPN extension, in the client's order.
#[derive(Debug, Clone)]
pub struct Alpn<'a> {
    rest: &'a [u8],
}

/// Bytes not read yet. Every method takes from the front or fails.
struct Cursor<'a> {
    bytes: &'a [u8],
}

/// Reads the message in `bytes`.
pub(super) fn read(bytes: &[u8]) -> Result<Found, Malformed> {
    let mut hello = Cursor { bytes };
    let wrong = |field| move || Malformed::Length(field);

    hello.take(2 + RANDOM).ok_or_else(wrong(Field::Head))?;
    let session = hello.short_vector().ok_or_else(wrong(Field::SessionId))?;
    if session.len() > MAX_SESSION_ID {
        return Err(Malformed::Length(Field::SessionId));
    }
    let suites = hello.vector().ok_or_else(wrong(Field::CipherSuites))?;
    if suites.is_empty() || suites.len() % 2 != 0 {
        return Err(Malformed::Length(Field::CipherSuites));
    }
    let compression = hello.short_vector().ok_or_else(wrong(Field::Compression))?;
    if compression.is_empty() {
        return Err(Malformed::Length(Field::Compression));
    }
    // Before TLS 1.2 the block may be missing altogether.
    if hello.bytes.is_empty() {
        return Ok(Found::default());
    }
    let extensions = hello.vector().ok_or_else(wrong(Field::Extensions))?;
    if !hello.bytes.is_empty() {
        return Err(Malformed::Length(Field::Extensions));
    }
    read_extensions(bytes.len(), extensions)
}

/// Reads the extension block, which ends where the message of `message_len` bytes ends.
fn read_extensions(message_len: usize, block: &[u8]) -> Result<Found, Malformed> {
    let mut extensions = Cursor { bytes: block };
    let (mut sni, mut alpn) = (None, None);
    while !extensions.bytes.is_empty() {
        let wrong = || Malformed::Length(Field::Extensions);
        let kind = extensions.u16().ok_or_else(wrong)?;
        let content = extensions.vector().ok_or_else(wrong)?;
        match kind {
            SERVER_NAME if sni.is_some() => return Err(Malformed::Duplicate(Field::ServerName)),
            SERVER_NAME => sni = Some(read_server_name(content)?),
            ALPN if alpn.is_some() => return Err(Malformed::Duplicate(Field::Alpn)),
            ALPN => {
                let list = read_alpn(content)?;
                let end = message_len - extensions.bytes.len();
                alpn = Some(end - list..end);
            }
            _ => {}
        }
    }
    Ok(Found {
        sni: sni.flatten(),
        alpn,
    })
}

/// The host name in a `server_name` extension; none if it is an address.
fn read_server_name(content: &[u8]) -> Result<Option<Name>, Malformed> {
    let wrong = || Malformed::Length(Field::ServerName);
    let mut content = Cursor { bytes: content };
    let mut list = Cursor {
        bytes: content.vector().ok_or_else(wrong)?,
    };
    if !content.bytes.is_empty() || list.bytes.is_empty() {
        return Err(wrong());
    }
    // The list was made for name types that never came. One entry of the one type is all that
    // clients send, and all that OpenSSL and BoringSSL accept.
    if list.u8() != Some(HOST_NAME) {
        return Err(Malformed::NameList);
    }
    let host = list.vector().ok_or_else(wrong)?;
    if !list.bytes.is_empty() {
        return Err(Malformed::NameList);
    }
    match Name::parse(host) {
        Ok(name) => Ok(Some(name)),
        Err(_) if is_address(host) => Ok(None),
        Err(bad) => Err(Malformed::ServerName(bad)),
    }
}

fn is_address(host: &[u8]) -> bool {
    Name::parse(host) == Err(BadName::Address)
        || str::from_utf8(host).is_ok_and(|text| text.parse::<std::net::IpAddr>().is_ok())
}

/// The length of the protocol list, which ends where the extension ends.
fn read_alpn(content: &[u8]) -> Result<usize, Malformed> {
    let wrong = || Malformed::Length(Field::Alpn);
    let mut content = Cursor { bytes: content };
    let list = content.vector().ok_or_else(wrong)?;
    if !content.bytes.is_empty() || list.is_empty() {
        return Err(wrong());
    }
    let mut protocols = Cursor { bytes: list };
    while !protocols.bytes.is_empty() {
        protocols
            .short_vector()
            .filter(|protocol| !protocol.is_empty())
            .ok_or_else(wrong)?;
    }
    Ok(list.len())
}

impl<'a> Cursor<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(len)?;
        self.bytes = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    fn u16(&mut self) -> Option<u16> {
        let (&first, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(u16::from_be_bytes(first))
    }

    /// A vector with one byte of length.
    fn short_vector(&mut self) -> Option<&'a [u8]> {
        let len = self.u8()?;
        self.take(usize::from(len))
    }

    /// A vector with two bytes of length.
    fn vector(&mut self) -> Option<&'a [u8]> {
        let len = self.u16()?;
        self.take(usize::from(len))
    }
}

impl<'a> Alpn<'a> {
    /// Over a list that was checked.
    pub(super) fn new(list: &'a [u8]) -> Self {
        Self { rest: list }
    }
}

impl<'a> Iterator for Alpn<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let mut cursor = Cursor { bytes: self.rest };
        let protocol = cursor.short_vector()?;
        self.rest = cursor.bytes;
        Some(protocol)
    }
}
