//! Sessions to resume: tickets of one upstream, each used once.
//!
//! rustls' own store keeps eight tickets per server. A node whose pods all connect at once has
//! more connections under way, and each that finds no ticket pays for a full handshake, at both
//! ends. This one keeps enough for a crowd; a ticket comes back with every connection.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustls::{
    NamedGroup,
    client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue},
    pki_types::ServerName,
};

/// Tickets kept, about half a KiB each.
const MOST: usize = 64;

/// The store. Names are not told apart for long: tickets of another one push the old out.
#[derive(Default)]
pub(super) struct Sessions(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    group: Option<NamedGroup>,
    tickets: VecDeque<(ServerName<'static>, Tls13ClientSessionValue)>,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tickets hold secrets.
        write!(f, "Sessions({})", self.lock().tickets.len())
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.lock().group = Some(group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.lock().group
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let mut kept = self.lock();
        if kept.tickets.len() >= MOST {
            kept.tickets.pop_front();
        }
        kept.tickets.push_back((name, ticket));
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let tickets = &mut self.lock().tickets;
        // The newest lives longest.
        let place = tickets.iter().rposition(|(of, _)| of == name)?;
        tickets.remove(place).map(|(_, ticket)| ticket)
    }

    // Upstreams speak TLS 1.3.
    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}
}
