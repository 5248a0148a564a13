//! One proxied connection: two legs and what is known about them.
//!
//! Holds state only. [`crate::relay`] moves the bytes, [`crate::worker`] decides
//! when. An idle session holds no buffer and no pipe.

use std::{net::SocketAddr, os::fd::OwnedFd, time::Instant};

use rustix::{
    io::Errno,
    net::{SendFlags, send},
    pipe::{SpliceFlags, splice},
};

use crate::{
    pipes::{Pipe, Pipes},
    poller::Interest,
    program::End,
    slab::Side,
    transform::Transform,
    wheel::Tick,
};

/// A connection from accept to close.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about a connection, and most of them meet"
)]
#[derive(Debug)]
pub(crate) struct Session<S> {
    /// What the program remembers.
    pub(crate) program: S,
    pub(crate) client: Leg,
    pub(crate) server: Leg,
    pub(crate) origin: Origin,
    /// The address being dialled.
    pub(crate) address: SocketAddr,
    pub(crate) started: Instant,
    pub(crate) deadline: Tick,
    pub(crate) phase: Phase,
    /// The client's transform comes when the server's handshake is done.
    pub(crate) later: bool,
    /// The server was given what the client holds; it is kept for another server, in case
    /// this one closes without an answer.
    pub(crate) spoken: bool,
    /// Whether the server's socket looks for a dead peer already.
    pub(crate) kept_alive: bool,
    /// Whether the session waits in the worker's list of unfinished work.
    pub(crate) queued: bool,
    /// Bytes read of a client that was refused.
    pub(crate) lingered: usize,
    /// Bytes held for it when they were last counted.
    pub(crate) buffered: u64,
    /// Whether something happened since.
    pub(crate) stirred: bool,
    /// The first thing that went wrong.
    pub(crate) end: Option<Box<End>>,
}

/// Where a session came from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) peer: SocketAddr,
    pub(crate) listener: u8,
}

/// Where a session is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Reading what the program wants to see.
    Peek,
    /// No address yet.
    Wait,
    /// Connecting to an address.
    Dial,
    /// Connected; handshakes may still run.
    Shake,
    /// Both legs can carry bytes.
    Relay,
    /// Refused; waiting for the client to read the reply.
    Linger,
}

/// One side of a session.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about a socket, and most of them meet"
)]
#[derive(Debug, Default)]
pub(crate) struct Leg {
    pub(crate) fd: Option<OwnedFd>,
    pub(crate) transform: Option<Box<dyn Transform>>,
    /// Bytes for this leg's socket that it did not take yet.
    pub(crate) out: Vec<u8>,
    /// The same, spliced. Comes after `out`.
    pub(crate) pipe: Option<Pipe>,
    /// Bytes from this leg that the other can't take before the handshakes are
    /// done: raw ones until a transform is there, plaintext afterwards.
    pub(crate) held: Vec<u8>,
    /// Payload bytes that came from this leg.
    pub(crate) received: u64,
    /// What epoll watches; `None` if not registered.
    pub(crate) interest: Option<Interest>,
    /// There may be something to read.
    pub(crate) readable: bool,
    /// There may be room to write.
    pub(crate) writable: bool,
    /// The peer finished sending, and everything it sent is in our queue.
    pub(crate) ended: bool,
    /// Short reads prove nothing here: an error or urgent data waits.
    pub(crate) odd: bool,
    /// All of the peer's bytes have been taken.
    pub(crate) eof: bool,
    /// Nothing more can be written.
    pub(crate) broken: bool,
    /// The transform has said goodbye, or must not.
    pub(crate) notified: bool,
    /// The end of the stream has been passed on to this peer.
    pub(crate) shut: bool,
    /// Bytes from this leg are worth splicing.
    pub(crate) splicing: bool,
    /// Large (before) or small (while splicing) reads in a row.
    pub(crate) streak: u8,
}

// === impl Session ===

impl<S> Session<S> {
    pub(crate) fn leg(&mut self, side: Side) -> &mut Leg {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// The leg that bytes come from, and the one they go to.
    pub(crate) fn pair(&mut self, from: Side) -> (&mut Leg, &mut Leg) {
        match from {
            Side::Client => (&mut self.client, &mut self.server),
            Side::Server => (&mut self.server, &mut self.client),
        }
    }

    /// Whether the server is connected.
    pub(crate) fn connected(&self) -> bool {
        matches!(self.phase, Phase::Shake | Phase::Relay)
    }

    /// Whether one side has finished while the other may go on.
    pub(crate) fn half_closed(&self) -> bool {
        self.phase == Phase::Relay && (self.client.eof || self.server.eof)
    }

    /// Whether both legs can carry payload.
    pub(crate) fn ready(&self) -> bool {
        self.connected() && !self.later && self.client.ready() && self.server.ready()
    }

    /// Whether `side`'s socket should be read now: for its handshake, or because
    /// the other side can take what comes.
    pub(crate) fn wants(&self, side: Side) -> bool {
        let (from, to, up) = match side {
            Side::Client => (&self.client, &self.server, !self.later),
            Side::Server => (&self.server, &self.client, self.connected()),
        };
        if from.eof || !up {
            return false;
        }
        match self.phase {
            Phase::Peek | Phase::Linger => side == Side::Client,
            Phase::Wait | Phase::Dial | Phase::Shake => !from.ready() && from.out.is_empty(),
            Phase::Relay => to.clear() && !to.broken,
        }
    }

    /// Whether both legs are only relayed.
    pub(crate) fn plain(&self) -> bool {
        !self.later && self.client.transform.is_none() && self.server.transform.is_none()
    }

    /// Whether the server closed before its first byte, and another could be told all that
    /// this one was.
    pub(crate) fn unanswered(&self) -> bool {
        self.spoken && self.server.eof && !self.client.broken
    }

    /// Lets go of what was kept for another server, once this one answered or the client
    /// said more.
    pub(crate) fn settle_on_server(&mut self) {
        let more = self.client.received > self.client.held.len() as u64;
        if self.spoken && (self.server.received > 0 || more) {
            self.spoken = false;
            self.client.held = Vec::new();
        }
    }

    /// Whether what is queued for `side` should wait: its handshake is done, the other one is
    /// not, and so its last words can go with the first payload.
    pub(crate) fn holds_back(&self, side: Side) -> bool {
        let leg = match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        };
        let shaking = matches!(self.phase, Phase::Wait | Phase::Dial | Phase::Shake);
        shaking && leg.transform.is_some() && leg.ready()
    }

    /// Notes why the session will end, unless something went wrong before.
    pub(crate) fn blame(&mut self, end: End) {
        self.end.get_or_insert_with(|| Box::new(end));
    }
}

// === impl Leg ===

impl Leg {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Self {
            fd: Some(fd),
            writable: true,
            ..Self::default()
        }
    }

    /// Whether payload can pass this leg's transform.
    pub(crate) fn ready(&self) -> bool {
        self.transform
            .as_ref()
            .is_none_or(|transform| transform.ready())
    }

    /// Whether nothing waits to be written.
    pub(crate) fn clear(&self) -> bool {
        self.out.is_empty() && self.pipe.is_none()
    }

    /// Whether something waits for room in the socket.
    pub(crate) fn blocked(&self) -> bool {
        !self.clear() && !self.writable
    }

    /// Writes what the socket takes and keeps the rest.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        if self.broken || bytes.is_empty() {
            return;
        }
        let taken = if self.out.is_empty() && self.writable {
            self.send(bytes)
        } else {
            0
        };
        if !self.broken {
            self.out.extend_from_slice(&bytes[taken..]);
        }
    }

    /// Writes what is kept, as far as the socket takes it.
    pub(crate) fn flush(&mut self, pipes: &mut Pipes) {
        if !self.out.is_empty() && self.writable {
            let out = std::mem::take(&mut self.out);
            let taken = self.send(&out);
            if taken < out.len() && !self.broken {
                self.out = out;
                self.out.drain(..taken);
            }
        }
        if self.out.is_empty() && self.writable && self.pipe.is_some() {
            self.flush_pipe(pipes);
        }
        if self.broken {
            self.out = Vec::new();
            if let Some(pipe) = self.pipe.take() {
                pipes.put(pipe);
            }
        }
    }

    /// Splices what is in the pipe to the socket.
    pub(crate) fn flush_pipe(&mut self, pipes: &mut Pipes) {
        let (Some(fd), Some(mut pipe)) = (&self.fd, self.pipe.take()) else {
            return;
        };
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        while pipe.filled > 0 {
            match splice(&pipe.read, None, fd, None, pipe.filled, flags) {
                Ok(sent) => pipe.filled = pipe.filled.saturating_sub(sent),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.writable = false;
                    break;
                }
                Err(_) => {
                    self.broken = true;
                    break;
                }
            }
        }
        if pipe.filled == 0 || self.broken {
            pipes.put(pipe);
        } else {
            self.pipe = Some(pipe);
        }
    }

    /// One send; returns how much was taken.
    fn send(&mut self, bytes: &[u8]) -> usize {
        let Some(fd) = &self.fd else { return 0 };
        loop {
            match send(fd, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    self.writable = sent == bytes.len();
                    return sent;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.writable = false;
                    return 0;
                }
                Err(_) => {
                    self.broken = true;
                    return 0;
                }
            }
        }
    }
}
