//! What a host's first process can be told, one line of JSON each way.

use std::{
    io::{self, Read, Write},
    net::SocketAddr,
    os::unix::net::UnixStream,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{Nudge, Unit, dial, units::Units};

/// Longer than any unit's command line.
const LONGEST_LINE: usize = 1 << 20;

/// An order.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Run this program from now on.
    Start(Unit),
    /// End it and forget it.
    Stop(String),
    /// Send it a signal.
    Nudge(String, Nudge),
    /// Tell about all programs.
    List,
    /// Connect to an address from this host; the connection's bytes follow.
    Dial(SocketAddr),
}

/// The answer to an order.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// Done.
    Done,
    /// What runs here.
    Units(Vec<UnitState>),
    /// Not done, and why.
    Failed(String),
}

/// How a program of a host is doing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UnitState {
    /// Its name.
    pub name: String,
    /// Its process, as the host numbers it, while it runs.
    pub pid: Option<i32>,
    /// How often it was started after the first time.
    pub restarts: u32,
    /// How it ended the last time.
    pub last_end: Option<String>,
}

pub(super) fn serve(mut stream: UnixStream, units: &Units) -> io::Result<()> {
    let answer = match read_line(&mut stream)? {
        Order::Start(unit) => units.start(unit),
        Order::Stop(name) => units.stop(&name),
        Order::Nudge(name, nudge) => units.nudge(&name, nudge),
        Order::List => Answer::Units(units.list()),
        Order::Dial(to) => return dial::serve(stream, to),
    };
    write_line(&mut stream, &answer)
}

pub(super) fn write_line(stream: &mut UnixStream, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Reads byte by byte: what follows the line belongs to the connection.
pub(super) fn read_line<T: DeserializeOwned>(stream: &mut UnixStream) -> io::Result<T> {
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < LONGEST_LINE {
        stream.read_exact(&mut byte)?;
        if byte[0] == b'\n' {
            return Ok(serde_json::from_slice(&line)?);
        }
        line.push(byte[0]);
    }
    Err(io::Error::other("the line does not end"))
}
