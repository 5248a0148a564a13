//! Many connections at once, each with words of its own, and what harms a server.

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hasher, RandomState},
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::AsRawFd,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use rustix::{
    buffer::spare_capacity,
    event::{
        Timespec,
        epoll::{self, CreateFlags, EventData, EventFlags},
    },
    process::{Resource, Rlimit, getrlimit, setrlimit},
};
use rustls::{ClientConfig, ClientConnection, StreamOwned, pki_types::ServerName};

use super::program::{PATIENCE, wait_until};

/// Threads that open connections.
const OPENERS: usize = 8;

/// For tests that need most of the descriptors this process may have: they come one by one.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let _ = setrlimit(Resource::Nofile, raised);
    guard
}

/// A server that echoes on any number of connections and can go and come back: it stops to
/// listen, but keeps what it has.
pub(crate) struct Echo {
    pub(crate) address: SocketAddr,
    wanted: Arc<AtomicBool>,
    listening: Arc<AtomicBool>,
}

impl Echo {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let echo = Self {
            address: listener.local_addr().unwrap(),
            wanted: Arc::new(AtomicBool::new(true)),
            listening: Arc::new(AtomicBool::new(true)),
        };
        let (wanted, listening) = (Arc::clone(&echo.wanted), Arc::clone(&echo.listening));
        thread::spawn(move || Loop::new(listener).run(&wanted, &listening));
        echo
    }

    pub(crate) fn go(&self) {
        self.turn(false);
    }

    pub(crate) fn come_back(&self) {
        self.turn(true);
    }

    fn turn(&self, on: bool) {
        self.wanted.store(on, Relaxed);
        wait_until("the server heeds", || self.listening.load(Relaxed) == on);
    }
}

struct Loop {
    epoll: std::os::fd::OwnedFd,
    address: SocketAddr,
    listener: Option<TcpListener>,
    streams: HashMap<u64, TcpStream>,
}

/// The listener's token; streams have their descriptor's number.
const LISTENER: u64 = u64::MAX;

impl Loop {
    fn new(listener: TcpListener) -> Self {
        let mut all = Self {
            epoll: epoll::create(CreateFlags::CLOEXEC).unwrap(),
            address: listener.local_addr().unwrap(),
            listener: None,
            streams: HashMap::new(),
        };
        all.listen(listener);
        all
    }

    fn listen(&mut self, listener: TcpListener) {
        self.watch(&listener, LISTENER);
        self.listener = Some(listener);
    }

    fn watch(&self, fd: &impl std::os::fd::AsFd, token: u64) {
        epoll::add(&self.epoll, fd, EventData::new_u64(token), EventFlags::IN).unwrap();
    }

    /// Until the test's process ends.
    fn run(mut self, wanted: &AtomicBool, listening: &AtomicBool) {
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: 20_000_000,
        };
        loop {
            match (wanted.load(Relaxed), self.listener.is_some()) {
                (false, true) => self.listener = None,
                (true, false) => {
                    if let Ok(listener) = TcpListener::bind(self.address) {
                        self.listen(listener);
                    }
                }
                _ => {}
            }
            listening.store(self.listener.is_some(), Relaxed);
            let mut events = Vec::with_capacity(256);
            epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout)).unwrap();
            for event in events {
                self.serve(event.data.u64());
            }
        }
    }

    fn serve(&mut self, token: u64) {
        if token == LISTENER {
            if let Some(Ok((stream, _))) = self.listener.as_ref().map(TcpListener::accept) {
                let key = u64::try_from(stream.as_raw_fd()).unwrap();
                self.watch(&stream, key);
                self.streams.insert(key, stream);
            }
            return;
        }
        let Some(stream) = self.streams.get_mut(&token) else {
            return;
        };
        let mut buffer = [0; 4096];
        let alive = match stream.read(&mut buffer) {
            Ok(count @ 1..) => stream.write_all(&buffer[..count]).is_ok(),
            _ => false,
        };
        if !alive {
            self.streams.remove(&token);
        }
    }
}

/// A stream of any kind.
pub(crate) trait Stream: Read + Write + Send {}

impl<S: Read + Write + Send> Stream for S {}

/// One live connection, told from all others by what it says.
pub(crate) struct Live {
    stream: Box<dyn Stream>,
    number: usize,
}

impl Live {
    fn words(&self, round: usize) -> String {
        format!("{:08}{round:08}", self.number)
    }
}

/// Opens `count` connections, several at a time; each has made its first round.
pub(crate) fn open(
    numbers: std::ops::Range<usize>,
    connect: impl Fn(usize) -> Box<dyn Stream> + Sync,
) -> Vec<Live> {
    let connect = &connect;
    thread::scope(|scope| {
        let openers: Vec<_> = (0..OPENERS)
            .map(|first| {
                let numbers = numbers.clone().skip(first).step_by(OPENERS);
                scope.spawn(move || {
                    let one = |number| {
                        let stream = connect(number);
                        let mut live = [Live { stream, number }];
                        all_live(&mut live, 0);
                        live
                    };
                    numbers.flat_map(one).collect::<Vec<_>>()
                })
            })
            .collect();
        let opened = openers.into_iter().map(|opener| opener.join().unwrap());
        opened.flatten().collect()
    })
}

/// Every one says its own words and gets them back.
pub(crate) fn all_live(live: &mut [Live], round: usize) {
    for one in &mut *live {
        let words = one.words(round);
        one.stream.write_all(words.as_bytes()).unwrap();
        one.stream.flush().unwrap();
    }
    for one in live {
        let mut back = [0; 16];
        let lived = one.stream.read_exact(&mut back);
        assert!(lived.is_ok(), "connection {}: {lived:?}", one.number);
        assert_eq!(String::from_utf8_lossy(&back), one.words(round));
    }
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// A TLS client whose sessions are resumed: a crowd needs not be a crowd of full handshakes.
pub(crate) fn tls(
    address: SocketAddr,
    config: &Arc<ClientConfig>,
    name: &str,
) -> StreamOwned<ClientConnection, TcpStream> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connection = ClientConnection::new(Arc::clone(config), name).unwrap();
    StreamOwned::new(connection, connect(address))
}

/// The first bytes that a TLS client says.
pub(crate) fn hello(config: &Arc<ClientConfig>, name: &str) -> Vec<u8> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut connection = ClientConnection::new(Arc::clone(config), name).unwrap();
    let mut bytes = Vec::new();
    while connection.wants_write() {
        connection.write_tls(&mut bytes).unwrap();
    }
    bytes
}

/// A handshake message of 16 MiB, in records that all promise more.
pub(crate) fn endless_hello(stream: &mut TcpStream) {
    let mut record = vec![22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff];
    record.resize(5 + 0x4000, 7);
    for _ in 0..8 {
        if stream.write_all(&record).is_err() {
            return;
        }
        record[5..9].fill(7);
    }
}

/// A number below `limit`, another one each time.
pub(crate) fn any_below(limit: usize) -> usize {
    let random = RandomState::new().build_hasher().finish();
    usize::try_from(random % u64::try_from(limit).unwrap()).unwrap()
}

/// Makes the connection be reset instead of closed when it is dropped.
pub(crate) fn reset(stream: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    drop(stream);
}
