//! One thread of the engine: its event loop and the life of its sessions.
//!
//! A session is taken out of the slab, worked on, and put back or ended; so only
//! one is ever in hand, and the borrow checker sees what the eye does.

use std::{
    collections::VecDeque,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::event::epoll::{Event, EventFlags};

use crate::{
    counters::{self, Counters},
    descriptors::Descriptors,
    engine::Config,
    inbox::{Inbox, Message},
    memory::Memory,
    pipes::Pipes,
    poller::{Interest, Poller, Readiness},
    program::{Context, End, Program, Refusal, Summary},
    relay::{self, Drive, Tools},
    session::{Leg, Origin, Phase, Session},
    slab::{Side, Slab, Token},
    wheel::{Tick, Wheel},
};

mod accept;
mod audit;
mod deadline;
mod dial;
mod linger;
mod peek;

/// What a worker shares with the rest of the process.
#[derive(Debug)]
pub(crate) struct Shared<P> {
    pub(crate) program: Arc<P>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) descriptors: Arc<Descriptors>,
    pub(crate) memory: Arc<Memory>,
}

/// Where and when a worker works.
#[derive(Debug)]
pub(crate) struct Place {
    /// When the current batch of events was picked up.
    now: Instant,
    worker: usize,
    inbox: Arc<Inbox>,
}

pub(crate) struct Worker<P: Program> {
    place: Place,
    config: Config,
    shared: Shared<P>,
    poller: Poller,
    listeners: Vec<accept::Listener>,
    sessions: Slab<Session<P::Session>>,
    tools: Tools,
    wheel: Wheel,
    /// Sessions with more to move than one turn allows.
    again: Vec<Token>,
    /// Sessions whose first bytes are incomplete, oldest first: what gives way
    /// when descriptors run out.
    unfinished: VecDeque<Token>,
    /// Refused clients that may still read why, and how many there may be.
    lingering: usize,
    most_lingering: usize,
    /// Whether the bytes that sessions hold will be counted.
    audit_armed: bool,
    turn: u64,
    draining: bool,
    cut: bool,
}

/// Whether a session goes on.
#[derive(Debug)]
enum Flow {
    Keep,
    Over(End),
}

/// The inbox's token; listeners count from zero.
const INBOX: u8 = u8::MAX;

/// The token under which the wheel calls for an audit.
const AUDIT: u8 = u8::MAX - 1;

const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

impl<P: Program> Worker<P> {
    pub(crate) fn new(
        place: Place,
        workers: usize,
        config: &Config,
        sockets: Vec<OwnedFd>,
        shared: Shared<P>,
    ) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.add_level(place.inbox.fd(), Token::reserved(INBOX))?;
        let listeners = accept::Listener::register(sockets, &poller)?;
        let pipes = Pipes::new(config.pipes.div_ceil(workers), config.pipe_capacity);
        let now = place.now;
        Ok(Self {
            place,
            config: config.clone(),
            shared,
            poller,
            listeners,
            sessions: Slab::new(),
            tools: Tools::new(pipes),
            wheel: Wheel::new(now),
            again: Vec::new(),
            unfinished: VecDeque::new(),
            lingering: 0,
            most_lingering: config.lingering.div_ceil(workers),
            audit_armed: false,
            turn: 0,
            draining: false,
            cut: false,
        })
    }

    /// Serves until drained or cut.
    pub(crate) fn run(mut self) {
        let mut events = Vec::new();
        let mut expired = Vec::new();
        while !(self.cut || self.draining && self.sessions.len() == 0) {
            let timeout = if self.again.is_empty() {
                self.wheel.wait(self.place.now)
            } else {
                Some(Duration::ZERO)
            };
            if let Err(error) = self.poller.wait(&mut events, timeout) {
                // Only a bug makes epoll fail; a worker that spins helps nobody.
                tracing::error!(worker = self.place.worker, %error, "epoll failed, worker stops");
                break;
            }
            self.place.now = Instant::now();
            self.turn += 1;
            self.handle(&events);
            self.take_turns();
            self.wheel.expired(self.place.now, &mut expired);
            for token in expired.drain(..) {
                self.deadline(Token::from_raw(token));
            }
        }
        self.cut_all();
    }

    fn handle(&mut self, events: &[Event]) {
        for event in events {
            let readiness = Readiness::from(event);
            match readiness.token.as_reserved() {
                Some(number) if number == usize::from(INBOX) => self.read_inbox(),
                Some(listener) => self.accept(listener),
                None => self.session_event(readiness),
            }
        }
    }

    fn take_turns(&mut self) {
        for token in std::mem::take(&mut self.again) {
            if let Some(mut session) = self.sessions.take(token) {
                session.queued = false;
                let flow = self.drive(token, &mut session);
                self.settle(token, session, flow);
            }
        }
    }

    fn read_inbox(&mut self) {
        for message in self.place.inbox.take() {
            match message {
                Message::Wake(token) => self.wake(Token::from_raw(token)),
                Message::Drain => self.stop_accepting(),
                Message::Cut => self.cut = true,
            }
        }
    }

    fn session_event(&mut self, Readiness { token, flags }: Readiness) {
        let side = token.side();
        let token = token.with_side(Side::Client);
        let Some(mut session) = self.sessions.take(token) else {
            return;
        };
        note_readiness(session.leg(side), flags);
        let flow = match session.phase {
            Phase::Peek => self.read_hello(token, &mut session),
            Phase::Dial if side == Side::Server => self.dialled(token, &mut session, flags),
            Phase::Linger => {
                // Its deadline is set already.
                match self.linger_on(&mut session) {
                    Flow::Keep => self.sessions.put(token, session),
                    Flow::Over(end) => self.end(token, *session, end),
                }
                return;
            }
            Phase::Wait | Phase::Dial | Phase::Shake | Phase::Relay => {
                self.drive(token, &mut session)
            }
        };
        self.settle(token, session, flow);
    }

    /// Moves bytes, then tells epoll what the session waits for.
    fn drive(&mut self, token: Token, session: &mut Session<P::Session>) -> Flow {
        self.stir(session);
        let mut before = (session.client.received, session.server.received);
        let was = session.phase;
        let driven = loop {
            match relay::drive(session, &mut self.tools) {
                Drive::Unanswered => {
                    self.count(session, before);
                    if let Some(flow) = self.dial_another(token, session) {
                        return flow;
                    }
                    before = (session.client.received, session.server.received);
                }
                Drive::ServerReady => {
                    if let Err(flow) = self.server_ready(token, session) {
                        return flow;
                    }
                }
                other => break other,
            }
        };
        self.count(session, before);
        if was != Phase::Relay && session.phase == Phase::Relay {
            session.deadline = Tick::NEVER;
            counters::add(&self.shared.counters.established, 1);
        }
        if driven != Drive::Done && session.half_closed() {
            self.await_other_half(token, session);
        }
        match driven {
            Drive::Done => return self.conclude(session),
            Drive::Again if !session.queued => {
                session.queued = true;
                self.again.push(token);
            }
            Drive::Again | Drive::Idle | Drive::ServerReady | Drive::Unanswered => {}
        }
        self.watch(token, session)
    }

    fn conclude(&mut self, session: &mut Session<P::Session>) -> Flow {
        match session.end.take() {
            Some(end) if session.phase != Phase::Relay => self.linger(session, &[], *end),
            Some(end) => Flow::Over(*end),
            None => Flow::Over(End::Closed),
        }
    }

    /// Adds what was moved to the counters, the engine's and the program's.
    fn count(&mut self, session: &Session<P::Session>, before: (u64, u64)) {
        let to_server = session.client.received - before.0;
        let to_client = session.server.received - before.1;
        if to_server | to_client == 0 {
            return;
        }
        let counters = &self.shared.counters;
        counters::add(&counters.to_server, to_server);
        counters::add(&counters.to_client, to_client);
        counters::add(&counters.spliced, std::mem::take(&mut self.tools.spliced));
        self.shared
            .program
            .moved(&session.program, to_server, to_client);
    }

    /// Brings epoll's interest in line with what the session wants.
    fn watch(&mut self, token: Token, session: &mut Session<P::Session>) -> Flow {
        for side in [Side::Client, Side::Server] {
            if side == Side::Server && !session.connected() {
                continue;
            }
            let read = session.wants(side);
            // Before the relay nothing floods in: leaving the interest as it is saves two calls.
            let shaking = session.phase != Phase::Relay;
            let leg = session.leg(side);
            let write = leg.blocked();
            let Some(fd) = &leg.fd else { continue };
            let token = token.with_side(side);
            let changed = match leg.interest {
                None if read || write => {
                    leg.interest = Some(Interest { read, write });
                    self.poller.add(fd, token, Interest { read, write })
                }
                None => Ok(()),
                Some(now) => {
                    // After the end of a stream epoll has nothing more to tell,
                    // and interest in writing costs nothing once taken.
                    let wanted = Interest {
                        read: read || now.read && (leg.eof || shaking),
                        write: write || now.write,
                    };
                    if wanted == now {
                        continue;
                    }
                    leg.interest = Some(wanted);
                    self.poller.set(fd, token, wanted)
                }
            };
            if let Err(error) = changed {
                return Flow::Over(End::ClientFailed(io::Error::from(error).kind()));
            }
        }
        Flow::Keep
    }

    fn settle(&mut self, token: Token, session: Box<Session<P::Session>>, flow: Flow) {
        match flow {
            Flow::Keep => {
                if session.phase == Phase::Linger {
                    self.wheel.insert(session.deadline, token.raw());
                }
                let mut session = session;
                let watched = match session.phase {
                    Phase::Linger => self.watch(token, &mut session),
                    _ => Flow::Keep,
                };
                match watched {
                    Flow::Keep => self.sessions.put(token, session),
                    Flow::Over(end) => self.end(token, *session, end),
                }
            }
            Flow::Over(end) => self.end(token, *session, end),
        }
    }

    /// Closes a session and lets the program know.
    fn end(&mut self, token: Token, mut session: Session<P::Session>, end: End) {
        if session.phase == Phase::Linger {
            self.lingering -= 1;
        }
        let mut closed = 0;
        for side in [Side::Client, Side::Server] {
            let leg = session.leg(side);
            if let Some(pipe) = leg.pipe.take() {
                self.tools.pipes.put(pipe);
            }
            closed += usize::from(leg.fd.take().is_some());
        }
        self.shared.descriptors.close(closed);
        self.sessions.release(token);
        counters::add(&self.shared.counters.closed, 1);
        let summary = Summary {
            peer: session.origin.peer,
            to_server: session.client.received,
            to_client: session.server.received,
            lasted: self.place.now.saturating_duration_since(session.started),
            end,
        };
        let cx = self.place.context(session.origin, None, token);
        self.shared.program.finished(&cx, session.program, &summary);
        self.resume_accepting();
    }

    fn cut_all(&mut self) {
        self.listeners.clear();
        for token in self.sessions.tokens() {
            if let Some(session) = self.sessions.take(token) {
                self.end(token, *session, End::Cut);
            }
        }
    }
}

impl Place {
    pub(crate) fn new(worker: usize, inbox: Arc<Inbox>) -> Self {
        Self {
            now: Instant::now(),
            worker,
            inbox,
        }
    }

    /// The circumstances of a call to the program.
    fn context<'a>(
        &'a self,
        origin: Origin,
        client: Option<&'a OwnedFd>,
        token: Token,
    ) -> Context<'a> {
        Context {
            now: self.now,
            worker: self.worker,
            listener: usize::from(origin.listener),
            peer: origin.peer,
            client: client.map(AsFd::as_fd),
            inbox: &self.inbox,
            session: token.raw(),
        }
    }
}

/// Notes what epoll said about a socket.
fn note_readiness(leg: &mut Leg, flags: EventFlags) {
    let odd = flags.intersects(EventFlags::ERR | EventFlags::PRI);
    let ended = flags.intersects(EventFlags::RDHUP | EventFlags::HUP);
    leg.odd |= odd;
    leg.ended |= ended;
    leg.readable |= odd || ended || flags.contains(EventFlags::IN);
    leg.writable |= flags.intersects(EventFlags::OUT | EventFlags::ERR | EventFlags::HUP);
}
