//! Listening sockets, one per worker and address.
//!
//! Options are set here once: accepted sockets inherit them on Linux, which saves
//! five calls per connection.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use nix::{libc, sys::socket::SetSockOpt};
use rustix::net::sockopt;
use socket2::{Domain, Protocol, Socket, Type};

/// An address to listen on.
#[derive(Debug, Clone)]
pub struct Listen {
    /// The address; port zero lets the kernel choose.
    pub address: SocketAddr,
    /// Whether the client speaks first, as in TLS. Then a connection is handed
    /// over only with its first bytes, and one that says nothing costs nothing.
    pub client_speaks_first: bool,
    /// Whether another process of the same user may listen on it too, so that
    /// an old process and its successor overlap.
    pub share: bool,
}

/// A listener could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {}", hint(.source))]
pub struct ListenError {
    /// The address.
    pub address: SocketAddr,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// Listening sockets, as many for each worker as there are addresses.
#[derive(Debug)]
pub struct Listeners {
    pub(crate) addresses: Vec<SocketAddr>,
    /// For each worker, the sockets in the order of the addresses.
    pub(crate) sockets: Vec<Vec<OwnedFd>>,
    /// Second handles of those that a successor may share.
    pub(crate) shared: Vec<OwnedFd>,
    /// How many processes listened on them before, and died.
    pub(crate) restarts: u64,
}

/// Dead peers are found after 30 + 3 × 10 s of silence.
///
/// `TCP_USER_TIMEOUT` is left alone on purpose: it also counts the time in which
/// a living reader keeps its window shut, and would cut a paused `kubectl logs`.
pub(crate) const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
pub(crate) const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
pub(crate) const KEEPALIVE_PROBES: u32 = 3;

/// Connections waiting to be accepted; the kernel caps it at `somaxconn`.
const BACKLOG: i32 = 4096;

/// How long the kernel waits for the first bytes before handing over a
/// connection all the same.
const DEFER_SECONDS: usize = 5;

#[derive(Clone, Copy, Debug)]
pub(crate) struct DeferAccept;
nix::setsockopt_impl!(
    DeferAccept,
    libc::IPPROTO_TCP,
    libc::TCP_DEFER_ACCEPT,
    usize,
    nix::sys::socket::sockopt::SetUsize
);

impl Listen {
    /// A listener for clients that speak first, not shared.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            client_speaks_first: true,
            share: false,
        }
    }
}

// === impl Listeners ===

impl Listeners {
    /// Every socket, worker by worker.
    pub(crate) fn all(&self) -> Vec<BorrowedFd<'_>> {
        self.sockets.iter().flatten().map(AsFd::as_fd).collect()
    }

    /// Takes sockets of a predecessor that were given in the order of [`Listeners::all`]. If
    /// they are not what is wanted they stop listening, as nobody would ever accept from them.
    pub(crate) fn again(kept: Vec<OwnedFd>, listen: &[Listen], workers: usize) -> Option<Self> {
        let wanted = |(place, socket): (usize, &OwnedFd)| {
            let wanted = listen[place % listen.len()].address;
            local_address(socket)
                .is_ok_and(|a| a == wanted || wanted.port() == 0 && a.ip() == wanted.ip())
        };
        let fits = !kept.is_empty() && kept.len() == listen.len() * workers;
        // A predecessor that was about to stop does not listen any more, or takes no queue.
        let listens = |socket| rustix::net::listen(socket, BACKLOG).is_ok();
        if !fits || !kept.iter().enumerate().all(wanted) || !kept.iter().all(listens) {
            kept.iter().for_each(stop_listening);
            return None;
        }
        let mut kept = kept.into_iter();
        let sockets: Vec<Vec<OwnedFd>> = (0..workers)
            .map(|_| kept.by_ref().take(listen.len()).collect())
            .collect();
        let addresses = sockets[0]
            .iter()
            .map(local_address)
            .collect::<Result<_, _>>();
        Some(Self {
            addresses: addresses.ok()?,
            shared: shared(listen, &sockets).ok()?,
            sockets,
            restarts: 0,
        })
    }
}

/// Ends listening for everybody who has a handle of the socket, not only for this one.
pub(crate) fn stop_listening(socket: &OwnedFd) {
    // It fails only for what does not listen any more.
    let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Read);
}

/// Second handles of the listeners that may be shared.
fn shared(listen: &[Listen], sockets: &[Vec<OwnedFd>]) -> io::Result<Vec<OwnedFd>> {
    let mine = sockets
        .iter()
        .flat_map(|sockets| listen.iter().zip(sockets));
    mine.filter(|(listen, _)| listen.share)
        .map(|(_, socket)| socket.try_clone())
        .collect()
}

/// For an error that concerns no address.
pub(crate) fn nowhere() -> SocketAddr {
    ([0, 0, 0, 0], 0).into()
}

pub(crate) fn bind_all(listen: &[Listen], workers: usize) -> Result<Listeners, ListenError> {
    let mut bound = Listeners {
        addresses: Vec::new(),
        sockets: (0..workers).map(|_| Vec::new()).collect(),
        shared: Vec::new(),
        restarts: 0,
    };
    for wanted in listen {
        let failed = |source| ListenError {
            address: wanted.address,
            source,
        };
        let mut address = wanted.address;
        if !wanted.share {
            // SO_REUSEPORT below would let a second process of this user in
            // silently; without it the kernel tells when the address is taken.
            address = probe(address).map_err(failed)?;
        }
        for sockets in &mut bound.sockets {
            let socket = bind(wanted, address).map_err(failed)?;
            address = local_address(&socket).map_err(failed)?;
            sockets.push(socket);
        }
        bound.addresses.push(address);
    }
    bound.shared = shared(listen, &bound.sockets).map_err(|source| ListenError {
        address: bound.addresses.first().copied().unwrap_or_else(nowhere),
        source,
    })?;
    Ok(bound)
}

fn probe(address: SocketAddr) -> io::Result<SocketAddr> {
    TcpListener::bind(address)?.local_addr()
}

fn bind(wanted: &Listen, address: SocketAddr) -> io::Result<OwnedFd> {
    let kind = Type::STREAM.nonblocking().cloexec();
    let socket = Socket::new(Domain::for_address(address), kind, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    if address.is_ipv6() {
        // [::] serves IPv4 too, whatever the system's default is.
        socket.set_only_v6(false)?;
    }
    socket.set_tcp_nodelay(true)?;
    let socket = OwnedFd::from(socket);
    keep_alive(&socket)?;
    let socket = Socket::from(socket);
    if wanted.client_speaks_first {
        DeferAccept
            .set(&socket, &DEFER_SECONDS)
            .map_err(io::Error::from)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Makes the kernel look for dead peers on this socket.
pub(crate) fn keep_alive(socket: &OwnedFd) -> io::Result<()> {
    sockopt::set_tcp_keepidle(socket, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(socket, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(socket, KEEPALIVE_PROBES)?;
    sockopt::set_socket_keepalive(socket, true)?;
    Ok(())
}

fn local_address(socket: &OwnedFd) -> io::Result<SocketAddr> {
    let address = rustix::net::getsockname(socket)?;
    SocketAddr::try_from(address).map_err(io::Error::from)
}

fn hint(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another process listens there already; stop it or choose another port".into()
        }
        io::ErrorKind::PermissionDenied => {
            "not permitted; ports below 1024 need CAP_NET_BIND_SERVICE".into()
        }
        io::ErrorKind::AddrNotAvailable => "this machine does not have that address".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpStream};

    use super::*;

    fn loopback() -> SocketAddr {
        (Ipv4Addr::LOCALHOST, 0).into()
    }

    #[test]
    fn all_workers_listen_on_the_same_port() {
        let bound = bind_all(&[Listen::new(loopback())], 3).unwrap();
        for sockets in &bound.sockets {
            assert_eq!(local_address(&sockets[0]).unwrap(), bound.addresses[0]);
        }
    }

    #[test]
    fn an_address_in_use_is_told_in_a_sentence() {
        let first = bind_all(&[Listen::new(loopback())], 1).unwrap();
        let again = Listen::new(first.addresses[0]);
        let error = bind_all(std::slice::from_ref(&again), 1)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("another process listens there already"),
            "{error}"
        );
    }

    #[test]
    fn what_a_predecessor_stopped_listening_on_listens_again() {
        let bound = bind_all(&[Listen::new(loopback())], 2).unwrap();
        let address = bound.addresses[0];
        let kept: Vec<OwnedFd> = bound.sockets.into_iter().flatten().collect();
        kept.iter().for_each(stop_listening);
        assert!(TcpStream::connect(address).is_err());
        let again = Listeners::again(kept, &[Listen::new(address)], 2);
        assert!(TcpStream::connect(address).is_ok());
        drop(again);
    }

    #[test]
    fn a_shared_address_may_be_bound_by_a_successor() {
        let wanted = Listen {
            share: true,
            ..Listen::new(loopback())
        };
        let first = bind_all(&[wanted], 1).unwrap();
        let again = Listen {
            share: true,
            ..Listen::new(first.addresses[0])
        };
        assert!(bind_all(&[again], 1).is_ok());
    }
}
