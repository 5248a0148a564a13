//! What happens when a session's time has come.

use std::time::Duration;

use super::{End, Flow, Phase, Program, Session, Tick, Token, Worker, counters};
use crate::listener;

impl<P: Program> Worker<P> {
    /// The time of a session (or of an earlier one in its place) has come.
    pub(super) fn deadline(&mut self, token: Token) {
        match token.as_reserved() {
            Some(number) if number == usize::from(super::AUDIT) => return self.audit(),
            Some(_) => return self.resume_accepting(),
            None => {}
        }
        let Some(mut session) = self.sessions.take(token) else {
            return;
        };
        let due = session.deadline;
        Self::keep_alive(&mut session);
        let flow = if due == Tick::NEVER {
            Flow::Keep
        } else if due > self.wheel.tick(self.place.now) {
            self.wheel.insert(due, token.raw());
            Flow::Keep
        } else {
            match session.phase {
                Phase::Peek => Flow::Over(End::HelloTimeout),
                Phase::Dial => self.dial_timeout(token, &mut session),
                Phase::Wait | Phase::Shake => self.linger(&mut session, &[], End::HandshakeTimeout),
                Phase::Linger => Flow::Over(session.end.take().map_or(End::Closed, |end| *end)),
                Phase::Relay => {
                    counters::add(&self.shared.counters.half_closed, 1);
                    Flow::Over(End::HalfClosedTimeout)
                }
            }
        };
        self.settle(token, session, flow);
    }

    /// A connection that lives past its first deadline is worth four calls; the
    /// client's socket inherited the same from its listener.
    fn keep_alive(session: &mut Session<P::Session>) {
        if session.phase == Phase::Relay
            && !session.kept_alive
            && let Some(fd) = &session.server.fd
        {
            session.kept_alive = true;
            // Without it a dead server is found by the next write only.
            let _ = listener::keep_alive(fd);
        }
    }

    /// Something happened on a connection of which one side has finished: the other has
    /// its time again. Whoever is read or written has one event, so this costs no byte anything.
    pub(super) fn await_other_half(&mut self, token: Token, session: &mut Session<P::Session>) {
        let after = self.config.half_closed_timeout;
        if session.deadline == Tick::NEVER {
            self.set_deadline(token, session, after);
        } else {
            // Its entry in the wheel finds this later one.
            session.deadline = self.wheel.tick(self.place.now + after);
        }
    }

    /// Sets when [`Worker::deadline`] looks at the session.
    pub(super) fn set_deadline(
        &mut self,
        token: Token,
        session: &mut Session<P::Session>,
        after: Duration,
    ) {
        let tick = self.wheel.tick(self.place.now + after);
        session.deadline = tick;
        self.wheel.insert(tick, token.raw());
    }
}
