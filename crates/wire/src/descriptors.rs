//! How many sockets are open, against how many may be.
//!
//! Running into the kernel's limit hurts everyone in the process: the admin page
//! and the reload of files too. So the engine stops before it.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Sockets of all workers.
#[derive(Debug)]
pub(crate) struct Descriptors {
    open: AtomicUsize,
    limit: usize,
}

impl Descriptors {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            open: AtomicUsize::new(0),
            limit,
        }
    }

    /// Counts one more, unless the limit is reached. Two threads may pass it by
    /// one each; the reserve is larger.
    pub(crate) fn try_open(&self) -> bool {
        if self.open.load(Relaxed) >= self.limit {
            return false;
        }
        self.open.fetch_add(1, Relaxed);
        true
    }

    pub(crate) fn close(&self, count: usize) {
        self.open.fetch_sub(count, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_holds_until_something_is_closed() {
        let descriptors = Descriptors::new(1);
        assert!(descriptors.try_open());
        assert!(!descriptors.try_open());
        descriptors.close(1);
        assert!(descriptors.try_open());
    }
}
