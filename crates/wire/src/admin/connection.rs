//! One client of the admin pages: its request, its answer, its deadline.
//!
//! Never blocks and never waits: the server calls it when there is something to do.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{IpAddr, Shutdown, SocketAddr, TcpStream},
    time::Instant,
};

use rustix::event::PollFlags;

use super::{Handler, Request, Response, server::Limits};

/// What a request's head may take.
const HEAD_LIMIT: usize = 8 * 1024;

/// Pages that kubelet asks for. They cost nothing to make and wait for no other.
const PROBES: [&str; 3] = ["/livez", "/readyz", "/healthz"];

/// A client between accept and close.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    peer: IpAddr,
    deadline: Instant,
    stage: Stage,
}

/// How far a client came.
#[derive(Debug)]
enum Stage {
    /// Its request is incomplete.
    Reading(Vec<u8>),
    /// It asked for a page that takes time to make, and waits for its turn.
    Waiting(Asked),
    /// It gets its answer.
    Writing { bytes: Vec<u8>, sent: usize },
    /// Nothing more is owed.
    Over,
}

/// A request line.
#[derive(Debug)]
struct Asked {
    method: String,
    path: String,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, peer: SocketAddr, deadline: Instant) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            peer: peer.ip(),
            deadline,
            stage: Stage::Reading(Vec::new()),
        })
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(super) fn peer(&self) -> IpAddr {
        self.peer
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// What poll should watch for.
    pub(super) fn interest(&self) -> PollFlags {
        match self.stage {
            Stage::Reading(_) => PollFlags::IN,
            Stage::Writing { .. } => PollFlags::OUT,
            Stage::Waiting(_) | Stage::Over => PollFlags::empty(),
        }
    }

    /// Who gives way first when there are too many: one that has not asked, then one that
    /// was not answered yet.
    pub(super) fn dispensable(&self) -> u8 {
        match self.stage {
            Stage::Over => 3,
            Stage::Reading(_) => 2,
            Stage::Waiting(_) => 1,
            Stage::Writing { .. } => 0,
        }
    }

    pub(super) fn waits(&self) -> bool {
        matches!(self.stage, Stage::Waiting(_))
    }

    /// Whether the server may forget it.
    pub(super) fn over(&self, now: Instant) -> bool {
        matches!(self.stage, Stage::Over) || now >= self.deadline
    }

    /// Reads and writes what can be without waiting, and answers probes.
    pub(super) fn advance(&mut self, handler: &Handler, limits: &Limits, now: Instant) {
        let done = match self.stage {
            Stage::Reading(_) => self.read(),
            Stage::Writing { .. } => self.write(),
            Stage::Waiting(_) | Stage::Over => return,
        };
        if done.is_err() {
            self.stage = Stage::Over;
        }
        let quick = |asked: &Asked| PROBES.contains(&asked.path.as_str()) || !asked.readable();
        if matches!(&self.stage, Stage::Waiting(asked) if quick(asked)) {
            self.answer(handler, limits, now);
        }
    }

    /// Makes the page that the client waits for, and starts sending it.
    pub(super) fn answer(&mut self, handler: &Handler, limits: &Limits, now: Instant) {
        let Stage::Waiting(asked) = &self.stage else {
            return;
        };
        self.stage = Stage::Writing {
            bytes: asked.answer(self.peer, handler),
            sent: 0,
        };
        self.deadline = now + limits.answer;
        if self.write().is_err() {
            self.stage = Stage::Over;
        }
    }

    fn read(&mut self) -> io::Result<()> {
        let Stage::Reading(head) = &mut self.stage else {
            return Ok(());
        };
        let mut buffer = [0; 2048];
        loop {
            let count = match self.stream.read(&mut buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let seen = head.len().saturating_sub(3);
            head.extend_from_slice(buffer.get(..count).unwrap_or_default());
            if count == 0 || ends(head.get(seen..).unwrap_or_default()) {
                self.stage = Stage::Waiting(Asked::parse(head));
                return Ok(());
            }
            if head.len() > HEAD_LIMIT {
                self.stage = Stage::Waiting(Asked::too_long());
                return Ok(());
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let Stage::Writing { bytes, sent } = &mut self.stage else {
            return Ok(());
        };
        while let Some(rest @ [_, ..]) = bytes.get(*sent..) {
            match self.stream.write(rest) {
                Ok(count) => *sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.stage = Stage::Over;
        self.stream.shutdown(Shutdown::Write)
    }
}

/// Whether an empty line is among the last bytes of a head.
fn ends(bytes: &[u8]) -> bool {
    bytes.windows(4).any(|four| four == b"\r\n\r\n") || bytes.windows(2).any(|two| two == b"\n\n")
}

impl Asked {
    fn parse(head: &[u8]) -> Self {
        let line = head.split(|byte| *byte == b'\n').next().unwrap_or(&[]);
        let line = String::from_utf8_lossy(line);
        let mut words = line.split_ascii_whitespace();
        let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        Self {
            method: method.to_owned(),
            path: target.split(['?', '#']).next().unwrap_or("").to_owned(),
        }
    }

    /// A head that went on and on.
    fn too_long() -> Self {
        Self {
            method: String::new(),
            path: String::new(),
        }
    }

    /// Whether the handler has a say at all.
    fn readable(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD")
    }

    fn answer(&self, peer: IpAddr, handler: &Handler) -> Vec<u8> {
        let response = self.respond(peer, handler);
        let mut bytes = format!(
            "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            response.status,
            reason(response.status),
            response.content_type,
            response.body.len(),
        )
        .into_bytes();
        if self.method != "HEAD" {
            bytes.extend_from_slice(response.body.as_bytes());
        }
        bytes
    }

    fn respond(&self, peer: IpAddr, handler: &Handler) -> Response {
        let status = |status, body| Response {
            status,
            ..Response::ok(body)
        };
        match self.method.as_str() {
            "GET" | "HEAD" => handler(&Request {
                path: &self.path,
                peer,
            })
            .unwrap_or_else(|| status(404, "no such page\n")),
            "" => status(400, "not an HTTP request, or one with a head over 8 KiB\n"),
            _ => status(405, "only GET is answered here\n"),
        }
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        503 => "Service Unavailable",
        _ => "Status",
    }
}
