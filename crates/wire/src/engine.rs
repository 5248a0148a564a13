//! Starting, watching and draining the workers.
//!
//! One thread per core, each with its own epoll instance, listening sockets and
//! sessions: nothing is shared between them but the program and the count of
//! descriptors. A connection stays on the thread that accepted it.

use std::{
    io,
    net::SocketAddr,
    os::fd::OwnedFd,
    process,
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{
    counters::{Counters, Snapshot},
    descriptors::Descriptors,
    inbox::{Inbox, Message},
    listener::{self, Listen, ListenError, Listeners},
    memory::Memory,
    program::Program,
    worker::{Place, Shared, Worker},
};

/// How the engine behaves. [`Config::default`] is right for all our programs.
#[derive(Debug, Clone)]
pub struct Config {
    /// Worker threads. Zero: one per core, at most four.
    pub workers: usize,
    /// From accept until the program has decided.
    pub hello_timeout: Duration,
    /// For each address that is dialled.
    pub connect_timeout: Duration,
    /// For the handshakes of both legs, once connected; also for waiting for an
    /// address ([`crate::Next::Wait`]).
    pub handshake_timeout: Duration,
    /// For a connection of which one side has finished, without a byte of the other.
    pub half_closed_timeout: Duration,
    /// Refused clients that are waited for until they have read why, all workers
    /// together. Those beyond are closed at once.
    pub lingering: usize,
    /// Bytes that such a client may still send.
    pub linger_bytes: usize,
    /// How long it may take.
    pub linger_timeout: Duration,
    /// Bytes of a client kept while the program has not decided. Bounds what
    /// slow clients can pin.
    pub peek_limit: usize,
    /// Size of a splice pipe. 256 KiB gets nearly all of the gain.
    pub pipe_capacity: usize,
    /// Splice pipes of all workers together; zero never splices.
    pub pipes: usize,
    /// Bytes that all connections together may hold in buffers, the kernel's included. When
    /// they hold more, the largest of whoever holds the most are reset. `None`: no limit.
    pub max_buffered: Option<u64>,
    /// Sockets at most, all together. `None`: what the process may open, less a
    /// reserve.
    pub max_descriptors: Option<usize>,
}

/// Running workers. Dropping it cuts all connections and waits for the threads.
#[derive(Debug)]
pub struct Engine {
    workers: Vec<Running>,
    addresses: Vec<SocketAddr>,
    /// Listeners that a successor may share, all workers'.
    shared: Vec<OwnedFd>,
    restarts: u64,
}

#[derive(Debug)]
struct Running {
    inbox: Arc<Inbox>,
    counters: Arc<Counters>,
    thread: Option<JoinHandle<()>>,
}

/// What [`Engine::drain`] achieved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Connections that had to be cut at the deadline.
    pub remaining: u64,
}

/// Why the engine did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A listener could not be made.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The kernel refused something every worker needs.
    #[error("could not {operation}: check the limits on open files and threads")]
    System {
        /// What was tried.
        operation: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}

/// How long a shared listener goes on taking connections after it stopped remembering
/// those that are only half open.
const HAND_OVER: Duration = Duration::from_secs(1);

/// Descriptors kept for the admin page, files being reloaded and the like.
const RESERVE: usize = 64;

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            workers: 0,
            hello_timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(5),
            handshake_timeout: Duration::from_secs(10),
            // An API server's own limit on a request is one minute.
            half_closed_timeout: Duration::from_mins(2),
            lingering: 1024,
            linger_bytes: 64 * 1024,
            linger_timeout: Duration::from_secs(1),
            peek_limit: 16 * 1024,
            pipe_capacity: 1024 * 1024,
            // 1 MiB each is half of what an unprivileged user may hold.
            pipes: 32,
            max_buffered: None,
            max_descriptors: None,
        }
    }
}

impl Config {
    /// The number of threads that [`Engine::start`] will use.
    pub fn effective_workers(&self) -> usize {
        match self.workers {
            0 => thread::available_parallelism()
                .map_or(1, usize::from)
                .min(4),
            workers => workers,
        }
    }

    /// How many sockets [`Engine::start`] will allow, clients' and servers' together.
    pub fn sockets(&self) -> usize {
        let own = self.pipes * 2 + self.effective_workers() * 4 + RESERVE;
        self.max_descriptors
            .unwrap_or_else(|| raise_open_files().saturating_sub(own))
            .max(16)
    }
}

/// Raises the soft limit to the hard one and returns it.
fn raise_open_files() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let usable = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    usable.map_or(1 << 20, |limit| usize::try_from(limit).unwrap_or(1 << 20))
}

/// A worker that panics takes the process with it: where a second handle of its listeners
/// exists, clients would go on being queued for a thread that is gone.
struct Whole;

impl Drop for Whole {
    fn drop(&mut self) {
        if thread::panicking() {
            process::abort();
        }
    }
}

// === impl Engine ===

impl Engine {
    /// Binds all listeners on all workers and starts serving.
    pub fn start<P: Program>(
        config: &Config,
        listen: &[Listen],
        program: &Arc<P>,
    ) -> Result<Self, StartError> {
        let listeners = listener::bind_all(listen, config.effective_workers())?;
        Self::serve(config, listeners, program)
    }

    /// Starts serving on listeners that are bound already.
    pub fn serve<P: Program>(
        config: &Config,
        listeners: Listeners,
        program: &Arc<P>,
    ) -> Result<Self, StartError> {
        let count = listeners.sockets.len();
        let descriptors = Arc::new(Descriptors::new(config.sockets()));
        let memory = Arc::new(Memory::new(count, config.max_buffered));
        let mut engine = Self {
            workers: Vec::with_capacity(count),
            addresses: listeners.addresses,
            shared: listeners.shared,
            restarts: listeners.restarts,
        };
        for (index, sockets) in listeners.sockets.into_iter().enumerate() {
            let system =
                |operation| move |source: io::Error| StartError::System { operation, source };
            let inbox = Inbox::new()
                .map_err(io::Error::from)
                .map_err(system("make an eventfd"))?;
            let inbox = Arc::new(inbox);
            let counters = Arc::new(Counters::default());
            let shared = Shared {
                program: Arc::clone(program),
                counters: Arc::clone(&counters),
                descriptors: Arc::clone(&descriptors),
                memory: Arc::clone(&memory),
            };
            let worker = Worker::new(
                Place::new(index, Arc::clone(&inbox)),
                count,
                config,
                sockets,
                shared,
            )
            .map_err(system("make an epoll instance"))?;
            let thread = thread::Builder::new()
                .name(format!("worker-{index}"))
                .spawn(move || {
                    let _whole = Whole;
                    worker.run();
                })
                .map_err(system("start a worker thread"))?;
            engine.workers.push(Running {
                inbox,
                counters,
                thread: Some(thread),
            });
        }
        Ok(engine)
    }

    /// The addresses listened on, in the order given; a port of zero is resolved.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What all workers counted so far.
    pub fn counters(&self) -> Snapshot {
        self.counters_handle().snapshot()
    }

    /// A cheap handle for the admin page, which outlives no engine but needs none.
    pub fn counters_handle(&self) -> CountersHandle {
        let workers = self.workers.iter();
        CountersHandle {
            workers: workers.map(|w| Arc::clone(&w.counters)).collect(),
            restarts: self.restarts,
        }
    }

    /// Stops accepting, lets live connections finish for at most `limit`, then
    /// cuts the rest.
    pub fn drain(mut self, limit: Duration) -> Drained {
        let deadline = Instant::now() + limit;
        self.hand_over(limit);
        self.send(Message::Drain);
        while Instant::now() < deadline && !self.finished() {
            // Nobody waits for this thread; a drain takes seconds to minutes.
            thread::sleep(Duration::from_millis(20).min(limit));
        }
        let remaining = if self.finished() {
            0
        } else {
            self.counters().live
        };
        self.stop();
        Drained { remaining }
    }

    /// Closing a listener resets the clients whose connection is only half open there. Where
    /// another process listens on the same address, it can take them: without a backlog the
    /// kernel answers by cookie, and any listener on the address may redeem it.
    fn hand_over(&mut self, limit: Duration) {
        let shared = std::mem::take(&mut self.shared);
        for listener in &shared {
            // At worst, a client has to connect again.
            let _ = rustix::net::listen(listener, 0);
        }
        if !shared.is_empty() {
            thread::sleep(HAND_OVER.min(limit));
        }
    }

    fn finished(&self) -> bool {
        self.workers
            .iter()
            .all(|worker| worker.thread.as_ref().is_none_or(JoinHandle::is_finished))
    }

    fn send(&self, message: Message) {
        for worker in &self.workers {
            worker.inbox.send(message);
        }
    }

    fn stop(&mut self) {
        self.send(Message::Cut);
        for worker in &mut self.workers {
            if let Some(thread) = worker.thread.take() {
                // A worker that panicked has said so on stderr.
                let _ = thread.join();
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Reads the engine's counters from anywhere.
#[derive(Debug, Clone)]
pub struct CountersHandle {
    workers: Vec<Arc<Counters>>,
    restarts: u64,
}

impl CountersHandle {
    /// What all workers counted so far.
    pub fn snapshot(&self) -> Snapshot {
        let counters: Vec<&Counters> = self.workers.iter().map(AsRef::as_ref).collect();
        Snapshot {
            restarts: self.restarts,
            ..Snapshot::of(&counters)
        }
    }
}
