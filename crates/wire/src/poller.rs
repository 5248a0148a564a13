//! One epoll instance: registration and waiting.
//!
//! Session sockets are edge-triggered. Interest in reading is dropped while the
//! other side is blocked and taken again afterwards: an arriving segment then
//! wakes nobody, which is most of the cost of a bulk transfer otherwise. Interest
//! in writing is taken when a write comes up short, since asking for it earlier
//! makes epoll report a socket that was writable all along.

use std::{
    os::fd::{AsFd, OwnedFd},
    time::Duration,
};

use rustix::{
    buffer::spare_capacity,
    event::{
        Timespec,
        epoll::{self, CreateFlags, Event, EventData, EventFlags},
    },
    io::{Errno, Result},
};

use crate::slab::Token;

/// Events fetched by one call. More only delays the first ones.
const BATCH: usize = 128;

#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
}

/// What happened to one socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Readiness {
    pub(crate) token: Token,
    pub(crate) flags: EventFlags,
}

/// What a session's socket is watched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Interest {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

impl Interest {
    pub(crate) const READ: Self = Self {
        read: true,
        write: false,
    };
    pub(crate) const BOTH: Self = Self {
        read: true,
        write: true,
    };

    fn flags(self) -> EventFlags {
        let mut flags = EventFlags::ET;
        if self.read {
            // RDHUP tells the end of the stream without a read of zero bytes;
            // PRI tells urgent data, where a short read proves nothing.
            flags |= EventFlags::IN | EventFlags::RDHUP | EventFlags::PRI;
        }
        if self.write {
            flags |= EventFlags::OUT;
        }
        flags
    }
}

impl Poller {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
        })
    }

    /// Registers a session's socket.
    pub(crate) fn add(&self, fd: impl AsFd, token: Token, interest: Interest) -> Result<()> {
        epoll::add(
            &self.epoll,
            fd,
            EventData::new_u64(token.raw()),
            interest.flags(),
        )
    }

    /// Changes what a session's socket is watched for.
    pub(crate) fn set(&self, fd: impl AsFd, token: Token, interest: Interest) -> Result<()> {
        epoll::modify(
            &self.epoll,
            fd,
            EventData::new_u64(token.raw()),
            interest.flags(),
        )
    }

    /// Registers a listener or an eventfd: level-triggered, reading.
    pub(crate) fn add_level(&self, fd: impl AsFd, token: Token) -> Result<()> {
        epoll::add(
            &self.epoll,
            fd,
            EventData::new_u64(token.raw()),
            EventFlags::IN,
        )
    }

    /// Pauses or resumes what was registered with [`Poller::add_level`].
    pub(crate) fn set_level(&self, fd: impl AsFd, token: Token, on: bool) -> Result<()> {
        let flags = if on {
            EventFlags::IN
        } else {
            EventFlags::empty()
        };
        epoll::modify(&self.epoll, fd, EventData::new_u64(token.raw()), flags)
    }

    /// Forgets a socket. Closing it does as much only where nobody else has a handle of it.
    pub(crate) fn remove(&self, fd: impl AsFd) -> Result<()> {
        epoll::delete(&self.epoll, fd)
    }

    /// Waits, at most `timeout`, and replaces the contents of `events`.
    pub(crate) fn wait(&self, events: &mut Vec<Event>, timeout: Option<Duration>) -> Result<()> {
        events.clear();
        events.reserve(BATCH);
        // Rounded up to what epoll knows, so that a deadline has passed on return.
        let timeout = timeout.map(|timeout| {
            let millis = i64::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX);
            Timespec {
                tv_sec: millis / 1000,
                tv_nsec: millis % 1000 * 1_000_000,
            }
        });
        match epoll::wait(&self.epoll, spare_capacity(events), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl From<&Event> for Readiness {
    fn from(event: &Event) -> Self {
        Self {
            token: Token::from_raw(event.data.u64()),
            flags: event.flags,
        }
    }
}
