//! A small HTTP/1 server for probes and metrics, on threads of its own.
//!
//! Answers `GET` and `HEAD` of fixed paths, one request per connection. It shares
//! nothing with the workers, so a scrape never delays a connection and a busy
//! worker never fails a probe. Not meant for the outside: no TLS, no bodies in.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use crate::listener::ListenError;

/// Answers the request for a path (without its query), or `None` for "not found".
pub type Handler = dyn Fn(&str) -> Option<Response> + Send + Sync;

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The media type.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

/// Requests at a time. Probes and scrapes are few; more is a mistake or an attack.
const MOST: usize = 16;

/// What a request's head may take.
const HEAD_LIMIT: u64 = 8 * 1024;

/// How long a client may take with its request, and with each write of ours.
const PATIENCE: Duration = Duration::from_secs(5);

impl Response {
    /// 200 with plain text.
    pub fn ok(body: impl Into<String>) -> Self {
        Self {
            status: 200,
            content_type: "text/plain; charset=utf-8",
            body: body.into(),
        }
    }

    /// 200 with JSON.
    pub fn json(body: impl Into<String>) -> Self {
        Self {
            content_type: "application/json",
            ..Self::ok(body)
        }
    }

    /// 200 with metrics in the Prometheus text format.
    pub fn metrics(body: impl Into<String>) -> Self {
        Self {
            content_type: "text/plain; version=0.0.4; charset=utf-8",
            ..Self::ok(body)
        }
    }

    /// 503: not now, and why.
    pub fn unavailable(body: impl Into<String>) -> Self {
        Self {
            status: 503,
            ..Self::ok(body)
        }
    }
}

/// Listens on `address` and answers in the background for as long as the process
/// lives. Returns the address, with the port chosen if it was zero.
pub fn serve(address: SocketAddr, handler: Arc<Handler>) -> Result<SocketAddr, ListenError> {
    serve_until(address, handler, Arc::default())
}

/// The same, until [`close`].
pub fn serve_until(
    address: SocketAddr,
    handler: Arc<Handler>,
    closed: Arc<AtomicBool>,
) -> Result<SocketAddr, ListenError> {
    let failed = |source| ListenError { address, source };
    let listener = TcpListener::bind(address).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    thread::Builder::new()
        .name("admin".into())
        .spawn(move || accept_all(&listener, &handler, &closed))
        .map_err(failed)?;
    Ok(bound)
}

/// Gives the address back, so that a successor can have it. `bound` is what [`serve_until`]
/// returned.
pub fn close(bound: SocketAddr, closed: &AtomicBool) {
    closed.store(true, Relaxed);
    // The thread waits for a client: this is the last.
    let _ = TcpStream::connect_timeout(&bound, PATIENCE);
}

fn accept_all(listener: &TcpListener, handler: &Arc<Handler>, closed: &AtomicBool) {
    let busy = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // Out of descriptors, most likely: that passes.
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        if closed.load(Relaxed) {
            return;
        }
        if busy.fetch_add(1, Relaxed) >= MOST {
            busy.fetch_sub(1, Relaxed);
            continue;
        }
        let (handler, done) = (Arc::clone(handler), Arc::clone(&busy));
        let spawned = thread::Builder::new()
            .name("admin-request".into())
            .spawn(move || {
                // A client that goes away in the middle is its own affair.
                let _ = answer(&stream, handler.as_ref());
                done.fetch_sub(1, Relaxed);
            });
        if spawned.is_err() {
            busy.fetch_sub(1, Relaxed);
        }
    }
}

fn answer(mut stream: &TcpStream, handler: &Handler) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut head = BufReader::new(stream).take(HEAD_LIMIT);
    let mut request = String::new();
    head.read_line(&mut request)?;
    let mut line = String::new();
    while head.read_line(&mut line)? > 2 {
        line.clear();
    }
    let mut words = request.split_ascii_whitespace();
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let response = respond(method, target, handler);
    let body = if method == "HEAD" {
        ""
    } else {
        response.body.as_str()
    };
    let head = format!(
        "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        response.status,
        reason(response.status),
        response.content_type,
        response.body.len(),
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

fn respond(method: &str, target: &str, handler: &Handler) -> Response {
    let path = target.split(['?', '#']).next().unwrap_or("");
    match method {
        "GET" | "HEAD" => handler(path).unwrap_or_else(|| Response {
            status: 404,
            ..Response::ok("no such page\n")
        }),
        "" => Response {
            status: 400,
            ..Response::ok("not an HTTP request\n")
        },
        _ => Response {
            status: 405,
            ..Response::ok("only GET is answered here\n")
        },
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        503 => "Service Unavailable",
        _ => "Status",
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn ask(request: &str) -> String {
        let handler: Arc<Handler> = Arc::new(|path| match path {
            "/livez" => Some(Response::ok("ok\n")),
            "/readyz" => Some(Response::unavailable("draining\n")),
            _ => None,
        });
        let address = serve((Ipv4Addr::LOCALHOST, 0).into(), handler).unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
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
}
