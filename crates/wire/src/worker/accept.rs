//! Accepting, and not accepting: bursts, exhausted descriptors, drain.

use std::{net::SocketAddr, os::fd::OwnedFd};

use rustix::{
    io::Errno,
    net::{SocketFlags, acceptfrom_with},
};

use super::{
    Flow, Leg, NOWHERE, Phase, Poller, Program, Session, Side, Tick, Token, Worker, counters,
};
use crate::{
    listener::stop_listening,
    program::{Accepted, End, First},
    session::Origin,
};

/// A listening socket of one worker.
#[derive(Debug)]
pub(super) struct Listener {
    fd: OwnedFd,
    paused: bool,
    /// Accepts tried per event.
    burst: u32,
    /// The turn of the loop that last accepted.
    turn: u64,
}

/// The most accepts per event.
const MOST: u32 = 64;

impl Listener {
    pub(super) fn register(
        sockets: Vec<OwnedFd>,
        poller: &Poller,
    ) -> rustix::io::Result<Vec<Self>> {
        let mut listeners = Vec::with_capacity(sockets.len());
        for (number, fd) in (0_u8..).zip(sockets) {
            poller.add_level(&fd, Token::reserved(number))?;
            listeners.push(Self {
                fd,
                paused: false,
                burst: 1,
                turn: 0,
            });
        }
        Ok(listeners)
    }

    /// How many accepts to try. With little to do, one: a second would find
    /// nothing, and epoll tells if there is more. If the loop finds this
    /// listener ready turn after turn, there is a queue to be worked off.
    fn next_burst(&mut self, turn: u64) -> u32 {
        let busy = turn == self.turn + 1;
        self.turn = turn;
        self.burst = if busy { (self.burst * 2).min(MOST) } else { 1 };
        self.burst
    }
}

/// What one call to accept brought.
enum Arrival {
    Client(OwnedFd, SocketAddr),
    Nobody,
    /// A client that went away in the queue.
    Gone,
    NoRoom,
}

impl<P: Program> Worker<P> {
    pub(super) fn accept(&mut self, number: usize) {
        let turn = self.turn;
        let Some(listener) = self.listeners.get_mut(number) else {
            return;
        };
        for _ in 0..listener.next_burst(turn) {
            if !self.accept_one(number) {
                return;
            }
        }
    }

    /// Says whether there may be more.
    fn accept_one(&mut self, number: usize) -> bool {
        match self.arrival(number) {
            Arrival::Client(fd, peer) => {
                self.admit(number, fd, peer);
                true
            }
            Arrival::Gone => true,
            Arrival::Nobody => false,
            Arrival::NoRoom => {
                if !self.evict() {
                    self.pause_accepting();
                }
                false
            }
        }
    }

    fn arrival(&mut self, number: usize) -> Arrival {
        let descriptors = &self.shared.descriptors;
        let Some(listener) = self.listeners.get(number) else {
            return Arrival::Nobody;
        };
        if !descriptors.try_open() {
            return Arrival::NoRoom;
        }
        let accepted = acceptfrom_with(&listener.fd, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC);
        let error = match accepted {
            Ok((fd, Some(peer))) => match SocketAddr::try_from(peer) {
                Ok(peer) => return Arrival::Client(fd, peer),
                Err(error) => error,
            },
            Ok((_, None)) => Errno::CONNABORTED,
            Err(error) => error,
        };
        descriptors.close(1);
        match error {
            Errno::AGAIN => Arrival::Nobody,
            Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM => Arrival::NoRoom,
            _ => Arrival::Gone,
        }
    }

    fn admit(&mut self, number: usize, fd: OwnedFd, peer: SocketAddr) {
        let Some(token) = self.sessions.reserve() else {
            self.shared.descriptors.close(1);
            return;
        };
        let origin = Origin {
            peer,
            listener: u8::try_from(number).unwrap_or(u8::MAX),
        };
        let cx = self.place.context(origin, Some(&fd), token);
        let Accepted { session, first } = match self.shared.program.accept(&cx, peer) {
            Ok(accepted) => accepted,
            Err(refusal) => {
                self.say(&fd, &refusal.reply);
                drop(fd);
                self.sessions.release(token);
                self.shared.descriptors.close(1);
                self.shared.program.turned_away(peer, refusal.reason);
                return;
            }
        };
        counters::add(&self.shared.counters.accepted, 1);
        let mut session = Box::new(Session {
            program: session,
            client: Leg {
                readable: true,
                ..Leg::new(fd)
            },
            server: Leg::default(),
            origin,
            address: NOWHERE,
            started: self.place.now,
            deadline: Tick::NEVER,
            phase: Phase::Peek,
            later: false,
            spoken: false,
            kept_alive: false,
            queued: false,
            lingered: 0,
            buffered: 0,
            stirred: false,
            end: None,
        });
        let flow = match first {
            First::Peek => self.read_hello(token, &mut session),
            First::Dial(route) => self.decide(token, &mut session, *route),
        };
        self.settle(token, session, flow);
    }

    /// Drops the oldest client that has not finished its first bytes. Says
    /// whether there was one.
    pub(super) fn evict(&mut self) -> bool {
        while let Some(token) = self.unfinished.pop_front() {
            let Some(session) = self.sessions.take(token) else {
                continue;
            };
            if session.phase != Phase::Peek {
                self.sessions.put(token, session);
                continue;
            }
            counters::add(&self.shared.counters.evicted, 1);
            self.end(token, *session, End::Evicted);
            return true;
        }
        false
    }

    /// Leaves clients in the kernel's queue until something is closed. A timer
    /// looks as well, for descriptors that others in the process gave back.
    fn pause_accepting(&mut self) {
        let mut paused = false;
        for (number, listener) in (0_u8..).zip(&mut self.listeners) {
            if !listener.paused {
                listener.paused = true;
                paused = true;
                let _ = self
                    .poller
                    .set_level(&listener.fd, Token::reserved(number), false);
            }
        }
        if paused {
            counters::add(&self.shared.counters.accept_pauses, 1);
            tracing::warn!(
                worker = self.place.worker,
                sessions = self.sessions.len(),
                "out of descriptors, not accepting; raise the limit on open files"
            );
        }
        let retry = self
            .wheel
            .tick(self.place.now + std::time::Duration::from_millis(100));
        self.wheel
            .insert(retry, Token::reserved(super::INBOX).raw());
    }

    pub(super) fn resume_accepting(&mut self) {
        for (number, listener) in (0_u8..).zip(&mut self.listeners) {
            if listener.paused {
                listener.paused = false;
                let _ = self
                    .poller
                    .set_level(&listener.fd, Token::reserved(number), true);
            }
        }
    }

    /// Takes who is in the queue already, then closes the listeners.
    pub(super) fn stop_accepting(&mut self) {
        self.draining = true;
        for number in 0..self.listeners.len() {
            while self.accept_one(number) {}
        }
        for listener in self.listeners.drain(..) {
            // A keeper has a handle too: without this, its end would be reported for ever.
            let _ = self.poller.remove(&listener.fd);
            stop_listening(&listener.fd);
        }
    }

    /// Remembers a client that may have to give way, and watches for its bytes.
    pub(super) fn wait_for_hello(
        &mut self,
        token: Token,
        session: &mut Session<P::Session>,
    ) -> Flow {
        if session.deadline == Tick::NEVER {
            self.set_deadline(token, session, self.config.hello_timeout);
            if self.unfinished.len() > 2 * self.sessions.len() + 64 {
                let sessions = &self.sessions;
                self.unfinished.retain(|token| {
                    sessions
                        .get(*token)
                        .is_some_and(|session| session.phase == Phase::Peek)
                });
            }
            self.unfinished.push_back(token);
        }
        debug_assert!(session.wants(Side::Client), "a peeking client is read");
        self.watch(token, session)
    }
}
