//! The questions the engine asks a program about each connection.
//!
//! The engine owns sockets, buffers, deadlines and the relay; a [`Program`]
//! (gateway, gate, tcp-proxy) owns the decisions. Every method runs on a worker
//! thread between two system calls, so none of them may block: no name lookup,
//! no file, no lock that another thread holds for long. What takes time is done
//! elsewhere and announced with a [`Waker`].
//!
//! The order of calls for one connection is
//! `accept` → `peek`* → `dial`+ → `connected` → (`server_ready`) → `moved`* → `finished`,
//! with one way back: `connected` → (`another`) → `dial`.

use std::{
    borrow::Cow,
    fmt, io,
    net::SocketAddr,
    os::fd::BorrowedFd,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    inbox::{Inbox, Waker},
    transform::Transform,
};

/// What a data-plane program decides; shared by all workers.
pub trait Program: Send + Sync + 'static {
    /// What the program remembers about one connection, such as the route it
    /// took. Lives in the engine, so keep it small: it is most of the memory of
    /// an idle connection.
    type Session: Send + 'static;

    /// A client connected. The program says whether its first bytes matter.
    fn accept(
        &self,
        cx: &Context<'_>,
        peer: SocketAddr,
    ) -> Result<Accepted<Self::Session>, Refusal>;

    /// The client sent bytes. `bytes` is everything received so far and
    /// `bytes[seen..]` is new since the last call, so that a parser with its own
    /// state never looks at a byte twice.
    ///
    /// Called only after [`First::Peek`]; at most [`PEEK_LIMIT`] bytes are kept.
    fn peek(
        &self,
        cx: &Context<'_>,
        session: &mut Self::Session,
        bytes: &[u8],
        seen: usize,
    ) -> Peek;

    /// Where to connect now: asked first without a failure, then again after
    /// every address that did not answer, until it gives up.
    fn dial(
        &self,
        cx: &Context<'_>,
        session: &mut Self::Session,
        failure: Option<&DialFailure>,
    ) -> Next;

    /// The address given last accepted the connection.
    fn connected(&self, _cx: &Context<'_>, _session: &mut Self::Session) {}

    /// A server that is only relayed to closed before its first byte: it was about to stop
    /// when it accepted. If what the client said so far may be said to another server, the
    /// answer is what that one gets before it (a PROXY header, or nothing), and `dial` is
    /// asked where. `None` passes the end on to the client.
    fn another(&self, _cx: &Context<'_>, _session: &Self::Session) -> Option<Vec<u8>> {
        None
    }

    /// The server leg's handshake is done and the client leg is
    /// [`ClientLeg::Later`]: now the program knows enough (the server's ALPN
    /// choice) to build the client's side.
    fn server_ready(
        &self,
        _cx: &Context<'_>,
        _session: &mut Self::Session,
        _server: &dyn Transform,
    ) -> Result<Box<dyn Transform>, Refusal> {
        Err(Refusal::silent("no client side configured"))
    }

    /// Payload bytes were moved. Called after each batch, so that long-lived
    /// connections show in the counters while they live.
    fn moved(&self, _session: &Self::Session, _to_server: u64, _to_client: u64) {}

    /// Whom the connection is for: sessions with the same number are held against one another
    /// when buffers take too much memory.
    fn owner(&self, _session: &Self::Session) -> usize {
        0
    }

    /// The connection is over. Called exactly once for every `accept` that
    /// returned `Ok`; the sockets are already closed.
    fn finished(&self, cx: &Context<'_>, session: Self::Session, summary: &Summary);

    /// A client never became a session: `accept` refused it, or the engine
    /// dropped it because no descriptor was left.
    fn turned_away(&self, _peer: SocketAddr, _reason: &'static str) {}
}

/// The most bytes of a client kept while the program peeks. A `ClientHello`
/// cannot exceed 64 KiB by much and real ones stay below 4 KiB; the PROXY header
/// before it is at most 536 bytes (v2 with TLVs may say more: refused).
pub const PEEK_LIMIT: usize = 66 * 1024;

/// Circumstances of a call: time, thread, and the client's socket.
#[derive(Debug)]
pub struct Context<'a> {
    pub(crate) now: Instant,
    pub(crate) worker: usize,
    pub(crate) listener: usize,
    pub(crate) peer: SocketAddr,
    pub(crate) client: Option<BorrowedFd<'a>>,
    pub(crate) inbox: &'a Arc<Inbox>,
    pub(crate) session: u64,
}

/// Answer to [`Program::accept`].
#[derive(Debug)]
pub struct Accepted<S> {
    /// Kept by the engine until `finished`.
    pub session: S,
    /// What to do first.
    pub first: First,
}

/// What a new connection does first.
#[derive(Debug)]
pub enum First {
    /// Read from the client and ask [`Program::peek`].
    Peek,
    /// Connect at once; nothing of the client has been read.
    Dial(Box<Route>),
}

/// Answer to [`Program::peek`].
#[derive(Debug)]
pub enum Peek {
    /// Not enough bytes yet.
    More,
    /// Decided: connect and relay.
    Dial(Box<Route>),
    /// Say `reply` to the client, then close.
    Refuse(Refusal),
}

/// How a decided connection is relayed. [`Route::default`] is plain passthrough.
#[derive(Debug, Default)]
pub struct Route {
    /// Bytes at the start of what the client sent that are not part of the
    /// stream (a PROXY header that was read and must not be passed on).
    pub skip: usize,
    /// Bytes the server gets first, raw, before any transform (a PROXY header).
    pub prefix: Vec<u8>,
    /// The client's side.
    pub client: ClientLeg,
    /// The server's side; `None` is plain.
    pub server: Option<Box<dyn Transform>>,
}

/// What sits between the client's socket and the relay.
#[derive(Debug, Default)]
pub enum ClientLeg {
    /// Nothing: bytes pass as they are.
    #[default]
    Plain,
    /// TLS ends here. It is given the bytes peeked so far (after
    /// [`Route::skip`]) and shakes hands while the server is being dialled.
    Tls(Box<dyn Transform>),
    /// TLS ends here, but the program can say how only when the server's
    /// handshake is done: see [`Program::server_ready`]. The client is not read
    /// until then.
    Later,
}

/// Answer to [`Program::dial`].
#[derive(Debug)]
pub enum Next {
    /// Connect to this address.
    Connect(SocketAddr),
    /// Nothing to connect to yet: ask again when the waker is used (or until the
    /// handshake deadline).
    Wait,
    /// No address is left.
    GiveUp(Refusal),
}

/// Why an address given by [`Program::dial`] was not used.
#[derive(Debug)]
pub struct DialFailure {
    /// The address.
    pub address: SocketAddr,
    /// The error; a connect that took too long is [`io::ErrorKind::TimedOut`].
    pub error: io::Error,
    /// Whether it accepted the connection, and then closed it without a word.
    pub accepted: bool,
}

/// A refusal: what the client is told and what the log and the metric say.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// Bytes for the client, such as a TLS alert.
    pub reply: Cow<'static, [u8]>,
    /// A constant, snake-case word, good as a metric label.
    pub reason: &'static str,
}

/// What happened to a connection.
#[derive(Debug)]
pub struct Summary {
    /// The client's address as the kernel gave it (not from a PROXY header).
    pub peer: SocketAddr,
    /// Payload bytes from the client to the server.
    pub to_server: u64,
    /// Payload bytes from the server to the client.
    pub to_client: u64,
    /// From accept to close.
    pub lasted: Duration,
    /// How it ended.
    pub end: End,
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Both sides finished.
    Closed,
    /// The program refused it, for this reason.
    Refused(&'static str),
    /// The client went away before the program decided.
    ClientGone,
    /// The client's first bytes did not come in time.
    HelloTimeout,
    /// The client sent more than [`PEEK_LIMIT`] without a decision.
    HelloTooLong,
    /// The handshake (connect included) did not finish in time.
    HandshakeTimeout,
    /// One side had finished, and no byte came from the other in time.
    HalfClosedTimeout,
    /// The client's socket failed.
    ClientFailed(io::ErrorKind),
    /// The server's socket failed.
    ServerFailed(io::ErrorKind),
    /// The client's TLS failed.
    ClientTls(String),
    /// The server's TLS failed.
    ServerTls(String),
    /// Too many bytes were held in buffers, and this one's owner held the most.
    Shed,
    /// Descriptors ran out and an unfinished handshake had to make room.
    Evicted,
    /// The drain deadline passed.
    Cut,
}

// === impl Context ===

impl Context<'_> {
    /// The time at which the current batch of events was picked up.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The index of the worker thread.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// The client's address as the kernel gave it.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The index of the listener, in the order given to the engine.
    pub fn listener(&self) -> usize {
        self.listener
    }

    /// The address the client connected to. Costs a system call.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let fd = self
            .client
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?;
        let address = rustix::net::getsockname(fd)?;
        SocketAddr::try_from(address).map_err(io::Error::from)
    }

    /// A handle with which another thread makes the engine ask
    /// [`Program::dial`] again after [`Next::Wait`].
    pub fn waker(&self) -> Waker {
        Waker::new(Arc::clone(self.inbox), self.session)
    }
}

// === impl Refusal ===

impl Refusal {
    /// A fatal TLS alert with this description code (RFC 8446 §6).
    pub fn alert(description: u8, reason: &'static str) -> Self {
        let record = vec![21, 3, 1, 0, 2, 2, description];
        Self {
            reply: Cow::Owned(record),
            reason,
        }
    }

    /// Close without a word.
    pub const fn silent(reason: &'static str) -> Self {
        Self {
            reply: Cow::Borrowed(&[]),
            reason,
        }
    }
}

// === impl End ===

impl End {
    /// A constant, snake-case word, good as a metric label.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Refused(reason) => reason,
            Self::ClientGone => "client_gone",
            Self::HelloTimeout => "hello_timeout",
            Self::HelloTooLong => "hello_too_long",
            Self::HandshakeTimeout => "handshake_timeout",
            Self::HalfClosedTimeout => "half_closed_timeout",
            Self::ClientFailed(_) => "client_failed",
            Self::ServerFailed(_) => "server_failed",
            Self::ClientTls(_) => "client_tls",
            Self::ServerTls(_) => "server_tls",
            Self::Shed => "shed",
            Self::Evicted => "evicted",
            Self::Cut => "cut",
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClientTls(error) | Self::ServerTls(error) => {
                write!(f, "{}: {error}", self.label())
            }
            Self::ClientFailed(kind) | Self::ServerFailed(kind) => {
                write!(f, "{}: {kind}", self.label())
            }
            other => f.write_str(other.label()),
        }
    }
}
