//! Pipes for splicing, pooled.
//!
//! A pipe is needed only while bytes are inside it, so a few serve thousands of
//! connections. The kernel limits how much an unprivileged user may hold in
//! large pipes (`pipe-user-pages-soft`, 64 MiB by default), and a slow reader
//! pins what it was sent: hence the budget. Without a pipe the relay copies.

use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

/// A pipe and what is in it.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) read: OwnedFd,
    pub(crate) write: OwnedFd,
    pub(crate) filled: usize,
}

/// One worker's pipes.
#[derive(Debug)]
pub(crate) struct Pipes {
    idle: Vec<Pipe>,
    /// How many more may be made.
    budget: usize,
    capacity: usize,
}

/// Below this a pipe saves nothing over a copy; the kernel gives small ones to a
/// user over the limit.
const WORTHWHILE: usize = 128 * 1024;

impl Pipes {
    /// At most `budget` pipes of `capacity` bytes each.
    pub(crate) fn new(budget: usize, capacity: usize) -> Self {
        Self {
            idle: Vec::new(),
            budget,
            capacity,
        }
    }

    /// The size asked for in a splice.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// An empty pipe, if one is left.
    pub(crate) fn take(&mut self) -> Option<Pipe> {
        if let Some(pipe) = self.idle.pop() {
            return Some(pipe);
        }
        if self.budget == 0 {
            return None;
        }
        let (read, write) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).ok()?;
        let Ok(WORTHWHILE..) = fcntl_setpipe_size(&write, self.capacity) else {
            // The user's limit is reached; asking again costs three calls each time.
            self.budget = 0;
            return None;
        };
        self.budget -= 1;
        Some(Pipe {
            read,
            write,
            filled: 0,
        })
    }

    /// Gives a pipe back. One with bytes in it can't serve another connection.
    pub(crate) fn put(&mut self, pipe: Pipe) {
        if pipe.filled == 0 {
            self.idle.push(pipe);
        } else {
            self.budget += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_pipe_is_used_again_and_a_filled_one_never() {
        let mut pipes = Pipes::new(1, 256 * 1024);
        let pipe = pipes.take().unwrap();
        assert!(pipes.take().is_none());
        pipes.put(pipe);
        let mut pipe = pipes.take().unwrap();
        pipe.filled = 1;
        pipes.put(pipe);
        assert!(pipes.idle.is_empty());
        assert!(pipes.take().is_some());
    }
}
