//! What each worker counts. Written by one thread, read by the admin page.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One worker's counters, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    pub(crate) accepted: AtomicU64,
    pub(crate) closed: AtomicU64,
    pub(crate) established: AtomicU64,
    pub(crate) to_server: AtomicU64,
    pub(crate) to_client: AtomicU64,
    pub(crate) spliced: AtomicU64,
    pub(crate) dial_failures: AtomicU64,
    pub(crate) accept_pauses: AtomicU64,
    pub(crate) evicted: AtomicU64,
    pub(crate) half_closed: AtomicU64,
    pub(crate) lingers_cut: AtomicU64,
    pub(crate) buffered: AtomicU64,
    pub(crate) shed: AtomicU64,
}

/// All workers' counters added up.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections open now.
    pub live: u64,
    /// Connections that reached the relay.
    pub established: u64,
    /// Payload bytes to servers.
    pub to_server: u64,
    /// Payload bytes to clients.
    pub to_client: u64,
    /// Payload bytes that were spliced rather than copied.
    pub spliced: u64,
    /// Addresses that did not answer.
    pub dial_failures: u64,
    /// Times accepting paused for want of descriptors.
    pub accept_pauses: u64,
    /// Unfinished handshakes dropped to make room.
    pub evicted: u64,
    /// Connections ended because one side had finished and the other said nothing more.
    pub half_closed: u64,
    /// Refused clients closed at once, or before they had read why.
    pub lingers_cut: u64,
    /// Bytes held in buffers, the kernel's included, where there is a limit on them.
    pub buffered: u64,
    /// Connections reset because too much was held.
    pub shed: u64,
    /// Processes that served on the same listeners before this one, and died.
    pub restarts: u64,
}

/// Adds to a counter that only this thread writes.
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(amount), Relaxed);
}

impl Snapshot {
    pub(crate) fn of(workers: &[&Counters]) -> Self {
        let mut sum = Self::default();
        for counters in workers {
            let closed = counters.closed.load(Relaxed);
            let accepted = counters.accepted.load(Relaxed);
            sum.accepted += accepted;
            sum.live += accepted.saturating_sub(closed);
            sum.established += counters.established.load(Relaxed);
            sum.to_server += counters.to_server.load(Relaxed);
            sum.to_client += counters.to_client.load(Relaxed);
            sum.spliced += counters.spliced.load(Relaxed);
            sum.dial_failures += counters.dial_failures.load(Relaxed);
            sum.accept_pauses += counters.accept_pauses.load(Relaxed);
            sum.evicted += counters.evicted.load(Relaxed);
            sum.half_closed += counters.half_closed.load(Relaxed);
            sum.lingers_cut += counters.lingers_cut.load(Relaxed);
            sum.buffered += counters.buffered.load(Relaxed);
            sum.shed += counters.shed.load(Relaxed);
        }
        sum
    }
}
