//! The engine from the outside: real sockets, a program that decides little.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't set up its scene fails"
)]

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use steward_wire::{
    Accepted, ClientLeg, Config, Context, DialFailure, End, Engine, First, Listen, Next, Opened,
    Peek, Program, Refusal, Route, Summary, Transform, TransformError, Waker,
};

/// Long enough for a loaded machine, short enough to fail before the night.
const PATIENCE: Duration = Duration::from_secs(30);

/// Flips every byte and needs one byte of handshake, sent by the opener.
#[derive(Debug)]
struct Flip {
    opener: bool,
    ready: bool,
    key: u8,
}

/// Ends the stream, in the flipped protocol. Never sent as payload by the tests.
const GOODBYE: u8 = 0;

impl Flip {
    fn boxed(opener: bool) -> Box<dyn Transform> {
        Box::new(Self {
            opener,
            ready: false,
            key: 0,
        })
    }
}

impl Transform for Flip {
    fn open(
        &mut self,
        wire: &mut [u8],
        plain: &mut Vec<u8>,
        reply: &mut Vec<u8>,
    ) -> Result<Opened, TransformError> {
        let mut wire = &wire[..];
        if !self.ready && self.opener && wire.is_empty() {
            reply.push(0x5a);
        }
        if !self.ready
            && let Some((first, rest)) = wire.split_first()
        {
            if self.opener {
                self.key = *first;
            } else {
                if *first != 0x5a {
                    return Err(TransformError("that is not a handshake".into()));
                }
                self.key = 0x33;
                reply.push(self.key);
            }
            self.ready = true;
            wire = rest;
        }
        for byte in wire {
            match byte ^ self.key {
                GOODBYE => return Ok(Opened::Eof),
                other => plain.push(other),
            }
        }
        Ok(Opened::Open)
    }

    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> Result<(), TransformError> {
        wire.extend(plain.iter().map(|byte| byte ^ self.key));
        Ok(())
    }

    fn close(&mut self, wire: &mut Vec<u8>) {
        wire.push(GOODBYE ^ self.key);
    }

    fn ready(&self) -> bool {
        self.ready
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Peek one byte, which is passed on.
    Plain,
    /// Dial before a byte is read.
    Eager,
    /// The client's side is flipped.
    FlipClient,
    /// The server's side is flipped.
    FlipServer,
    /// Both are; the client's side is built when the server's is ready.
    FlipBothLater,
    /// Wait for a waker before dialling.
    Wait,
    /// Never decide.
    Undecided,
    /// Refuse with a sentence.
    Refuse,
}

struct Test {
    mode: Mode,
    addresses: Vec<SocketAddr>,
    ends: Mutex<mpsc::Sender<(End, u64, u64)>>,
    wakers: Mutex<Vec<Waker>>,
}

impl Program for Test {
    type Session = usize;

    fn accept(&self, _cx: &Context<'_>, _peer: SocketAddr) -> Result<Accepted<usize>, Refusal> {
        let first = match self.mode {
            Mode::Eager => First::Dial(Box::default()),
            _ => First::Peek,
        };
        Ok(Accepted { session: 0, first })
    }

    fn peek(&self, _cx: &Context<'_>, _session: &mut usize, bytes: &[u8], _seen: usize) -> Peek {
        assert!(!bytes.is_empty());
        let (client, server) = match self.mode {
            Mode::Undecided => return Peek::More,
            Mode::Refuse => {
                return Peek::Refuse(Refusal {
                    reply: b"no, thank you".into(),
                    reason: "test",
                });
            }
            Mode::FlipClient => (ClientLeg::Tls(Flip::boxed(false)), None),
            Mode::FlipServer => (ClientLeg::Plain, Some(Flip::boxed(true))),
            Mode::FlipBothLater => (ClientLeg::Later, Some(Flip::boxed(true))),
            Mode::Plain | Mode::Eager | Mode::Wait => (ClientLeg::Plain, None),
        };
        Peek::Dial(Box::new(Route {
            client,
            server,
            ..Route::default()
        }))
    }

    fn dial(&self, cx: &Context<'_>, tried: &mut usize, failure: Option<&DialFailure>) -> Next {
        if self.mode == Mode::Wait && *tried == 0 && failure.is_none() {
            *tried = 1;
            self.wakers.lock().unwrap().push(cx.waker());
            return Next::Wait;
        }
        let place = if self.mode == Mode::Wait { 0 } else { *tried };
        *tried += 1;
        match self.addresses.get(place) {
            Some(address) => Next::Connect(*address),
            None => Next::GiveUp(Refusal::silent("nobody_answers")),
        }
    }

    fn server_ready(
        &self,
        _cx: &Context<'_>,
        _session: &mut usize,
        server: &dyn Transform,
    ) -> Result<Box<dyn Transform>, Refusal> {
        assert!(server.ready());
        Ok(Flip::boxed(false))
    }

    fn finished(&self, _cx: &Context<'_>, _session: usize, summary: &Summary) {
        let end = (summary.end.clone(), summary.to_server, summary.to_client);
        let _ = self.ends.lock().unwrap().send(end);
    }
}

struct Setup {
    engine: Engine,
    program: Arc<Test>,
    ends: mpsc::Receiver<(End, u64, u64)>,
}

fn start(mode: Mode, addresses: Vec<SocketAddr>, config: &Config) -> Setup {
    let (sender, ends) = mpsc::channel();
    let program = Arc::new(Test {
        mode,
        addresses,
        ends: Mutex::new(sender),
        wakers: Mutex::default(),
    });
    let speaks_first = mode != Mode::Eager;
    let listen = Listen {
        client_speaks_first: speaks_first,
        ..Listen::new(local())
    };
    let engine = Engine::start(config, &[listen], &program).unwrap();
    Setup {
        engine,
        program,
        ends,
    }
}

impl Setup {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.engine.addresses()[0]).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn end(&self) -> (End, u64, u64) {
        self.ends.recv_timeout(PATIENCE).expect("a connection ends")
    }
}

fn local() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !reached() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A server that runs `serve` on every connection.
fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind(local()).unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
            thread::spawn(move || serve(stream));
        }
    });
    address
}

/// Reads to the end, then sends everything back: only half-close makes that work.
fn mirror() -> SocketAddr {
    server(|mut stream| {
        let mut all = Vec::new();
        if stream.read_to_end(&mut all).is_ok() {
            let _ = stream.write_all(&all);
        }
    })
}

/// Sends back what it gets as it gets it.
fn echo() -> SocketAddr {
    server(|mut stream| {
        let mut buffer = vec![0; 100_000];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            if stream.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
    })
}

/// Bytes that repeat late and never contain a zero.
fn noise(length: usize, seed: u32) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state % 251) as u8 + 1
    };
    (0..length).map(|_| next()).collect()
}

/// Sends `sent` in pieces while reading, ends its half, and returns what came back.
fn exchange(mut stream: TcpStream, sent: Vec<u8>, goodbye: &[u8]) -> Vec<u8> {
    let mut writer = stream.try_clone().unwrap();
    let goodbye = goodbye.to_vec();
    let writing = thread::spawn(move || {
        let mut rest = &sent[..];
        let mut piece = 1;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(piece.min(rest.len()));
            writer.write_all(now).unwrap();
            rest = later;
            piece = (piece * 7 + 1) % 150_000 + 1;
        }
        writer.write_all(&goodbye).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    writing.join().unwrap();
    received
}

const SIZES: [usize; 7] = [1, 100, 16_384, 65_536, 65_537, 1_000_000, 6_000_003];

#[test]
fn bytes_arrive_whole_with_half_closes_in_both_orders() {
    for backend in [mirror(), echo()] {
        for pipes in [0, 4] {
            let config = Config {
                pipes,
                workers: 1,
                ..Config::default()
            };
            let setup = start(Mode::Plain, vec![backend], &config);
            for (seed, size) in (1..).zip(SIZES) {
                let sent = noise(size, seed);
                let received = exchange(setup.connect(), sent.clone(), &[]);
                assert!(received == sent, "{size} bytes, {pipes} pipes");
                assert_eq!(setup.end(), (End::Closed, size as u64, size as u64));
            }
            let spliced = setup.engine.counters().spliced;
            assert_eq!(
                spliced > 0,
                pipes > 0,
                "large streams are spliced if they may be"
            );
        }
    }
}

#[test]
fn many_connections_at_once_do_not_mix() {
    let setup = start(Mode::Plain, vec![echo()], &Config::default());
    thread::scope(|scope| {
        for seed in 1..40 {
            let stream = setup.connect();
            scope.spawn(move || {
                let sent = noise(200_000 + seed as usize * 1000, seed);
                assert!(exchange(stream, sent.clone(), &[]) == sent);
            });
        }
    });
    until("all have ended", || setup.engine.counters().live == 0);
}

#[test]
fn a_server_may_speak_first() {
    let address = server(|mut stream| stream.write_all(b"welcome").unwrap());
    let setup = start(Mode::Eager, vec![address], &Config::default());
    let mut words = String::new();
    setup.connect().read_to_string(&mut words).unwrap();
    assert_eq!(words, "welcome");
}

/// What a client of the flipped protocol would send and get.
fn flip(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| byte ^ 0x33).collect()
}

#[test]
fn a_transform_on_the_clients_side_opens_and_seals() {
    for mode in [Mode::FlipClient, Mode::FlipBothLater] {
        // Behind the second mode the server speaks the flipped protocol too.
        let backend = match mode {
            Mode::FlipClient => mirror(),
            _ => server(|mut stream| {
                let mut first = [0];
                stream.read_exact(&mut first).unwrap();
                assert_eq!(first, [0x5a]);
                stream.write_all(&[0x77]).unwrap();
                let mut all = Vec::new();
                stream.read_to_end(&mut all).unwrap();
                assert_eq!(all.pop(), Some(GOODBYE ^ 0x77), "the end is said");
                all.push(GOODBYE ^ 0x77);
                stream.write_all(&all).unwrap();
            }),
        };
        let setup = start(mode, vec![backend], &Config::default());
        for (seed, size) in (1..).zip(SIZES) {
            let sent = noise(size, seed);
            let mut stream = setup.connect();
            stream.write_all(&[0x5a]).unwrap();
            let mut answer = [0];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(answer, [0x33]);
            let mut received = exchange(stream, flip(&sent), &[GOODBYE ^ 0x33]);
            assert_eq!(received.pop(), Some(GOODBYE ^ 0x33), "the end is said");
            assert!(flip(&received) == sent, "{mode:?}, {size} bytes");
            assert_eq!(setup.end(), (End::Closed, size as u64, size as u64));
        }
    }
}

#[test]
fn a_transform_on_the_servers_side_seals_and_opens() {
    let backend = server(|mut stream| {
        let mut first = [0];
        stream.read_exact(&mut first).unwrap();
        stream.write_all(&[0x77]).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(&all).unwrap();
    });
    let setup = start(Mode::FlipServer, vec![backend], &Config::default());
    let sent = noise(300_000, 9);
    assert!(exchange(setup.connect(), sent.clone(), &[]) == sent);
}

#[test]
fn a_broken_handshake_ends_the_connection_and_is_told() {
    let setup = start(Mode::FlipClient, vec![mirror()], &Config::default());
    let mut stream = setup.connect();
    stream.write_all(b"x").unwrap();
    let _ = stream.read(&mut [0]);
    drop(stream);
    assert_eq!(
        setup.end().0,
        End::ClientTls("that is not a handshake".into())
    );
}

#[test]
fn a_reader_that_pauses_holds_the_writer_back_and_loses_nothing() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let backend = server(move |mut stream| {
        wait.lock().unwrap().recv().unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(&all.len().to_be_bytes()).unwrap();
    });
    let setup = start(Mode::Plain, vec![backend], &Config::default());
    let mut stream = setup.connect();
    stream.set_nonblocking(true).unwrap();
    let chunk = noise(100_000, 3);
    let mut sent = 0;
    let mut stuck = 0;
    // Blocked for good once nothing moves for a while.
    while stuck < 40 {
        if let Ok(count) = stream.write(&chunk) {
            sent += count;
            stuck = 0;
        } else {
            stuck += 1;
            thread::sleep(Duration::from_millis(5));
        }
    }
    go.send(()).unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut seen = [0; 8];
    stream.read_exact(&mut seen).unwrap();
    assert_eq!(usize::from_be_bytes(seen), sent);
}

#[test]
fn an_address_that_does_not_answer_is_followed_by_the_next() {
    let closed = TcpListener::bind(local()).unwrap().local_addr().unwrap();
    let setup = start(
        Mode::Plain,
        vec![closed, closed, echo()],
        &Config::default(),
    );
    let sent = noise(10, 1);
    assert_eq!(exchange(setup.connect(), sent.clone(), &[]), sent);
    assert_eq!(setup.engine.counters().dial_failures, 2);

    let setup = start(Mode::Plain, vec![closed], &Config::default());
    let mut stream = setup.connect();
    stream.write_all(b"x").unwrap();
    let _ = stream.read(&mut [0]);
    assert_eq!(setup.end().0, End::Refused("nobody_answers"));
}

#[test]
fn a_session_without_address_waits_for_its_waker() {
    let setup = start(Mode::Wait, vec![echo()], &Config::default());
    let mut stream = setup.connect();
    stream.write_all(b"hello").unwrap();
    until("the session waits", || {
        !setup.program.wakers.lock().unwrap().is_empty()
    });
    let waker = setup.program.wakers.lock().unwrap().remove(0);
    waker.wake();
    let mut back = [0; 5];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"hello");
    drop(stream);
    setup.end();
    waker.wake();
    let again = setup.connect();
    drop(again);
}

#[test]
fn a_refused_client_reads_why_although_it_sent_more() {
    let setup = start(Mode::Refuse, vec![], &Config::default());
    let mut stream = setup.connect();
    stream.write_all(&noise(30_000, 1)).unwrap();
    let mut words = String::new();
    stream.read_to_string(&mut words).unwrap();
    assert_eq!(words, "no, thank you");
    drop(stream);
    assert_eq!(setup.end().0, End::Refused("test"));
}

#[test]
fn a_client_that_never_finishes_its_first_bytes_is_closed() {
    let config = Config {
        hello_timeout: Duration::from_millis(100),
        ..Config::default()
    };
    let setup = start(Mode::Undecided, vec![], &config);
    let mut stream = setup.connect();
    stream.write_all(b"x").unwrap();
    assert_eq!(setup.end().0, End::HelloTimeout);
    let mut long = setup.connect();
    let _ = long.write_all(&noise(70_000, 1));
    let end = setup.end().0;
    assert!(
        matches!(end, End::HelloTooLong | End::HelloTimeout),
        "{end:?}"
    );
}

#[test]
fn the_oldest_unfinished_client_gives_way_when_descriptors_run_out() {
    let config = Config {
        max_descriptors: Some(16),
        workers: 1,
        ..Config::default()
    };
    let setup = start(Mode::Undecided, vec![], &config);
    let clients: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = setup.connect();
            stream.write_all(b"x").unwrap();
            stream
        })
        .collect();
    until("room was made", || setup.engine.counters().evicted >= 24);
    assert_eq!(setup.end().0, End::Evicted);
    drop(clients);
}

#[test]
fn accepting_pauses_without_descriptors_and_goes_on_by_itself() {
    let config = Config {
        max_descriptors: Some(16),
        workers: 1,
        ..Config::default()
    };
    let setup = start(Mode::Plain, vec![echo()], &config);
    let mut clients = Vec::new();
    for number in 0..8 {
        let mut stream = setup.connect();
        stream.write_all(&[number + 1]).unwrap();
        stream.read_exact(&mut [0]).unwrap();
        clients.push(stream);
    }
    // Waits in the kernel's queue: all sixteen descriptors are in use.
    let mut ninth = setup.connect();
    ninth.write_all(b"9").unwrap();
    until("accepting pauses", || {
        setup.engine.counters().accept_pauses > 0
    });
    drop(clients.pop());
    ninth.read_exact(&mut [0]).unwrap();
    for stream in &mut clients {
        stream.write_all(b"y").unwrap();
        stream.read_exact(&mut [0]).unwrap();
    }
}

#[test]
fn a_drain_lets_connections_finish_and_cuts_what_remains() {
    let setup = start(Mode::Plain, vec![echo()], &Config::default());
    let address = setup.engine.addresses()[0];
    let mut stream = setup.connect();
    stream.write_all(b"x").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    let engine = setup.engine;
    let draining = thread::spawn(move || engine.drain(PATIENCE));
    until("nobody listens", || TcpStream::connect(address).is_err());
    stream.write_all(b"y").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    drop(stream);
    assert_eq!(draining.join().unwrap().remaining, 0);

    let setup = start(Mode::Plain, vec![echo()], &Config::default());
    let mut stream = setup.connect();
    stream.write_all(b"x").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    assert_eq!(setup.engine.drain(Duration::from_millis(50)).remaining, 1);
    assert_eq!(setup.ends.recv_timeout(PATIENCE).unwrap().0, End::Cut);
}

#[test]
fn a_response_followed_by_a_reset_is_delivered() {
    let backend = server(|mut stream| {
        let mut first = [0];
        stream.read_exact(&mut first).unwrap();
        // Closed over unread bytes: the kernel resets the connection.
        stream.write_all(b"bye").unwrap();
    });
    let setup = start(Mode::Plain, vec![backend], &Config::default());
    let mut stream = setup.connect();
    stream.write_all(b"xyz").unwrap();
    let mut words = Vec::new();
    let _ = stream.read_to_end(&mut words);
    assert_eq!(words, b"bye");
}
