//! The pages over loopback, and clients that mean harm.

use std::{
    io::{Read, Write},
    net::Ipv4Addr,
    time::Instant,
};

use super::*;

/// Long enough for a loaded machine, short enough to fail before the night.
const PATIENCE: Duration = Duration::from_secs(45);

/// A page that no socket takes at once.
const LARGE: usize = 8 * 1024 * 1024;

fn start(limits: Limits) -> SocketAddr {
    let handler: Arc<Handler> = Arc::new(|request: &Request<'_>| match request.path {
        "/livez" => Some(Response::ok("ok\n")),
        "/readyz" => Some(Response::unavailable("draining\n")),
        "/large" => Some(Response::ok("x".repeat(LARGE))),
        _ => None,
    });
    let local = (Ipv4Addr::LOCALHOST, 0).into();
    serve_within(limits, local, handler, Arc::default()).unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn ask_at(address: SocketAddr, request: &str) -> String {
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

fn ask(request: &str) -> String {
    ask_at(start(Limits::default()), request)
}

/// Deadlines that play no part in a test.
fn patient() -> Limits {
    Limits {
        request: Duration::from_hours(1),
        answer: Duration::from_hours(1),
        ..Limits::default()
    }
}

fn alive(address: SocketAddr) {
    let reply = ask_at(address, "GET /livez HTTP/1.1\r\n\r\n");
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
}

#[test]
fn a_known_path_is_answered_whatever_its_query() {
    let reply = ask("GET /livez?verbose HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
    assert!(reply.ends_with("\r\n\r\nok\n"), "{reply}");
}

#[test]
fn head_has_the_length_and_no_body() {
    let reply = ask("HEAD /livez HTTP/1.1\r\n\r\n");
    assert!(
        reply.contains("Content-Length: 3\r\n") && reply.ends_with("\r\n\r\n"),
        "{reply}"
    );
}

#[test]
fn other_paths_methods_and_garbage_get_their_status() {
    assert!(ask("GET /secret HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(ask("POST /livez HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    assert!(ask("\r\n\r\n").starts_with("HTTP/1.1 400"));
    assert!(ask("GET /readyz HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 503"));
}

#[test]
fn a_large_page_arrives_whole() {
    let reply = ask("GET /large HTTP/1.1\r\n\r\n");
    let (_, body) = reply.split_once("\r\n\r\n").unwrap();
    assert_eq!(body.len(), LARGE);
}

#[test]
fn clients_that_never_finish_their_request_keep_no_probe_from_its_answer() {
    let address = start(patient());
    let mut slow = Vec::new();
    for number in 0..200 {
        let mut stream = connect(address);
        stream.write_all(b"GET /livez HTTP/1.1\r\nX: ").unwrap();
        slow.push(stream);
        if number % 20 == 0 {
            alive(address);
        }
    }
    alive(address);
}

#[test]
fn clients_that_never_read_their_answer_keep_no_probe_from_its_answer() {
    let address = start(patient());
    let mut deaf = Vec::new();
    for _ in 0..2 * Limits::default().clients {
        let mut stream = connect(address);
        stream.write_all(b"GET /large HTTP/1.1\r\n\r\n").unwrap();
        deaf.push(stream);
        alive(address);
    }
}

#[test]
fn a_request_that_drips_in_is_ended_at_its_deadline() {
    let address = start(Limits {
        request: Duration::from_millis(300),
        ..patient()
    });
    let mut stream = connect(address);
    stream.write_all(b"GET /livez HTTP/1.1\r\n").unwrap();
    stream
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    let started = Instant::now();
    // Each byte would renew a limit on the single read.
    let ended = |stream: &mut TcpStream| {
        stream.write_all(b"x").is_err()
            || !matches!(stream.read(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    };
    while !ended(&mut stream) {
        assert!(started.elapsed() < PATIENCE, "it goes on and on");
    }
}

#[test]
fn an_answer_that_is_not_taken_is_ended_at_its_deadline() {
    let address = start(Limits {
        answer: Duration::from_millis(300),
        ..patient()
    });
    let mut stream = connect(address);
    stream.write_all(b"GET /large HTTP/1.1\r\n\r\n").unwrap();
    // Another client's turn shows that the server went on after that time.
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(400) {
        alive(address);
    }
    let mut taken = Vec::new();
    let _ = stream.read_to_end(&mut taken);
    assert!(taken.len() < LARGE, "{} bytes", taken.len());
}

#[test]
fn a_head_without_end_is_refused() {
    let address = start(patient());
    let mut stream = connect(address);
    let line = format!("GET /livez HTTP/1.1\r\nX: {}", "x".repeat(9000));
    stream.write_all(line.as_bytes()).unwrap();
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply);
    assert!(reply.starts_with(b"HTTP/1.1 400"));
}

#[test]
fn a_client_is_local_only_on_loopback() {
    for (peer, local) in [
        ("127.0.0.1", true),
        ("127.9.9.9", true),
        ("::1", true),
        ("::ffff:127.0.0.1", true),
        ("10.0.0.7", false),
        ("::ffff:10.0.0.7", false),
        ("169.254.1.1", false),
        ("fe80::1", false),
    ] {
        let peer = peer.parse().unwrap();
        let request = Request { path: "/", peer };
        assert_eq!(request.is_local(), local, "{peer}");
    }
}

#[test]
fn a_closed_server_gives_its_address_back() {
    let closed: Arc<AtomicBool> = Arc::default();
    let handler: Arc<Handler> = Arc::new(|_: &Request<'_>| None);
    let local = (Ipv4Addr::LOCALHOST, 0).into();
    let address = serve_until(local, handler, Arc::clone(&closed)).unwrap();
    close(address, &closed);
    let started = Instant::now();
    while TcpListener::bind(address).is_err() {
        assert!(started.elapsed() < PATIENCE, "the address is not free");
    }
}
