//! Refusing a client so that it can read why, within a budget.
//!
//! So many refused clients are waited for at a time, each for so many bytes and so long. One
//! beyond that is told as well, but closed in the same turn: a flood of refusals holds nothing.

use std::os::fd::OwnedFd;

use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use super::{End, Flow, Leg, Phase, Program, Refusal, Session, Worker, counters};
use crate::relay;

impl<P: Program> Worker<P> {
    /// Tells the client why it is refused, and waits for it to read that: a socket
    /// closed over unread bytes would be reset, and the reply with it.
    pub(super) fn linger(
        &mut self,
        session: &mut Session<P::Session>,
        reply: &[u8],
        end: End,
    ) -> Flow {
        if let Some(fd) = session.server.fd.take() {
            drop(fd);
            self.shared.descriptors.close(1);
        }
        session.server = Leg::default();
        session.client.held = Vec::new();
        session.client.write(reply);
        // The end of a handshake may have been held back.
        session.client.flush(&mut self.tools.pipes);
        let Some(fd) = &session.client.fd else {
            return Flow::Over(end);
        };
        if session.client.broken || session.client.eof && session.client.clear() {
            return Flow::Over(end);
        }
        if session.client.out.is_empty() && shutdown(fd, Shutdown::Write).is_err() {
            return Flow::Over(end);
        }
        if self.lingering >= self.most_lingering {
            counters::add(&self.shared.counters.lingers_cut, 1);
            // What was sent until now at least does not turn the end into a reset.
            let _ = relay::read(&mut session.client, &mut self.tools.buffer);
            return Flow::Over(end);
        }
        self.lingering += 1;
        session.phase = Phase::Linger;
        session.end = Some(Box::new(end));
        session.deadline = self.wheel.tick(self.place.now + self.config.linger_timeout);
        Flow::Keep
    }

    /// Answers a refusal by the program.
    pub(super) fn refuse(&mut self, session: &mut Session<P::Session>, refusal: &Refusal) -> Flow {
        let end = End::Refused(refusal.reason);
        if refusal.reply.is_empty() {
            Flow::Over(end)
        } else {
            self.linger(session, &refusal.reply, end)
        }
    }

    /// Says why on a socket that never becomes a session. Its first bytes are there already and
    /// are taken off it, so that the end is no reset, which would take the reply with it.
    pub(super) fn say(&mut self, fd: &OwnedFd, reply: &[u8]) {
        if !reply.is_empty() {
            let _ = send(fd, reply, SendFlags::NOSIGNAL);
            let _ = recv(fd, &mut *self.tools.buffer, RecvFlags::empty());
        }
    }

    /// Reads and forgets what a refused client still sends.
    pub(super) fn linger_on(&mut self, session: &mut Session<P::Session>) -> Flow {
        let end = |session: &mut Session<P::Session>| {
            Flow::Over(session.end.take().map_or(End::Closed, |end| *end))
        };
        if !session.client.out.is_empty() {
            session.client.flush(&mut self.tools.pipes);
            let done = session.client.clear();
            if done && let Some(fd) = &session.client.fd {
                let _ = shutdown(fd, Shutdown::Write);
            }
        }
        while session.client.readable {
            let read = relay::read(&mut session.client, &mut self.tools.buffer);
            session.lingered += read.unwrap_or_default();
            if read.is_err() || session.client.eof {
                return end(session);
            }
            if session.lingered > self.config.linger_bytes {
                counters::add(&self.shared.counters.lingers_cut, 1);
                return end(session);
            }
        }
        Flow::Keep
    }
}
