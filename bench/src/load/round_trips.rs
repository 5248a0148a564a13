//! Small messages there and back on connections that stay open.

use std::{io, time::Duration};

use super::{Connection, Dialer, Mode, WORKERS, Window, offer};
use crate::{protocol::Request, targets::Target};

/// Size of a message: about what a small API request or answer is.
const MESSAGE: usize = 1024;
/// Connections per worker, used in turn.
const PER_WORKER: usize = 2;

/// Connections to one proxy, and the message they carry.
#[derive(Debug)]
pub(crate) struct RoundTrips {
    frame: Vec<u8>,
    workers: Vec<Lanes>,
}

#[derive(Debug)]
struct Lanes {
    connections: Vec<Connection>,
    turn: usize,
}

impl RoundTrips {
    /// Opens the connections.
    pub(crate) fn open(dialer: &Dialer, target: &Target, mode: Mode) -> io::Result<Self> {
        let lanes = |_| {
            let connections: io::Result<_> =
                (0..PER_WORKER).map(|_| dialer.open(target, mode)).collect();
            io::Result::Ok(Lanes {
                connections: connections?,
                turn: 0,
            })
        };
        let workers = (0..WORKERS).map(lanes).collect::<io::Result<_>>()?;
        Ok(Self {
            frame: Request::echo_frame(MESSAGE),
            workers,
        })
    }

    /// Sends messages at a fixed rate.
    pub(crate) fn at_rate(&mut self, rate: f64, length: Duration) -> Window {
        let frame = &self.frame;
        offer(&mut self.workers, rate, length, |lanes| {
            lanes.turn = (lanes.turn + 1) % lanes.connections.len();
            lanes.connections[lanes.turn].echo(frame)
        })
    }
}
