//! What the tests share: a program that decides little, servers, and bytes to send.

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
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// Flips every byte and needs one byte of handshake, sent by the opener.
#[derive(Debug)]
pub(crate) struct Flip {
    opener: bool,
    ready: bool,
    key: u8,
}

/// Ends the stream, in the flipped protocol. Never sent as payload by the tests.
pub(crate) const GOODBYE: u8 = 0;

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
pub(crate) enum Mode {
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

pub(crate) struct Test {
    pub(crate) mode: Mode,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) ends: Mutex<mpsc::Sender<(End, u64, u64)>>,
    pub(crate) wakers: Mutex<Vec<Waker>>,
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

pub(crate) struct Setup {
    pub(crate) engine: Engine,
    pub(crate) program: Arc<Test>,
    pub(crate) ends: mpsc::Receiver<(End, u64, u64)>,
}

pub(crate) fn start(mode: Mode, addresses: Vec<SocketAddr>, config: &Config) -> Setup {
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
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.engine.addresses()[0]).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub(crate) fn end(&self) -> (End, u64, u64) {
        self.ends.recv_timeout(PATIENCE).expect("a connection ends")
    }
}

pub(crate) fn local() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

pub(crate) fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !reached() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A server that runs `serve` on every connection.
pub(crate) fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
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
pub(crate) fn mirror() -> SocketAddr {
    server(|mut stream| {
        let mut all = Vec::new();
        if stream.read_to_end(&mut all).is_ok() {
            let _ = stream.write_all(&all);
        }
    })
}

/// Sends back what it gets as it gets it.
pub(crate) fn echo() -> SocketAddr {
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
pub(crate) fn noise(length: usize, seed: u32) -> Vec<u8> {
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
pub(crate) fn exchange(mut stream: TcpStream, sent: Vec<u8>, goodbye: &[u8]) -> Vec<u8> {
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

/// Around the sizes of records, buffers and pipes.
pub(crate) const SIZES: [usize; 7] = [1, 100, 16_384, 65_536, 65_537, 1_000_000, 6_000_003];
