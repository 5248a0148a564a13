//! Waiting for the signal to stop.

use std::io;

use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};

/// Signals that ask for a stop, caught from the moment this is made.
#[derive(Debug)]
pub struct Stop(Signals);

impl Stop {
    /// Catches SIGTERM and SIGINT. Make it before starting threads that matter,
    /// so that none is missed.
    pub fn new() -> io::Result<Self> {
        Signals::new([SIGTERM, SIGINT]).map(Self)
    }

    /// Blocks until one comes and tells its name.
    pub fn wait(&mut self) -> &'static str {
        name(self.0.forever().next())
    }

    /// The name of one that has come, if any.
    pub fn came(&mut self) -> Option<&'static str> {
        self.0.pending().next().map(|signal| name(Some(signal)))
    }
}

fn name(signal: Option<i32>) -> &'static str {
    match signal {
        Some(SIGINT) => "SIGINT",
        _ => "SIGTERM",
    }
}
