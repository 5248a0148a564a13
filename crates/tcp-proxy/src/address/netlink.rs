//! The part of rtnetlink that is needed: add and remove an address, hear of removed ones.

use std::{io, net::IpAddr, os::fd::OwnedFd};

use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, netdevice,
        netlink::SocketAddrNetlink, recv, send, socket_with,
    },
};

/// A netlink socket.
#[derive(Debug)]
pub(super) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
    loopback: u32,
}

/// What to do with an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Add,
    Remove,
}

const NEW_ADDRESS: u16 = 20;
const DELETE_ADDRESS: u16 = 21;
const MESSAGE_ERROR: u16 = 2;
const REQUEST: u16 = 0x1;
const ACKNOWLEDGE: u16 = 0x4;
const EXCLUSIVE: u16 = 0x200;
const CREATE: u16 = 0x400;
const ATTRIBUTE_ADDRESS: u16 = 1;
const ATTRIBUTE_LOCAL: u16 = 2;
/// Valid on this host only: never chosen as the source of anything that leaves it.
const SCOPE_HOST: u8 = 254;
const FAMILY_V4: u8 = 2;
const FAMILY_V6: u8 = 10;
/// The groups that hear of IPv4 and of IPv6 addresses.
const ADDRESS_GROUPS: u32 = 0x10 | 0x100;
const HEADER: usize = 16;
const ADDRESS_HEADER: usize = 8;

impl Netlink {
    /// For changes.
    pub(super) fn new() -> io::Result<Self> {
        Self::with_groups(0)
    }

    /// For hearing of changes.
    pub(super) fn listen() -> io::Result<Self> {
        Self::with_groups(ADDRESS_GROUPS)
    }

    fn with_groups(groups: u32) -> io::Result<Self> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            // Protocol zero is rtnetlink.
            None,
        )?;
        bind(&socket, &SocketAddrNetlink::new(0, groups))?;
        let inet = socket_with(
            AddressFamily::INET,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let loopback = netdevice::name_to_index(&inet, "lo")?;
        Ok(Self {
            socket,
            sequence: 0,
            loopback,
        })
    }

    /// Makes one change and waits for the kernel's answer.
    pub(super) fn change(&mut self, change: Change, address: IpAddr) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let message = request(change, address, self.loopback, self.sequence);
        send(&self.socket, &message, SendFlags::empty())?;
        let mut buffer = [0; 4096];
        loop {
            let (len, _) = recv(&self.socket, &mut buffer[..], RecvFlags::empty())?;
            for (kind, sequence, body) in messages(buffer.get(..len).unwrap_or_default()) {
                if kind == MESSAGE_ERROR && sequence == self.sequence {
                    return answer(body);
                }
            }
        }
    }

    /// Blocks until an address was removed from `lo`. None: some may have been, but too much
    /// happened at once to tell which.
    pub(super) fn next_removed(&self) -> io::Result<Option<IpAddr>> {
        let mut buffer = [0; 8192];
        loop {
            let len = match recv(&self.socket, &mut buffer[..], RecvFlags::empty()) {
                Ok((len, _)) => len,
                Err(Errno::NOBUFS) => return Ok(None),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            for (kind, _, body) in messages(buffer.get(..len).unwrap_or_default()) {
                if kind == DELETE_ADDRESS
                    && let Some((interface, address)) = changed_address(body)
                    && interface == self.loopback
                {
                    return Ok(Some(address));
                }
            }
        }
    }
}

fn request(change: Change, address: IpAddr, interface: u32, sequence: u32) -> Vec<u8> {
    let (kind, flags) = match change {
        Change::Add => (NEW_ADDRESS, REQUEST | ACKNOWLEDGE | CREATE | EXCLUSIVE),
        Change::Remove => (DELETE_ADDRESS, REQUEST | ACKNOWLEDGE),
    };
    let (family, octets) = match address {
        IpAddr::V4(address) => (FAMILY_V4, address.octets().to_vec()),
        IpAddr::V6(address) => (FAMILY_V6, address.octets().to_vec()),
    };
    // All of it: the network has one member.
    let prefix = u8::try_from(octets.len() * 8).unwrap_or(u8::MAX);
    let mut body = vec![family, prefix, 0, SCOPE_HOST];
    body.extend(interface.to_ne_bytes());
    for kind in [ATTRIBUTE_LOCAL, ATTRIBUTE_ADDRESS] {
        let len = u16::try_from(4 + octets.len()).unwrap_or(u16::MAX);
        body.extend(len.to_ne_bytes());
        body.extend(kind.to_ne_bytes());
        body.extend_from_slice(&octets);
    }
    let mut message = Vec::with_capacity(HEADER + body.len());
    message.extend(
        u32::try_from(HEADER + body.len())
            .unwrap_or(u32::MAX)
            .to_ne_bytes(),
    );
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend(sequence.to_ne_bytes());
    message.extend(0_u32.to_ne_bytes());
    message.extend(body);
    message
}

/// The messages in one datagram: kind, sequence, body.
fn messages(mut datagram: &[u8]) -> impl Iterator<Item = (u16, u32, &[u8])> {
    std::iter::from_fn(move || {
        let len = usize::try_from(u32_at(datagram, 0)?).ok()?;
        let message = datagram
            .get(..len)
            .filter(|message| message.len() >= HEADER)?;
        datagram = datagram.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((
            u16_at(message, 4)?,
            u32_at(message, 8)?,
            message.get(HEADER..)?,
        ))
    })
}

/// The kernel's answer: an error number, negated, or zero.
fn answer(body: &[u8]) -> io::Result<()> {
    let code = u32_at(body, 0).map_or(0, u32::cast_signed);
    match code {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(-code)),
    }
}

/// The interface and the address in a message about an address.
fn changed_address(body: &[u8]) -> Option<(u32, IpAddr)> {
    let interface = u32_at(body, 4)?;
    let mut attributes = body.get(ADDRESS_HEADER..)?;
    let mut found = None;
    while let (Some(len), Some(kind)) = (u16_at(attributes, 0), u16_at(attributes, 2)) {
        let len = usize::from(len);
        let value = attributes.get(4..len)?;
        let address = <[u8; 4]>::try_from(value)
            .map(IpAddr::from)
            .or_else(|_| <[u8; 16]>::try_from(value).map(IpAddr::from))
            .ok();
        // On a point-to-point interface the two differ, and the local one is the host's.
        match kind {
            ATTRIBUTE_LOCAL => found = address.or(found),
            ATTRIBUTE_ADDRESS => found = found.or(address),
            _ => {}
        }
        attributes = attributes
            .get(len.next_multiple_of(4)..)
            .unwrap_or_default();
    }
    found.map(|address| (interface, address))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_what_would_be_heard() {
        for address in ["240.0.0.1", "fd00::1"] {
            let address: IpAddr = address.parse().unwrap();
            let message = request(Change::Remove, address, 1, 7);
            let all: Vec<_> = messages(&message).collect();
            assert_eq!(all.len(), 1);
            let (kind, sequence, body) = all[0];
            assert_eq!((kind, sequence), (DELETE_ADDRESS, 7));
            assert_eq!(changed_address(body), Some((1, address)));
        }
    }

    #[test]
    fn datagrams_cut_anywhere_are_read_as_far_as_they_go() {
        let address: IpAddr = "240.0.0.1".parse().unwrap();
        let mut datagram = request(Change::Add, address, 1, 1);
        datagram.extend(request(Change::Remove, address, 1, 2));
        assert_eq!(messages(&datagram).count(), 2);
        for end in 0..datagram.len() {
            for (_, _, body) in messages(&datagram[..end]) {
                let _ = changed_address(body);
            }
        }
        // A length of zero ends it.
        assert_eq!(messages(&[0; 64]).count(), 0);
    }

    #[test]
    fn the_kernels_answer_is_an_error_number() {
        assert!(answer(&0_i32.to_ne_bytes()).is_ok());
        let exists = answer(&(-17_i32).to_ne_bytes()).unwrap_err();
        assert_eq!(exists.kind(), io::ErrorKind::AlreadyExists);
    }
}
