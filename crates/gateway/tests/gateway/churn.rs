//! Thousands of live connections while routes are replaced under them.
//!
//! The gateway runs in this process, so that its table can be changed as the
//! Kubernetes side does; the backends run in another, since together they would
//! need more descriptors than one process gets.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::AsRawFd,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use steward_gateway::{
    Gateway, RouteSpec, Router, Trust,
    metrics::Metrics,
    shares::{Limits, Shares},
};
use steward_wire::{Config, Engine, Listen};

use crate::support::{MANY_DESCRIPTORS, Running, connect, hello, raise_limit};

const BACKENDS: usize = 4;
const HOSTS: usize = 50;
const CONNECTIONS: usize = 5000;
const IN_CHILD: &str = "STEWARD_TEST_BACKENDS";

/// Not a test of its own: what the child process runs. Prints the addresses, then
/// echoes behind a first byte that says which backend it is.
#[test]
fn backends_of_the_churn_test() {
    if std::env::var_os(IN_CHILD).is_none() {
        return;
    }
    raise_limit();
    let epoll = epoll::create(CreateFlags::CLOEXEC).unwrap();
    let listeners: Vec<TcpListener> = (0..BACKENDS)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    for (number, listener) in listeners.iter().enumerate() {
        epoll::add(
            &epoll,
            listener,
            EventData::new_u64(number as u64),
            EventFlags::IN,
        )
        .unwrap();
        println!("backend {}", listener.local_addr().unwrap());
    }
    let mut streams: HashMap<u64, (TcpStream, u8, bool)> = HashMap::new();
    let mut buffer = [0; 4096];
    loop {
        let mut events = Vec::with_capacity(256);
        epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None).unwrap();
        for event in events {
            let token = event.data.u64();
            if let Some(listener) = usize::try_from(token).ok().and_then(|n| listeners.get(n)) {
                let (stream, _) = listener.accept().unwrap();
                let key = 1000 + u64::try_from(stream.as_raw_fd()).unwrap();
                epoll::add(&epoll, &stream, EventData::new_u64(key), EventFlags::IN).unwrap();
                streams.insert(key, (stream, u8::try_from(token).unwrap(), false));
                continue;
            }
            let Some((stream, name, greeted)) = streams.get_mut(&token) else {
                continue;
            };
            let alive = match stream.read(&mut buffer) {
                // The hello is one small segment here; it is not echoed.
                Ok(1..) if !*greeted => {
                    *greeted = true;
                    stream.write_all(&[*name]).is_ok()
                }
                Ok(count @ 1..) => stream.write_all(&buffer[..count]).is_ok(),
                _ => false,
            };
            if !alive {
                streams.remove(&token);
            }
        }
    }
}

fn backends() -> (Running, Vec<SocketAddr>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "churn::backends_of_the_churn_test",
            "--nocapture",
        ])
        .env(IN_CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let running = Running(child);
    let addresses = lines
        .filter_map(|line| line.unwrap().split_once("backend ")?.1.parse().ok())
        .take(BACKENDS)
        .collect();
    (running, addresses)
}

fn host(number: usize) -> String {
    format!("t{}.example.com", number % HOSTS)
}

/// The host's backend in a round: it has two, and uses one of them at a time.
fn backend_of(host: usize, round: usize) -> usize {
    (host % 2) * 2 + round % 2
}

/// A table for a round, changed route by route or replaced as a whole.
fn change(router: &Router, addresses: &[SocketAddr], round: usize) {
    let spec = |host: usize| RouteSpec {
        backends: vec![addresses[backend_of(host, round)]],
        ..RouteSpec::default()
    };
    if round.is_multiple_of(10) {
        let all: Vec<_> = (0..HOSTS)
            .map(|n| (host(n).parse().unwrap(), spec(n)))
            .collect();
        router.update(|table| {
            table.replaced(all.iter().map(|(host, spec)| (Clone::clone(host), spec)))
        });
    } else {
        for number in 0..HOSTS {
            let host = host(number).parse().unwrap();
            router.update(|table| table.with_route(host, &spec(number)));
        }
    }
}

/// One live connection: who answered, and a check that it still does.
struct Live {
    stream: TcpStream,
    number: usize,
}

impl Live {
    fn open(address: SocketAddr, number: usize, hello: &[u8]) -> Self {
        let mut stream = connect(address);
        stream.write_all(hello).unwrap();
        let mut name = [0xff];
        stream.read_exact(&mut name).expect("a backend answers");
        let allowed = [0, 1].map(|round| backend_of(number % HOSTS, round));
        assert!(
            allowed.contains(&usize::from(name[0])),
            "{} went to {}",
            host(number),
            name[0]
        );
        Self { stream, number }
    }

    fn send(&mut self, round: usize) {
        write!(self.stream, "{:08}{:08}", self.number, round).unwrap();
    }

    fn check(&mut self, round: usize) {
        let mut echoed = [0; 16];
        self.stream
            .read_exact(&mut echoed)
            .expect("the connection lives");
        let expected = format!("{:08}{:08}", self.number, round);
        assert_eq!(String::from_utf8_lossy(&echoed), expected);
    }
}

#[test]
fn five_thousand_connections_live_through_a_thousand_tables() {
    let _alone = MANY_DESCRIPTORS.lock();
    raise_limit();
    let (_backends, addresses) = backends();
    let router = Arc::new(Router::default());
    change(&router, &addresses, 0);
    let metrics = Arc::new(Metrics::new(10));
    let gateway = Arc::new(Gateway::new(
        Arc::clone(&router),
        metrics,
        Arc::new(Shares::new(Limits::none())),
        Trust::default(),
        false,
    ));
    let listen = Listen::new("127.0.0.1:0".parse().unwrap());
    let engine = Engine::start(&Config::default(), &[listen], &gateway).unwrap();
    let address = engine.addresses()[0];
    let hellos: Vec<Vec<u8>> = (0..HOSTS).map(|number| hello(&host(number))).collect();

    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=1000 {
                change(&router, &addresses, round);
            }
            done.store(true, Relaxed);
        });
        let mut live: Vec<Live> = Vec::new();
        for number in 0..CONNECTIONS {
            live.push(Live::open(address, number, &hellos[number % HOSTS]));
        }
        let mut round = 0;
        while round < 3 || !done.load(Relaxed) {
            for connection in &mut live {
                connection.send(round);
            }
            for connection in &mut live {
                connection.check(round);
            }
            round += 1;
        }
        assert_eq!(engine.counters().live, CONNECTIONS as u64);
    });
    // The last table rules: round 1000 is even.
    let last = connect(address);
    let mut last = Live {
        stream: last,
        number: 0,
    };
    last.stream.write_all(&hellos[0]).unwrap();
    let mut name = [0xff];
    last.stream.read_exact(&mut name).unwrap();
    assert_eq!(usize::from(name[0]), backend_of(0, 1000));
}
