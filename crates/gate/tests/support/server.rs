//! A TLS server that reports what it saw of its client: server name, ALPN, certificate.
//!
//! Speaks just enough HTTP/1.1 and HTTP/2 for real clients, and echoes for those that ask.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use rustls::{
    ServerConfig, ServerConnection, StreamOwned, crypto::aws_lc_rs, server::WebPkiClientVerifier,
};

use super::pki::{Identity, Pki};

/// A server on a thread; stops accepting when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stopped: Arc<AtomicBool>,
}

/// Asks for the rest of the stream to be sent back.
pub(crate) const ECHO: &[u8] = b"ECHO\r\n\r\n";

const PATIENCE: Duration = Duration::from_mins(2);

impl Server {
    /// Reports as `name`. A client may show a certificate of the same authority.
    pub(crate) fn start(pki: &Pki, name: &'static str, identity: Identity, alpn: &[&str]) -> Self {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let clients =
            WebPkiClientVerifier::builder_with_provider(pki.roots(), Arc::clone(&provider))
                .allow_unauthenticated()
                .build()
                .unwrap();
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients)
            .with_single_cert(vec![identity.der], identity.key_der)
            .unwrap();
        config.alpn_protocols = alpn.iter().map(|id| id.as_bytes().to_vec()).collect();
        let config = Arc::new(config);
        serve(move |socket| {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            // What becomes of a client that misbehaves is seen by the client.
            let _ = answer(name, StreamOwned::new(connection, socket));
        })
    }

    /// Sends back every byte, without TLS.
    pub(crate) fn raw_echo() -> Self {
        serve(|mut socket| {
            let mut writer = socket.try_clone().unwrap();
            let _ = io::copy(&mut socket, &mut writer);
            let _ = writer.shutdown(std::net::Shutdown::Write);
        })
    }
}

fn serve(handle: impl Fn(TcpStream) + Send + Sync + 'static) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let stopped = Arc::new(AtomicBool::new(false));
    let (stop, handle) = (Arc::clone(&stopped), Arc::new(handle));
    thread::spawn(move || {
        for socket in listener.incoming() {
            if stop.load(Relaxed) {
                return;
            }
            let Ok(socket) = socket else { continue };
            let _ = socket.set_read_timeout(Some(PATIENCE));
            let handle = Arc::clone(&handle);
            thread::spawn(move || handle(socket));
        }
    });
    Server { address, stopped }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopped.store(true, Relaxed);
        // Wakes the accept.
        let _ = TcpStream::connect(self.address);
    }
}

type Tls = StreamOwned<ServerConnection, TcpStream>;

fn answer(name: &str, mut tls: Tls) -> io::Result<()> {
    while tls.conn.is_handshaking() {
        tls.conn.complete_io(&mut tls.sock)?;
    }
    let report = report(name, &tls.conn);
    if tls.conn.alpn_protocol() == Some(b"h2") {
        answer_h2(&mut tls, &report)?;
    } else {
        answer_h1(&mut tls, &report)?;
    }
    tls.conn.send_close_notify();
    while tls.conn.wants_write() {
        tls.conn.write_tls(&mut tls.sock)?;
    }
    tls.sock.shutdown(std::net::Shutdown::Write)?;
    io::copy(&mut tls.sock, &mut io::sink()).map(drop)
}

/// One line: what the server saw.
fn report(name: &str, connection: &ServerConnection) -> String {
    let alpn = connection
        .alpn_protocol()
        .map_or("none".into(), String::from_utf8_lossy);
    let sni = connection.server_name().unwrap_or("none");
    let client = connection
        .peer_certificates()
        .and_then(|chain| chain.first())
        .map_or_else(|| "none".to_owned(), |cert| common_name(cert));
    format!("server={name} sni={sni} alpn={alpn} client={client}\n")
}

/// The common name, found by its object identifier: enough for certificates made here.
fn common_name(der: &[u8]) -> String {
    const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
    let mut places = der
        .windows(3)
        .enumerate()
        .filter(|(_, window)| *window == COMMON_NAME);
    // The issuer's comes first, the subject's second.
    let Some((place, _)) = places.next_back() else {
        return "unnamed".to_owned();
    };
    let len = usize::from(der[place + 4]);
    String::from_utf8_lossy(&der[place + 5..place + 5 + len]).into_owned()
}

fn answer_h1(tls: &mut Tls, report: &str) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        tls.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    if head == ECHO {
        return echo(tls);
    }
    let len = report.len();
    write!(
        tls,
        "HTTP/1.1 200 OK\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n{report}"
    )?;
    tls.flush()
}

fn echo(tls: &mut Tls) -> io::Result<()> {
    let mut buffer = vec![0; 32 * 1024];
    loop {
        match tls.read(&mut buffer)? {
            0 => return Ok(()),
            read => {
                tls.write_all(&buffer[..read])?;
                tls.flush()?;
            }
        }
    }
}

/// Answers the first request of an HTTP/2 connection.
fn answer_h2(tls: &mut Tls, report: &str) -> io::Result<()> {
    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    const DATA: u8 = 0;
    const END_STREAM: u8 = 1;
    const END_HEADERS: u8 = 4;
    const ACK: u8 = 1;
    /// `:status: 200` in HPACK's static table.
    const OK: &[u8] = &[0x88];
    let mut preface = [0; 24];
    tls.read_exact(&mut preface)?;
    frame(tls, SETTINGS, 0, 0, &[])?;
    loop {
        let mut header = [0; 9];
        tls.read_exact(&mut header)?;
        let len = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        let stream = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
        let mut payload = vec![0; len as usize];
        tls.read_exact(&mut payload)?;
        match (header[3], header[4] & ACK) {
            (SETTINGS, 0) => frame(tls, SETTINGS, ACK, 0, &[])?,
            (HEADERS, _) => {
                frame(tls, HEADERS, END_HEADERS, stream, OK)?;
                return frame(tls, DATA, END_STREAM, stream, report.as_bytes());
            }
            _ => {}
        }
    }
}

fn frame(tls: &mut Tls, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
    let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend_from_slice(payload);
    tls.write_all(&frame)?;
    tls.flush()
}
