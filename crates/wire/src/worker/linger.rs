//! Refusing a client so that it can read why.

use std::time::Duration;

use rustix::net::{Shutdown, shutdown};

use super::{End, Flow, Leg, Phase, Program, Refusal, Session, Worker};
use crate::relay;

/// How long a refused client may take to read why.
const LINGER: Duration = Duration::from_secs(1);

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
        session.phase = Phase::Linger;
        session.end = Some(Box::new(end));
        session.deadline = self.wheel.tick(self.place.now + LINGER);
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
            if read.is_err() || session.client.eof {
                return end(session);
            }
        }
        Flow::Keep
    }
}
