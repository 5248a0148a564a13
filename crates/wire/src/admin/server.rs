//! The loop behind the admin pages: one thread, no client that it waits for.
//!
//! Kubelet ends a program whose probe fails, so nobody may keep a probe from its answer:
//! - every client has a deadline for its request and one for taking its answer;
//! - a new client always gets a place: when all are taken, the address with the most
//!   connections loses its oldest one, first one that has not asked for anything yet;
//! - probes are answered in the turn in which they are read, other pages one per turn.

use std::{
    collections::HashMap,
    io::ErrorKind,
    net::{IpAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Handler, connection::Connection};

/// What clients may take of the server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Clients at a time. Fewer than the descriptors that the engine leaves to others.
    pub(super) clients: usize,
    /// From accept to the end of the request's head.
    pub(super) request: Duration,
    /// From the first to the last byte of the answer.
    pub(super) answer: Duration,
}

pub(super) struct Server {
    limits: Limits,
    listener: TcpListener,
    handler: Arc<Handler>,
    closed: Arc<AtomicBool>,
    /// Oldest first.
    clients: Vec<Connection>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients: 32,
            request: Duration::from_secs(5),
            // A scraper with a slow line may need some time for a large page.
            answer: Duration::from_secs(10),
        }
    }
}

impl Server {
    pub(super) fn new(
        limits: Limits,
        listener: TcpListener,
        handler: Arc<Handler>,
        closed: Arc<AtomicBool>,
    ) -> Self {
        Self {
            limits,
            listener,
            handler,
            closed,
            clients: Vec::new(),
        }
    }

    /// Serves until it is closed.
    pub(super) fn run(mut self) {
        loop {
            self.wait();
            if self.closed.load(Relaxed) {
                return;
            }
            self.accept();
            let now = Instant::now();
            for client in &mut self.clients {
                client.advance(self.handler.as_ref(), &self.limits, now);
            }
            if let Some(client) = self.clients.iter_mut().find(|client| client.waits()) {
                client.answer(self.handler.as_ref(), &self.limits, now);
            }
            self.clients.retain(|client| !client.over(now));
        }
    }

    /// Waits until a client can be served or its time is over.
    fn wait(&self) {
        let now = Instant::now();
        let deadline = self.clients.iter().map(Connection::deadline).min();
        let limit = if self.clients.iter().any(Connection::waits) {
            Some(Duration::ZERO)
        } else {
            deadline.map(|deadline| deadline.saturating_duration_since(now))
        };
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let mut watched = vec![PollFd::new(&self.listener, PollFlags::IN)];
        let clients = self.clients.iter();
        watched.extend(clients.map(|client| PollFd::new(client.stream(), client.interest())));
        if poll(&mut watched, limit.as_ref()).is_err_and(|error| error != rustix::io::Errno::INTR) {
            // Out of memory, most likely: that passes.
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Takes new clients, at most one set of places per turn.
    fn accept(&mut self) {
        for _ in 0..self.limits.clients {
            let accepted = self.listener.accept();
            if let Err(error) = &accepted {
                match error.kind() {
                    ErrorKind::WouldBlock => return,
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => continue,
                    _ => {}
                }
            }
            let full = self.clients.len() >= self.limits.clients;
            let made = (full || accepted.is_err()) && self.make_room();
            let Ok((stream, peer)) = accepted else {
                if !made {
                    // Out of descriptors, and none of them is ours: that passes.
                    thread::sleep(Duration::from_millis(50));
                    return;
                }
                continue;
            };
            let now = Instant::now();
            if let Ok(mut client) = Connection::new(stream, peer, now + self.limits.request) {
                // Before anybody else can push it out.
                client.advance(self.handler.as_ref(), &self.limits, now);
                self.clients.push(client);
            }
        }
    }

    /// Drops one client. Says whether there was one.
    fn make_room(&mut self) -> bool {
        let mut each: HashMap<IpAddr, usize> = HashMap::new();
        for client in &self.clients {
            *each.entry(client.peer()).or_default() += 1;
        }
        let victim = self
            .clients
            .iter()
            .enumerate()
            .max_by_key(|(place, client)| {
                let over = client.dispensable() == 3;
                let share = each.get(&client.peer()).copied().unwrap_or_default();
                (over, share, client.dispensable(), std::cmp::Reverse(*place))
            });
        let place = victim.map(|(place, _)| place);
        place.is_some_and(|place| {
            self.clients.remove(place);
            true
        })
    }
}
