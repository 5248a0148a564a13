//! Version 2: a signature, four bytes, addresses, extensions.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{Error, Header, MAX_HEADER};

/// What a version 2 header starts with.
pub const V2_SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

const FIXED: usize = V2_SIGNATURE.len() + 4;
const LOCAL: u8 = 0x20;
const PROXY: u8 = 0x21;
const UNSPEC: u8 = 0x00;
const TCP4: u8 = 0x11;
const TCP6: u8 = 0x21;

pub(super) fn parse(input: &[u8]) -> Result<Option<(Header, usize)>, Error> {
    let fields = input.get(V2_SIGNATURE.len()..).unwrap_or_default();
    // Each byte is refused as soon as it is there.
    let Some(&command) = fields.first() else {
        return Ok(None);
    };
    if command != LOCAL && command != PROXY {
        return Err(Error::Unknown(if command >> 4 == 2 {
            "command"
        } else {
            "version"
        }));
    }
    let Some(&protocol) = fields.get(1) else {
        return Ok(None);
    };
    let addresses = address_length(command, protocol)?;
    let &[_, _, high, low, ref content @ ..] = fields else {
        return Ok(None);
    };
    let len = usize::from(u16::from_be_bytes([high, low]));
    if FIXED + len > MAX_HEADER {
        return Err(Error::TooLong);
    }
    if len < addresses {
        return Err(Error::Length("addresses"));
    }
    let Some(content) = content.get(..len) else {
        return Ok(None);
    };
    let (content, extensions) = content.split_at_checked(addresses).unwrap_or_default();
    if addresses > 0 {
        check_extensions(extensions)?;
    }
    Ok(Some((read_addresses(content), FIXED + len)))
}

/// How many bytes of addresses follow. What a `LOCAL` header carries is not looked at.
fn address_length(command: u8, protocol: u8) -> Result<usize, Error> {
    match (command, protocol) {
        (_, UNSPEC) | (LOCAL, TCP4 | TCP6) => Ok(0),
        (_, TCP4) => Ok(2 * 4 + 2 * 2),
        (_, TCP6) => Ok(2 * 16 + 2 * 2),
        // Datagrams and Unix sockets exist in the protocol and can't be in front of us.
        _ => Err(Error::Unknown("address family or protocol")),
    }
}

/// Each extension is a kind, a length and a value; together they fill the header.
fn check_extensions(mut rest: &[u8]) -> Result<(), Error> {
    while let [_, high, low, tail @ ..] = rest {
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        rest = tail.get(len..).ok_or(Error::Length("extensions"))?;
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(Error::Length("extensions"))
    }
}

fn read_addresses(content: &[u8]) -> Header {
    if let Ok([a, b, c, d, e, f, g, h, ports @ ..]) = <[u8; 12]>::try_from(content) {
        return header(Ipv4Addr::new(a, b, c, d), Ipv4Addr::new(e, f, g, h), ports);
    }
    if let Some((source, rest)) = content.split_first_chunk::<16>()
        && let Some((destination, rest)) = rest.split_first_chunk::<16>()
        && let Ok(ports) = rest.try_into()
    {
        return header(Ipv6Addr::from(*source), Ipv6Addr::from(*destination), ports);
    }
    Header::default()
}

fn header<A: Into<IpAddr>>(source: A, destination: A, ports: [u8; 4]) -> Header {
    let [a, b, c, d] = ports;
    Header {
        source: Some(SocketAddr::new(source.into(), u16::from_be_bytes([a, b]))),
        destination: Some(SocketAddr::new(
            destination.into(),
            u16::from_be_bytes([c, d]),
        )),
    }
}

pub(super) fn encode(source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
    let mut header = Vec::with_capacity(FIXED + 36);
    header.extend_from_slice(V2_SIGNATURE);
    if let (IpAddr::V4(from), IpAddr::V4(to)) = (source.ip(), destination.ip()) {
        header.extend([PROXY, TCP4, 0, 12]);
        header.extend(from.octets());
        header.extend(to.octets());
    } else {
        header.extend([PROXY, TCP6, 0, 36]);
        header.extend(as_v6(source.ip()).octets());
        header.extend(as_v6(destination.ip()).octets());
    }
    header.extend(source.port().to_be_bytes());
    header.extend(destination.port().to_be_bytes());
    header
}

pub(super) fn encode_local() -> Vec<u8> {
    [V2_SIGNATURE, &[LOCAL, UNSPEC, 0, 0]].concat()
}

fn as_v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}
