//! The load generator: the same operations, at the same rate, for every proxy.
//!
//! Blocking threads on purpose: what the client does per operation does not
//! depend on how busy the proxy is, which makes its CPU time a fair yardstick.

pub(crate) mod bulk;
pub(crate) mod connections;
pub(crate) mod round_trips;

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use rustls::{ClientConfig, ClientConnection, StreamOwned, pki_types::ServerName};

use crate::{
    pki::{DOMAIN, NODE_NAME, Pki},
    protocol::Request,
    targets::{HOSTS, Kind, Target},
};

/// No answer for this long is an error.
const PATIENCE: Duration = Duration::from_secs(5);
/// Threads that share an offered rate: more than are ever busy at once, so that
/// a stall of one operation does not hold the next ones back.
const WORKERS: u32 = 16;
/// What a new connection says and hears before it counts as open.
const GREETING: usize = 64;

/// Opens connections to proxies.
#[derive(Debug)]
pub(crate) struct Dialer {
    tls: Arc<ClientConfig>,
    tls_names: Vec<ServerName<'static>>,
    node_name: ServerName<'static>,
    hellos: Vec<Vec<u8>>,
    greeting: Vec<u8>,
    turn: AtomicU8,
}

/// What goes over a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// TLS 1.3, full handshake.
    Tls,
    /// A `ClientHello` and then plain frames: the proxy's cost without the ends'.
    Raw,
}

/// An open connection.
#[derive(Debug)]
pub(crate) enum Connection {
    /// With TLS on it.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
    /// Without.
    Raw(TcpStream),
}

/// What was done in one window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    /// Operations done (or GB).
    pub(crate) done: f64,
    /// Operations wanted; nothing for a closed loop.
    pub(crate) wanted: Option<f64>,
    /// Operations that failed.
    pub(crate) errors: u64,
    /// How long the window should have taken.
    pub(crate) length: Duration,
    /// How long it took.
    pub(crate) took: Duration,
}

impl Window {
    /// Share of the offered rate that was achieved.
    pub(crate) fn achieved(&self) -> f64 {
        let share = self.wanted.map_or(1.0, |wanted| self.done / wanted);
        share * (self.length.as_secs_f64() / self.took.as_secs_f64().max(1e-9)).min(1.0)
    }
}

impl Dialer {
    /// With the run's certificates.
    pub(crate) fn new(pki: &Pki) -> Result<Self> {
        let tls = pki.client()?;
        let name =
            |kind: char, number: u8| ServerName::try_from(format!("{kind}{number}.{DOMAIN}"));
        let mut hellos = Vec::new();
        let mut tls_names = Vec::new();
        for number in 0..HOSTS {
            tls_names.push(name('t', number)?);
            hellos.push(hello(&tls, name('r', number)?)?);
        }
        Ok(Self {
            tls,
            tls_names,
            node_name: ServerName::try_from(NODE_NAME)?,
            hellos,
            greeting: Request::echo_frame(GREETING),
            turn: AtomicU8::new(0),
        })
    }

    /// Connects, shakes hands, and exchanges a first frame.
    pub(crate) fn open(&self, target: &Target, mode: Mode) -> io::Result<Connection> {
        self.open_port(target.port, target.kind, mode)
    }

    /// The same, to the backend itself.
    pub(crate) fn open_direct(&self) -> io::Result<Connection> {
        self.open_port(crate::backend::TLS_PORT, Kind::Node, Mode::Tls)
    }

    fn open_port(&self, port: u16, kind: Kind, mode: Mode) -> io::Result<Connection> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % HOSTS;
        let socket = Self::socket(port, turn)?;
        let mut connection = match mode {
            Mode::Raw => raw(socket, &self.hellos[usize::from(turn)])?,
            Mode::Tls => {
                let name = match kind {
                    Kind::Front => &self.tls_names[usize::from(turn)],
                    Kind::Node => &self.node_name,
                };
                let tls = ClientConnection::new(Arc::clone(&self.tls), name.clone());
                let tls = tls.map_err(io::Error::other)?;
                Connection::Tls(Box::new(StreamOwned::new(tls, socket)))
            }
        };
        connection.echo(&self.greeting)?;
        Ok(connection)
    }

    /// Opens a raw connection to a host that is not one of the standard ones.
    pub(crate) fn open_host(&self, target: &Target, host: &str) -> Result<Connection> {
        let hello = hello(&self.tls, ServerName::try_from(host.to_owned())?)?;
        let mut connection = raw(Self::socket(target.port, 0)?, &hello)?;
        connection.echo(&self.greeting)?;
        Ok(connection)
    }

    /// One connection each way a proxy is going to be used.
    pub(crate) fn probe(&self, target: &Target) -> io::Result<()> {
        self.open(target, Mode::Tls)?;
        if target.kind == Kind::Front {
            self.open(target, Mode::Raw)?;
        }
        Ok(())
    }

    fn socket(port: u16, turn: u8) -> io::Result<TcpStream> {
        let address = SocketAddr::from((Ipv4Addr::new(127, 0, 2, turn + 1), port));
        let socket = TcpStream::connect_timeout(&address, PATIENCE)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(socket)
    }
}

impl Connection {
    /// Sends a frame and reads as much back.
    pub(crate) fn echo(&mut self, frame: &[u8]) -> io::Result<()> {
        let mut answer = [0_u8; 4096];
        let answer = answer
            .get_mut(..frame.len())
            .ok_or_else(|| io::Error::other("a frame larger than the load generator expects"))?;
        match self {
            Self::Tls(stream) => exchange(stream.as_mut(), frame, answer)?,
            Self::Raw(stream) => exchange(stream, frame, answer)?,
        }
        if answer == frame {
            Ok(())
        } else {
            Err(io::Error::other("the answer is not the frame"))
        }
    }
}

fn exchange<S: Read + Write>(stream: &mut S, frame: &[u8], answer: &mut [u8]) -> io::Result<()> {
    stream.write_all(frame)?;
    stream.flush()?;
    stream.read_exact(answer)
}

/// Says hello and leaves it at that.
fn raw(mut socket: TcpStream, hello: &[u8]) -> io::Result<Connection> {
    socket.write_all(hello)?;
    Ok(Connection::Raw(socket))
}

/// The bytes of a `ClientHello` for this name.
fn hello(config: &Arc<ClientConfig>, name: ServerName<'static>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    ClientConnection::new(Arc::clone(config), name)?.write_tls(&mut bytes)?;
    Ok(bytes)
}

/// Offers `operation` at a fixed rate for a while. Worker `n` does every
/// `WORKERS`-th one at its due time, or as soon after as it is free.
fn offer<T: Send>(
    states: &mut [T],
    rate: f64,
    length: Duration,
    operation: impl Fn(&mut T) -> io::Result<()> + Sync,
) -> Window {
    let wanted = rate * length.as_secs_f64();
    let (tried, errors) = (AtomicU64::new(0), AtomicU64::new(0));
    let begun = Instant::now();
    let workers = u32::try_from(states.len()).unwrap_or(WORKERS);
    let interval = Duration::from_secs_f64(f64::from(workers) / rate);
    thread::scope(|scope| {
        for (number, state) in (0..workers).zip(states) {
            let (operation, tried, errors) = (&operation, &tried, &errors);
            scope.spawn(move || {
                let mut due = begun + interval.mul_f64(f64::from(number) / f64::from(workers));
                while due.duration_since(begun) < length {
                    thread::sleep(due.saturating_duration_since(Instant::now()));
                    tried.fetch_add(1, Ordering::Relaxed);
                    if operation(state).is_err() {
                        errors.fetch_add(1, Ordering::Relaxed);
                    }
                    due += interval;
                }
            });
        }
    });
    let errors = errors.into_inner();
    #[expect(clippy::cast_precision_loss, reason = "a few thousand operations")]
    let done = tried.into_inner().saturating_sub(errors) as f64;
    Window {
        done,
        wanted: Some(wanted),
        errors,
        length,
        took: begun.elapsed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_offered_exactly_when_nothing_holds_it_up() {
        let mut counts = vec![0_u32; 4];
        let window = offer(&mut counts, 400.0, Duration::from_millis(50), |count| {
            *count += 1;
            Ok(())
        });
        assert_eq!(counts.iter().sum::<u32>(), 20);
        assert_eq!(window.errors, 0);
        assert!((window.done - 20.0).abs() < 1e-9);
    }

    #[test]
    fn a_late_window_achieves_less_than_it_offered() {
        let window = Window {
            done: 100.0,
            wanted: Some(100.0),
            errors: 0,
            length: Duration::from_millis(300),
            took: Duration::from_millis(600),
        };
        assert!((window.achieved() - 0.5).abs() < 1e-9);
    }
}
