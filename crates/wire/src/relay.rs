//! Moving bytes between the two legs of a session.
//!
//! Small data is read into one buffer per thread and written at once; what the
//! other side does not take is kept, and nothing more is read until it left
//! (back-pressure). A stream of large reads between two plain legs is spliced
//! through a pipe, so that its bytes never enter this process. The end of a
//! stream is passed on once everything before it was (half-close).
//!
//! Nothing here decides where a connection goes or how long it may take.

use rustix::{
    io::Errno,
    net::{RecvFlags, Shutdown, recv, shutdown},
    pipe::{SpliceFlags, splice},
};

use crate::{
    pipes::{Pipe, Pipes},
    program::End,
    session::{Leg, Phase, Session},
    slab::Side,
    transform::Opened,
};

/// What a worker lends to the session it works on.
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) pipes: Pipes,
    /// Bytes just read.
    pub(crate) buffer: Box<[u8]>,
    /// Plaintext just opened.
    pub(crate) plain: Vec<u8>,
    /// Records just sealed, or replies of a handshake.
    pub(crate) wire: Vec<u8>,
    /// Bytes that were spliced, for the metric.
    pub(crate) spliced: u64,
}

/// What a session needs after its bytes were moved.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Drive {
    /// Nothing until the next event.
    Idle,
    /// There is more to move, but others have a right to the thread.
    Again,
    /// The server's handshake is done: the program builds the client's side.
    ServerReady,
    /// The server closed before its first byte: the program may know another.
    Unanswered,
    /// Over.
    Done,
}

/// One read of small data, and the most that is copied before others get their turn.
pub(crate) const BUFFER: usize = 64 * 1024;

/// Rounds over both directions before others get their turn.
const ROUNDS: usize = 4;

/// A read of at least this much is a sign of a stream worth splicing: one TLS
/// record of full size.
const LARGE: usize = 16 * 1024;

/// Large reads in a row before splicing, so that one big message does not count.
const LARGE_READS: u8 = 2;

/// Small spliced reads in a row before copying again: a splice of few bytes
/// costs more than two calls on a buffer.
const SMALL_SPLICES: u8 = 4;

impl Tools {
    pub(crate) fn new(pipes: Pipes) -> Self {
        Self {
            pipes,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            plain: Vec::new(),
            wire: Vec::new(),
            spliced: 0,
        }
    }
}

/// Moves what can be moved in both directions.
pub(crate) fn drive<S>(session: &mut Session<S>, tools: &mut Tools) -> Drive {
    for _ in 0..ROUNDS {
        if session.phase == Phase::Shake && session.later && session.server.ready() {
            return Drive::ServerReady;
        }
        if session.phase == Phase::Shake && session.ready() {
            begin(session, tools);
        }
        if !session.holds_back(Side::Client) {
            session.client.flush(&mut tools.pipes);
        }
        if session.connected() && !session.holds_back(Side::Server) {
            session.server.flush(&mut tools.pipes);
        }
        let up = pump(session, Side::Client, tools);
        let down = pump(session, Side::Server, tools);
        session.settle_on_server();
        if session.unanswered() {
            return Drive::Unanswered;
        }
        if session.end.is_some() && session.phase != Phase::Relay {
            return Drive::Done;
        }
        if !up && !down {
            return if conclude(session, tools) {
                Drive::Done
            } else {
                Drive::Idle
            };
        }
    }
    Drive::Again
}

/// Both handshakes are done. What ends them has not been sent yet, so that the first
/// payload leaves with it: one segment less, and one time less to wake the peer.
fn begin<S>(session: &mut Session<S>, tools: &mut Tools) {
    session.phase = Phase::Relay;
    for side in [Side::Client, Side::Server] {
        release_held(session, side, tools);
        let (from, to) = session.pair(side);
        if !to.out.is_empty() && from.readable && !from.eof {
            copy_once(session, side, tools);
        }
    }
}

/// Passes on what came from `side` before the other was ready.
fn release_held<S>(session: &mut Session<S>, side: Side, tools: &mut Tools) {
    if session.spoken {
        return;
    }
    let keep = side == Side::Client && session.plain();
    let (from, to) = session.pair(side);
    let held = std::mem::take(&mut from.held);
    if held.is_empty() {
        return;
    }
    from.received += held.len() as u64;
    if to.transform.is_none() && !to.out.is_empty() {
        // A PROXY header goes first, in one segment with the hello.
        to.out.extend_from_slice(&held);
        to.flush(&mut tools.pipes);
    } else {
        pass_on(session, side, &held, &mut tools.wire);
    }
    if keep {
        session.client.held = held;
        session.spoken = true;
    }
}

/// Gives payload that came from `side` to the other.
fn pass_on<S>(session: &mut Session<S>, side: Side, payload: &[u8], wire: &mut Vec<u8>) {
    let to = session.leg(side.other());
    if let Err(end) = deliver(to, payload, wire, side.other()) {
        to.broken = true;
        session.blame(end);
    }
}

/// Reads once from `side` and passes it on. Says whether it is worth trying again.
fn pump<S>(session: &mut Session<S>, side: Side, tools: &mut Tools) -> bool {
    if !session.leg(side).readable || !session.wants(side) {
        return false;
    }
    let (from, to) = session.pair(side);
    if from.splicing
        && from.transform.is_none()
        && to.transform.is_none()
        && let Some(pipe) = tools.pipes.take()
    {
        return splice_once(session, side, pipe, tools);
    }
    copy_once(session, side, tools)
}

fn copy_once<S>(session: &mut Session<S>, side: Side, tools: &mut Tools) -> bool {
    let from = session.leg(side);
    let count = match read(from, &mut tools.buffer) {
        Ok(count) => count,
        Err(error) => {
            failed_read(session, side, error);
            return true;
        }
    };
    if count == 0 {
        if from.eof && from.transform.is_some() {
            truncated(session, side);
            return true;
        }
        return from.eof;
    }
    note_size(from, count);
    if from.transform.is_none() {
        from.received += count as u64;
        pass_on(session, side, &tools.buffer[..count], &mut tools.wire);
        return true;
    }
    tools.plain.clear();
    if let Err(end) = open(
        from,
        &mut tools.buffer[..count],
        &mut tools.plain,
        &mut tools.wire,
        side,
    ) {
        from.eof = true;
        from.broken = true;
        session.blame(end);
        return true;
    }
    if session.phase == Phase::Relay {
        session.leg(side).received += tools.plain.len() as u64;
        pass_on(session, side, &tools.plain, &mut tools.wire);
    } else {
        session.leg(side).held.extend_from_slice(&tools.plain);
    }
    true
}

/// Reads into the buffer. Zero is nothing or, with `eof`, the end.
pub(crate) fn read(leg: &mut Leg, buffer: &mut [u8]) -> Result<usize, Errno> {
    let Some(fd) = &leg.fd else {
        return Err(Errno::BADF);
    };
    let count = loop {
        match recv(fd, &mut *buffer, RecvFlags::empty()) {
            Ok((count, _)) => break count,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                leg.readable = false;
                leg.odd = false;
                return Ok(0);
            }
            Err(error) => return Err(error),
        }
    };
    if count == 0 {
        leg.eof = true;
    } else if count < buffer.len() && !leg.odd {
        // The queue is empty. If epoll said that the peer finished, this was all;
        // TLS has its own end, so there the read of nothing is made.
        let plain = leg.transform.is_none();
        leg.eof = leg.ended && plain;
        leg.readable = leg.ended && !plain;
    }
    Ok(count)
}

fn failed_read<S>(session: &mut Session<S>, side: Side, error: Errno) {
    let kind = std::io::Error::from(error).kind();
    session.blame(match side {
        Side::Client => End::ClientFailed(kind),
        Side::Server => End::ServerFailed(kind),
    });
    let leg = session.leg(side);
    leg.eof = true;
    leg.broken = true;
}

/// A TLS peer closed its socket without saying goodbye. The other side must not
/// be told that the stream is complete.
fn truncated<S>(session: &mut Session<S>, side: Side) {
    let (from, to) = session.pair(side);
    to.notified = true;
    if !from.ready() {
        from.broken = true;
    }
    let kind = std::io::ErrorKind::UnexpectedEof;
    session.blame(match side {
        Side::Client => End::ClientFailed(kind),
        Side::Server => End::ServerFailed(kind),
    });
}

/// Feeds wire bytes to a leg's transform and sends its replies. The one that ends the
/// handshake is only queued: see [`begin`].
pub(crate) fn open(
    leg: &mut Leg,
    bytes: &mut [u8],
    plain: &mut Vec<u8>,
    wire: &mut Vec<u8>,
    side: Side,
) -> Result<(), End> {
    let Some(transform) = &mut leg.transform else {
        return Ok(());
    };
    wire.clear();
    let shaking = !transform.ready();
    let opened = transform.open(bytes, plain, wire);
    if opened.is_ok() && shaking && transform.ready() {
        leg.out.extend_from_slice(wire);
    } else {
        leg.write(wire);
    }
    match opened {
        Ok(Opened::Open) => {}
        Ok(Opened::Eof) => leg.eof = true,
        Err(error) => return Err(tls_end(side, error.to_string())),
    }
    Ok(())
}

/// Writes payload to a leg, sealed if it has a transform.
fn deliver(leg: &mut Leg, payload: &[u8], wire: &mut Vec<u8>, side: Side) -> Result<(), End> {
    let Some(transform) = &mut leg.transform else {
        leg.write(payload);
        return Ok(());
    };
    wire.clear();
    let sealed = transform.seal(payload, wire);
    leg.write(wire);
    sealed.map_err(|error| tls_end(side, error.to_string()))
}

fn tls_end(side: Side, error: String) -> End {
    match side {
        Side::Client => End::ClientTls(error),
        Side::Server => End::ServerTls(error),
    }
}

/// Watches the sizes of reads for a stream worth splicing.
fn note_size(leg: &mut Leg, count: usize) {
    leg.streak = if count >= LARGE {
        leg.streak.saturating_add(1)
    } else {
        0
    };
    if leg.streak >= LARGE_READS {
        leg.splicing = true;
        leg.streak = 0;
    }
}

/// Fills the pipe from one socket and empties it into the other.
fn splice_once<S>(session: &mut Session<S>, side: Side, mut pipe: Pipe, tools: &mut Tools) -> bool {
    let (from, to) = session.pair(side);
    let Some(fd) = &from.fd else { return false };
    let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
    let count = match splice(fd, None, &pipe.write, None, tools.pipes.capacity(), flags) {
        Ok(count) => count,
        Err(error) => {
            tools.pipes.put(pipe);
            match error {
                Errno::AGAIN => from.readable = false,
                Errno::INTR => {}
                Errno::INVAL => from.splicing = false,
                _ => failed_read(session, side, error),
            }
            return error != Errno::AGAIN;
        }
    };
    if count == 0 {
        from.eof = true;
        tools.pipes.put(pipe);
        return true;
    }
    from.received += count as u64;
    tools.spliced += count as u64;
    from.streak = if count < LARGE { from.streak + 1 } else { 0 };
    if from.streak >= SMALL_SPLICES {
        from.splicing = false;
        from.streak = 0;
    }
    pipe.filled = count;
    to.pipe = Some(pipe);
    to.flush_pipe(&mut tools.pipes);
    true
}

/// Passes on ended streams. Says whether the session is over.
fn conclude<S>(session: &mut Session<S>, tools: &mut Tools) -> bool {
    if session.phase != Phase::Relay {
        return session.client.broken || session.server.broken;
    }
    let to_server = session.server.broken || session.client.eof && session.server.clear();
    let to_client = session.client.broken || session.server.eof && session.client.clear();
    if to_server {
        say_goodbye(&mut session.server, to_client, tools);
    }
    if to_client {
        say_goodbye(&mut session.client, to_server, tools);
    }
    to_server && to_client
}

/// Tells a peer that no more will come. A socket about to be closed needs no
/// shutdown of its own.
fn say_goodbye(leg: &mut Leg, closing: bool, tools: &mut Tools) {
    if leg.shut || leg.broken {
        return;
    }
    if let Some(transform) = &mut leg.transform
        && !leg.notified
    {
        leg.notified = true;
        tools.wire.clear();
        transform.close(&mut tools.wire);
        leg.write(&tools.wire);
    }
    if leg.clear() {
        leg.shut = true;
        if !closing && let Some(fd) = &leg.fd {
            // Fails only if the peer is gone, which the next read tells.
            let _ = shutdown(fd, Shutdown::Write);
        }
    }
}
