//! Looking at what sessions hold in buffers, and ending those of whoever holds the most.
//!
//! Runs four times a second while bytes move or wait, on the sessions that had something to do;
//! never on the path of a byte. Nobody is touched while all together stay below the limit. Above
//! it the owners that hold the most lose their largest sessions. Those are reset: a socket that
//! is closed in order would keep its bytes for as long as its peer likes.

use std::{sync::atomic::Ordering::Relaxed, time::Duration};

use rustix::net::sockopt::set_socket_linger;

use super::{End, Program, Session, Side, Token, Worker, counters};
use crate::memory::{self, Held};

/// How often.
const PAUSE: Duration = Duration::from_millis(250);

/// A session that holds less is no part of the problem.
const WORTH: u64 = 64 * 1024;

impl<P: Program> Worker<P> {
    /// Something happened on a session: it will be looked at.
    pub(super) fn stir(&mut self, session: &mut Session<P::Session>) {
        if self.shared.memory.limited() {
            session.stirred = true;
            self.arm_audit();
        }
    }

    fn arm_audit(&mut self) {
        if !self.audit_armed {
            self.audit_armed = true;
            let at = self.wheel.tick(self.place.now + PAUSE);
            self.wheel.insert(at, Token::reserved(super::AUDIT).raw());
        }
    }

    /// Measures, and makes room if there is too much.
    pub(super) fn audit(&mut self) {
        self.audit_armed = false;
        let (mut held, mut stirred, mut sum) = (Held::new(), false, 0);
        for token in self.sessions.tokens() {
            let Some(session) = self.sessions.get_mut(token) else {
                continue;
            };
            if session.stirred || session.buffered >= WORTH {
                stirred |= session.stirred;
                session.stirred = false;
                session.buffered = buffered(session);
            }
            if session.buffered > 0 {
                let owner = self.shared.program.owner(&session.program);
                *held.entry(owner).or_default() += session.buffered;
                sum += session.buffered;
            }
        }
        let excess = self.shared.memory.report(self.place.worker, held);
        if !excess.is_empty() {
            self.shed(excess);
        }
        self.shared.counters.buffered.store(sum, Relaxed);
        if stirred || sum > 0 {
            self.arm_audit();
        }
    }

    /// Frees so many bytes of each owner, by its largest sessions.
    fn shed(&mut self, mut excess: Held) {
        let mut large: Vec<(u64, Token)> = Vec::new();
        for token in self.sessions.tokens() {
            let held = self.sessions.get(token).map_or(0, |one| one.buffered);
            if held >= WORTH {
                large.push((held, token));
            }
        }
        large.sort_unstable_by_key(|(held, _)| std::cmp::Reverse(*held));
        for (held, token) in large {
            let Some(session) = self.sessions.get(token) else {
                continue;
            };
            let owner = self.shared.program.owner(&session.program);
            if let Some(rest) = excess.get_mut(&owner).filter(|rest| **rest > 0) {
                *rest = rest.saturating_sub(held);
                self.reset(token);
            }
        }
    }

    fn reset(&mut self, token: Token) {
        let Some(mut session) = self.sessions.take(token) else {
            return;
        };
        for side in [Side::Client, Side::Server] {
            if let Some(fd) = &session.leg(side).fd {
                let _ = set_socket_linger(fd, Some(Duration::ZERO));
            }
        }
        counters::add(&self.shared.counters.shed, 1);
        self.end(token, *session, End::Shed);
    }
}

/// What a session holds, here and in the kernel.
fn buffered<S>(session: &Session<S>) -> u64 {
    let legs = [&session.client, &session.server];
    legs.into_iter()
        .map(|leg| {
            let ours = leg.out.len() + leg.held.len();
            leg.fd.as_ref().map_or(0, memory::of_socket) + ours as u64
        })
        .sum()
}
