//! What connections hold in buffers, the kernel's included, against what they may.
//!
//! Two peers that send and never read make the kernel keep megabytes for one connection, so
//! counting connections does not bound memory. The workers look from time to time and
//! report here, by owner. Who has to give is decided for all of them together: only owners
//! that hold more than an equal part of the limit, and only what they hold beyond it.

use std::{
    collections::HashMap,
    os::fd::OwnedFd,
    sync::{Mutex, PoisonError},
};

use nix::{
    libc,
    sys::socket::{GetSockOpt, sockopt::GetStruct},
};

/// Bytes by owner.
pub(crate) type Held = HashMap<usize, u64>;

/// What the sessions of all workers hold.
#[derive(Debug)]
pub(crate) struct Memory {
    /// As each worker last reported.
    workers: Mutex<Vec<Held>>,
    limit: u64,
}

/// The head of what the kernel says about a socket's memory: bytes received and not read first,
/// bytes written and not acknowledged last.
#[derive(Clone, Copy, Debug)]
struct SocketMemory;
nix::getsockopt_impl!(
    SocketMemory,
    libc::SOL_SOCKET,
    libc::SO_MEMINFO,
    [u32; 6],
    GetStruct<[u32; 6]>
);

impl Memory {
    pub(crate) fn new(workers: usize, limit: Option<u64>) -> Self {
        Self {
            workers: Mutex::new(vec![Held::new(); workers]),
            limit: limit.unwrap_or(u64::MAX),
        }
    }

    /// Whether anybody wants to know.
    pub(crate) fn limited(&self) -> bool {
        self.limit != u64::MAX
    }

    /// Takes a worker's report. Returns what it has to free, by owner: of each that holds too
    /// much, the part that is its own.
    pub(crate) fn report(&self, worker: usize, mine: Held) -> Held {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Held::new();
        if let Some(before) = workers.get_mut(worker) {
            *before = mine;
        }
        for (owner, bytes) in workers.iter().flatten() {
            *all.entry(*owner).or_default() += bytes;
        }
        let Some(level) = level(all.values().copied().collect(), self.limit) else {
            return Held::new();
        };
        let mine = workers.get(worker).into_iter().flatten();
        let excess = mine.filter_map(|(owner, bytes)| {
            let total = all.get(owner).copied().unwrap_or_default();
            let over = total.checked_sub(level).filter(|over| *over > 0)?;
            let part = u128::from(*bytes) * u128::from(over) / u128::from(total);
            Some((*owner, u64::try_from(part).unwrap_or(u64::MAX)))
        });
        excess.collect()
    }
}

/// The most that each may hold so that all together stay below `limit`; none if they do already.
fn level(mut held: Vec<u64>, limit: u64) -> Option<u64> {
    if held.iter().sum::<u64>() <= limit {
        return None;
    }
    held.sort_unstable();
    let (mut rest, mut left) = (limit, held.len() as u64);
    for bytes in held {
        if bytes > rest / left {
            break;
        }
        rest -= bytes;
        left -= 1;
    }
    Some(rest / left.max(1))
}

/// What the kernel holds for a socket.
pub(crate) fn of_socket(socket: &OwnedFd) -> u64 {
    // It fails for no socket; one that can't be asked holds nothing that we know of.
    SocketMemory
        .get(socket)
        .map_or(0, |words| u64::from(words[0]) + u64::from(words[5]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_above_an_equal_part_has_to_go() {
        assert_eq!(level(vec![10, 20, 70], 100), None);
        assert_eq!(level(vec![10, 20, 170], 100), Some(70));
        assert_eq!(level(vec![10, 200, 170], 100), Some(45));
        assert_eq!(level(vec![50, 50, 50], 99), Some(33));
        assert_eq!(level(vec![200], 100), Some(100));
        assert_eq!(level(vec![], 0), None);
    }

    #[test]
    fn every_worker_frees_its_part_of_who_holds_too_much_and_nothing_of_others() {
        let memory = Memory::new(2, Some(100));
        let (greedy, modest) = (1, 2);
        assert_eq!(memory.report(0, [(greedy, 100)].into()), Held::new());
        // 180 in all: 80 stay for one, 20 for the other.
        let here = memory.report(1, [(greedy, 60), (modest, 20)].into());
        assert_eq!(here, [(greedy, 30)].into());
        let there = memory.report(0, [(greedy, 100)].into());
        assert_eq!(there, [(greedy, 50)].into());
        assert_eq!(memory.report(0, Held::new()), Held::new());
        assert!(!Memory::new(1, None).limited());
    }
}
