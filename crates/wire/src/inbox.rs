//! How other threads reach a worker: a queue and an eventfd.
//!
//! The queue carries only what to do next, never bytes of connections.

use std::{
    fmt,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Arc, Mutex, PoisonError},
};

use rustix::event::{EventfdFlags, eventfd};

/// What another thread asks of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Message {
    /// Ask the program again where this session should connect.
    Wake(u64),
    /// Stop accepting; finish when the last session ends.
    Drain,
    /// Close everything now.
    Cut,
}

/// One worker's queue.
#[derive(Debug)]
pub(crate) struct Inbox {
    queue: Mutex<Vec<Message>>,
    event: OwnedFd,
}

/// Makes the engine ask [`crate::Program::dial`] again for one session. Using it
/// late, twice, or after the session ended does no harm.
#[derive(Clone)]
pub struct Waker {
    inbox: Arc<Inbox>,
    session: u64,
}

// === impl Inbox ===

impl Inbox {
    pub(crate) fn new() -> rustix::io::Result<Self> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self {
            queue: Mutex::new(Vec::new()),
            event,
        })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    pub(crate) fn send(&self, message: Message) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push(message);
        // A full counter means that the worker has been told already.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    /// Takes all messages and clears the event.
    pub(crate) fn take(&self) -> Vec<Message> {
        let mut counter = [0_u8; 8];
        let _ = rustix::io::read(&self.event, &mut counter);
        std::mem::take(&mut *self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

// === impl Waker ===

impl Waker {
    pub(crate) fn new(inbox: Arc<Inbox>, session: u64) -> Self {
        Self { inbox, session }
    }

    /// Asks for another [`crate::Program::dial`] of the session.
    pub fn wake(&self) {
        self.inbox.send(Message::Wake(self.session));
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waker")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_in_order_and_once() {
        let inbox = Arc::new(Inbox::new().unwrap());
        inbox.send(Message::Drain);
        Waker::new(Arc::clone(&inbox), 7).wake();
        assert_eq!(inbox.take(), [Message::Drain, Message::Wake(7)]);
        assert_eq!(inbox.take(), []);
    }
}
