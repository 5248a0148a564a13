//! Names into addresses. A trait, so that tests can have names of their own.

use std::{
    io,
    net::{SocketAddr, TcpStream, ToSocketAddrs},
    time::Duration,
};

/// How long an address that failed before may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Something that knows names. May block.
pub trait Resolve: Send {
    /// All addresses of `name`, best first.
    fn resolve(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>>;

    /// Whether something listens at an address that did not answer before.
    fn answers(&self, address: SocketAddr) -> bool {
        TcpStream::connect_timeout(&address, PATIENCE).is_ok()
    }
}

/// What the node itself believes: `/etc/hosts`, then the servers in `/etc/resolv.conf`. Both are
/// read anew each time, so a change of them is seen.
#[derive(Debug, Clone, Copy, Default)]
pub struct System;

impl Resolve for System {
    fn resolve(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok((name, port).to_socket_addrs()?.collect())
    }
}
