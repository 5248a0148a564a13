//! A small HTTP/1 server for probes and metrics, on a thread of its own.
//!
//! Answers `GET` and `HEAD` of fixed paths, one request per connection. It shares
//! nothing with the workers, so a scrape never delays a connection and a busy
//! worker never fails a probe. Not meant for the outside: no TLS, no bodies in.
//!
//! Slow or many clients can't keep a probe from its answer: see [`server`].

mod connection;
mod server;

use std::{
    io::Write,
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use nix::sys::socket::SetSockOpt;

use crate::listener::{DeferAccept, ListenError};
use server::{Limits, Server};

/// Answers a request, or `None` for "not found".
pub type Handler = dyn Fn(&Request<'_>) -> Option<Response> + Send + Sync;

/// What is asked for, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// The path, without its query.
    pub path: &'a str,
    /// The client's address.
    pub peer: IpAddr,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The media type.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

/// Connections waiting to be accepted.
const BACKLOG: i32 = 1024;

/// How long the kernel keeps a client that says nothing before it hands it over.
const DEFER_SECONDS: usize = 2;

impl Request<'_> {
    /// Whether the client is on this machine, or in this pod's network: what `kubectl
    /// port-forward` and `kubectl exec` reach is local too.
    pub fn is_local(&self) -> bool {
        self.peer.to_canonical().is_loopback()
    }
}

impl Response {
    /// 200 with plain text.
    pub fn ok(body: impl Into<String>) -> Self {
        Self {
            status: 200,
            content_type: "text/plain; charset=utf-8",
            body: body.into(),
        }
    }

    /// 200 with JSON.
    pub fn json(body: impl Into<String>) -> Self {
        Self {
            content_type: "application/json",
            ..Self::ok(body)
        }
    }

    /// 200 with metrics in the Prometheus text format.
    pub fn metrics(body: impl Into<String>) -> Self {
        Self {
            content_type: "text/plain; version=0.0.4; charset=utf-8",
            ..Self::ok(body)
        }
    }

    /// 503: not now, and why.
    pub fn unavailable(body: impl Into<String>) -> Self {
        Self {
            status: 503,
            ..Self::ok(body)
        }
    }
    /// 403: not for this client, and what to do instead.
    pub fn forbidden(body: impl Into<String>) -> Self {
        Self {
            status: 403,
            ..Self::ok(body)
        }
    }
}

/// Listens on `address` and answers in the background for as long as the process
/// lives. Returns the address, with the port chosen if it was zero.
pub fn serve(address: SocketAddr, handler: Arc<Handler>) -> Result<SocketAddr, ListenError> {
    serve_until(address, handler, Arc::default())
}

/// The same, until [`close`].
pub fn serve_until(
    address: SocketAddr,
    handler: Arc<Handler>,
    closed: Arc<AtomicBool>,
) -> Result<SocketAddr, ListenError> {
    serve_within(Limits::default(), address, handler, closed)
}

fn serve_within(
    limits: Limits,
    address: SocketAddr,
    handler: Arc<Handler>,
    closed: Arc<AtomicBool>,
) -> Result<SocketAddr, ListenError> {
    let failed = |source| ListenError { address, source };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    // A client whose request is there when it is accepted needs no turn of its own.
    let _ = DeferAccept.set(&listener, &DEFER_SECONDS);
    let _ = rustix::net::listen(&listener, BACKLOG);
    let bound = listener.local_addr().map_err(failed)?;
    let server = Server::new(limits, listener, handler, closed);
    thread::Builder::new()
        .name("admin".into())
        .spawn(move || server.run())
        .map_err(failed)?;
    Ok(bound)
}

/// Gives the address back, so that a successor can have it. `bound` is what [`serve_until`]
/// returned.
pub fn close(bound: SocketAddr, closed: &AtomicBool) {
    closed.store(true, Relaxed);
    // The thread waits for a client: this is the last.
    if let Ok(mut last) = TcpStream::connect_timeout(&bound, Duration::from_secs(5)) {
        let _ = last.write_all(b"\r\n");
    }
}

#[cfg(test)]
mod tests;
