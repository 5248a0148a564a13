//! Version 1: one line of text.

use std::{
    io::Write,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    str::FromStr,
};

use super::{Error, Header};

pub(super) const START: &[u8] = b"PROXY ";
/// The longest line, its end included.
const MAX_LINE: usize = 107;

pub(super) fn parse(input: &[u8]) -> Result<Option<(Header, usize)>, Error> {
    let line = input.get(..MAX_LINE).unwrap_or(input);
    let Some(end) = line.windows(2).position(|two| two == b"\r\n") else {
        return if line.len() < MAX_LINE {
            Ok(None)
        } else {
            Err(Error::Endless)
        };
    };
    let text = line.get(START.len()..end).unwrap_or_default();
    let text = str::from_utf8(text).map_err(|_| Error::Line("character"))?;
    Ok(Some((read(text)?, end + 2)))
}

fn read(text: &str) -> Result<Header, Error> {
    let (family, rest) = text.split_once(' ').unwrap_or((text, ""));
    match family {
        // Whatever else the line says must be ignored.
        "UNKNOWN" => Ok(Header::default()),
        "TCP4" => read_addresses::<Ipv4Addr>(rest),
        "TCP6" => read_addresses::<Ipv6Addr>(rest),
        _ => Err(Error::Line("family")),
    }
}

fn read_addresses<A: FromStr + Into<IpAddr>>(rest: &str) -> Result<Header, Error> {
    let mut parts = rest.split(' ');
    let mut next = || parts.next().ok_or(Error::Line("number of fields"));
    let (source, destination) = (next()?, next()?);
    let (source_port, destination_port) = (next()?, next()?);
    if parts.next().is_some() {
        return Err(Error::Line("number of fields"));
    }
    let address = |text: &str, port: &str| {
        let address: A = text.parse().map_err(|_| Error::Line("address"))?;
        Ok(SocketAddr::new(address.into(), read_port(port)?))
    };
    Ok(Header {
        source: Some(address(source, source_port)?),
        destination: Some(address(destination, destination_port)?),
    })
}

/// Digits only, without a leading zero: `u16::from_str` would also take a plus sign.
fn read_port(text: &str) -> Result<u16, Error> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    if !plain || (text.starts_with('0') && text != "0") {
        return Err(Error::Line("port"));
    }
    text.parse().map_err(|_| Error::Line("port"))
}

pub(super) fn encode(source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
    let (from, to) = (source.ip(), destination.ip());
    let family = match (from, to) {
        (IpAddr::V4(_), IpAddr::V4(_)) => "TCP4",
        (IpAddr::V6(_), IpAddr::V6(_)) => "TCP6",
        _ => return b"PROXY UNKNOWN\r\n".to_vec(),
    };
    let mut line = Vec::with_capacity(MAX_LINE);
    // Writing to a vector can't fail.
    let _ = write!(
        line,
        "PROXY {family} {from} {to} {} {}\r\n",
        source.port(),
        destination.port()
    );
    line
}
