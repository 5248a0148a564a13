//! Connecting to the server: address after address, until one answers.

use std::{io, net::SocketAddr, os::fd::OwnedFd};

use rustix::{
    event::epoll::EventFlags,
    io::Errno,
    net::{
        AddressFamily, SendFlags, SocketFlags, SocketType, connect, ipproto, send, socket_with,
        sockopt,
    },
};

use super::{Flow, Interest, Leg, Phase, Program, Session, Side, Token, Worker, counters};
use crate::program::{DialFailure, Next};

/// How far a connect came at once.
enum Started {
    Connecting,
    Connected,
}

/// Sends the first bytes (what is queued, else what a plain client said) to a server on this
/// machine without waiting for word from epoll: there a connect is done when the call returns,
/// and a thread that need not sleep need not be woken. Elsewhere the send would be in vain.
fn speak_at_once<S>(
    fd: &OwnedFd,
    address: SocketAddr,
    session: &mut Session<S>,
) -> rustix::io::Result<Started> {
    let header = !session.server.out.is_empty();
    let first = if header {
        &session.server.out
    } else {
        &session.client.held
    };
    if !(header || session.plain()) || first.is_empty() || !address.ip().is_loopback() {
        return Ok(Started::Connecting);
    }
    let sent = match send(fd, first, SendFlags::NOSIGNAL) {
        Ok(sent) => sent,
        Err(Errno::AGAIN | Errno::INTR) => return Ok(Started::Connecting),
        Err(error) => return Err(error),
    };
    let rest = first.get(sent..).unwrap_or_default().to_vec();
    if !header {
        session.client.received += first.len() as u64;
        session.spoken = true;
    }
    session.server.out = rest;
    Ok(Started::Connected)
}

impl<P: Program> Worker<P> {
    /// Asks the program for an address until one can be tried.
    pub(super) fn dial(
        &mut self,
        token: Token,
        session: &mut Session<P::Session>,
        mut failure: Option<DialFailure>,
    ) -> Flow {
        loop {
            if failure.is_some() {
                counters::add(&self.shared.counters.dial_failures, 1);
            }
            let cx = self
                .place
                .context(session.origin, session.client.fd.as_ref(), token);
            match self
                .shared
                .program
                .dial(&cx, &mut session.program, failure.as_ref())
            {
                Next::GiveUp(refusal) => return self.refuse(session, &refusal),
                Next::Wait => {
                    session.phase = Phase::Wait;
                    self.set_deadline(token, session, self.config.handshake_timeout);
                    return self.watch(token, session);
                }
                Next::Connect(address) => match self.start_connect(token, session, address) {
                    Ok(Started::Connecting) => return self.watch(token, session),
                    Ok(Started::Connected) => return self.established(token, session),
                    Err(error) => {
                        failure = Some(DialFailure {
                            address,
                            error,
                            accepted: false,
                        });
                    }
                },
            }
        }
    }

    fn start_connect(
        &mut self,
        token: Token,
        session: &mut Session<P::Session>,
        address: SocketAddr,
    ) -> io::Result<Started> {
        let fd = self.server_socket(address)?;
        let started = sockopt::set_tcp_nodelay(&fd, true)
            .and_then(|()| match connect(&fd, &address) {
                Err(Errno::INPROGRESS) => Ok(()),
                other => other,
            })
            .and_then(|()| speak_at_once(&fd, address, session))
            .and_then(|started| {
                let interest = match started {
                    Started::Connecting => Interest::BOTH,
                    Started::Connected => Interest::READ,
                };
                session.server.interest = Some(interest);
                let token = token.with_side(Side::Server);
                self.poller.add(&fd, token, interest).map(|()| started)
            });
        if started.is_err() {
            self.shared.descriptors.close(1);
            session.spoken = false;
            session.client.received = 0;
        }
        let started = started?;
        session.server.fd = Some(fd);
        session.address = address;
        session.phase = Phase::Dial;
        self.set_deadline(token, session, self.config.connect_timeout);
        Ok(started)
    }

    /// A socket, if need be at the cost of a client that has said nothing yet.
    fn server_socket(&mut self, address: SocketAddr) -> io::Result<OwnedFd> {
        let family = if address.is_ipv4() {
            AddressFamily::INET
        } else {
            AddressFamily::INET6
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let mut error = Errno::MFILE;
        for _ in 0..2 {
            if self.shared.descriptors.try_open() {
                match socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP)) {
                    Ok(fd) => return Ok(fd),
                    Err(reason) => error = reason,
                }
                self.shared.descriptors.close(1);
            }
            if !matches!(error, Errno::MFILE | Errno::NFILE) || !self.evict() {
                break;
            }
        }
        Err(error.into())
    }

    /// Epoll said something about the socket being connected.
    pub(super) fn dialled(
        &mut self,
        token: Token,
        session: &mut Session<P::Session>,
        flags: EventFlags,
    ) -> Flow {
        if flags.intersects(EventFlags::ERR | EventFlags::HUP) {
            let error = session.server.fd.as_ref().map(sockopt::socket_error);
            let error = match error {
                Some(Ok(Err(error)) | Err(error)) => error,
                _ => Errno::CONNREFUSED,
            };
            return self.dial_failed(token, session, error.into());
        }
        if !flags.contains(EventFlags::OUT) {
            return Flow::Keep;
        }
        self.established(token, session)
    }

    /// The server accepted.
    fn established(&mut self, token: Token, session: &mut Session<P::Session>) -> Flow {
        session.phase = Phase::Shake;
        session.server.writable = true;
        // What was sent at once.
        self.count(session, (0, 0));
        let cx = self
            .place
            .context(session.origin, session.client.fd.as_ref(), token);
        self.shared.program.connected(&cx, &mut session.program);
        if !session.plain() {
            // The entry set for connecting finds this later one.
            session.deadline = self
                .wheel
                .tick(self.place.now + self.config.handshake_timeout);
        }
        self.drive(token, session)
    }

    pub(super) fn dial_timeout(&mut self, token: Token, session: &mut Session<P::Session>) -> Flow {
        self.dial_failed(token, session, io::ErrorKind::TimedOut.into())
    }

    fn dial_failed(
        &mut self,
        token: Token,
        session: &mut Session<P::Session>,
        error: io::Error,
    ) -> Flow {
        // What is queued has not been sent, and serves the next.
        let out = std::mem::take(&mut session.server.out);
        self.dial_next(token, session, out, error, false)
    }

    /// The server closed before its first byte. Dials another if the program knows one.
    pub(super) fn dial_another(
        &mut self,
        token: Token,
        session: &mut Session<P::Session>,
    ) -> Option<Flow> {
        let cx = self
            .place
            .context(session.origin, session.client.fd.as_ref(), token);
        let Some(prefix) = self.shared.program.another(&cx, &session.program) else {
            session.spoken = false;
            session.client.held = Vec::new();
            return None;
        };
        session.spoken = false;
        session.kept_alive = false;
        session.end = None;
        session.client.received = 0;
        let error = io::ErrorKind::UnexpectedEof.into();
        Some(self.dial_next(token, session, prefix, error, true))
    }

    /// Leaves the address and asks for the next, which gets `out` first.
    fn dial_next(
        &mut self,
        token: Token,
        session: &mut Session<P::Session>,
        out: Vec<u8>,
        error: io::Error,
        accepted: bool,
    ) -> Flow {
        let old = std::mem::take(&mut session.server);
        session.server = Leg {
            out,
            transform: old.transform,
            ..Leg::default()
        };
        drop(old.fd);
        self.shared.descriptors.close(1);
        let failure = DialFailure {
            address: session.address,
            error,
            accepted,
        };
        self.dial(token, session, Some(failure))
    }

    /// Another thread says that there may be an address now.
    pub(super) fn wake(&mut self, token: Token) {
        let Some(mut session) = self.sessions.take(token) else {
            return;
        };
        let flow = match session.phase {
            Phase::Wait => self.dial(token, &mut session, None),
            Phase::Peek | Phase::Dial | Phase::Shake | Phase::Relay | Phase::Linger => Flow::Keep,
        };
        self.settle(token, session, flow);
    }

    /// The server's handshake is done; the program builds the client's side.
    pub(super) fn server_ready(
        &mut self,
        token: Token,
        session: &mut Session<P::Session>,
    ) -> Result<(), Flow> {
        let Some(server) = session.server.transform.take() else {
            return Ok(());
        };
        let cx = self
            .place
            .context(session.origin, session.client.fd.as_ref(), token);
        let made = self
            .shared
            .program
            .server_ready(&cx, &mut session.program, server.as_ref());
        session.server.transform = Some(server);
        session.later = false;
        match made {
            Ok(transform) => {
                session.client.transform = Some(transform);
                self.feed_client(session)
                    .map_err(|end| self.linger(session, &[], end))
            }
            Err(refusal) => Err(self.refuse(session, &refusal)),
        }
    }
}
