//! What the tests share: a running gateway, certificates, hellos, servers.

use std::{
    fs,
    io::{Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

/// Long enough for a loaded machine, short enough to fail before the night.
pub(crate) const PATIENCE: Duration = Duration::from_secs(45);

/// Held by tests that need most of the descriptors this process may have.
pub(crate) static MANY_DESCRIPTORS: Mutex<()> = Mutex::new(());

/// Flags without which one route, or one address, can't have all of a gateway.
pub(crate) const UNLIMITED: [&str; 8] = [
    "--route-share",
    "100",
    "--source-share",
    "100",
    "--route-handshakes",
    "0",
    "--source-handshakes",
    "0",
];

/// The program, with a routes file of its own. Stopped when dropped.
pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) child: Child,
    command: Command,
    routes: PathBuf,
    _dir: tempfile::TempDir,
}

impl Gateway {
    pub(crate) fn start(routes: &str) -> Self {
        Self::start_with(routes, &[], "")
    }

    /// `limits` is a shell command to run before, such as `ulimit -n 100`.
    pub(crate) fn start_with(routes: &str, flags: &[&str], limits: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("routes.yaml");
        fs::write(&path, routes).unwrap();
        let (address, admin) = (free_address(), free_address());
        let script = format!(
            "{}exec \"$0\" \"$@\"",
            if limits.is_empty() {
                String::new()
            } else {
                format!("{limits}; ")
            }
        );
        let mut command = Command::new("sh");
        command
            .args(["-c", &script, env!("CARGO_BIN_EXE_steward-gateway")])
            .args([
                "--listen",
                &address.to_string(),
                "--admin",
                &admin.to_string(),
            ])
            .args(["--drain-timeout", "5", "--routes"])
            .arg(&path)
            .args(flags)
            .stderr(Stdio::null());
        let gateway = Self {
            address,
            admin,
            child: command.spawn().unwrap(),
            command,
            routes: path,
            _dir: dir,
        };
        gateway.ready();
        gateway
    }

    fn ready(&self) {
        until("the gateway is ready", || {
            self.page("/readyz").starts_with("HTTP/1.1 200")
        });
    }

    /// Ends all of it at once, as a container is ended.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        until("its last process is gone", || {
            TcpStream::connect(self.admin).is_err()
        });
    }

    /// Starts it with the same flags, after its end.
    pub(crate) fn start_again(&mut self) {
        self.child = self.command.spawn().unwrap();
        self.ready();
    }

    /// Replaces the routes file as Kubernetes would: all at once.
    pub(crate) fn write_routes(&self, routes: &str) {
        let next = self.routes.with_extension("next");
        fs::write(&next, routes).unwrap();
        fs::rename(next, &self.routes).unwrap();
    }

    pub(crate) fn page(&self, path: &str) -> String {
        let mut reply = String::new();
        if let Ok(mut stream) = TcpStream::connect(self.admin) {
            let _ = stream.set_read_timeout(Some(PATIENCE));
            let _ = write!(stream, "GET {path} HTTP/1.1\r\n\r\n");
            let _ = stream.read_to_string(&mut reply);
        }
        reply
    }

    /// The value of a metric, written with its labels.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let page = self.page("/metrics");
        let line = page
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {page}"))
            .parse()
            .unwrap()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    /// Resident memory in KiB.
    pub(crate) fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program that is stopped when dropped.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether a server called `x` is heard.
pub(crate) fn answered(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    stream.read_exact(&mut byte).is_ok() && &byte == b"x"
}

pub(crate) fn signal(name: &str, process: &str) {
    let words = [name, process];
    assert!(Command::new("kill").args(words).status().unwrap().success());
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The same, from another address of this machine.
pub(crate) fn connect_from(source: Ipv4Addr, address: SocketAddr) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::from((source, 0))).unwrap();
    connect(&socket, &address).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// An address that was free a moment ago.
pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap()
}

pub(crate) fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !reached() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Raises the limit on open files of this process.
pub(crate) fn raise_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    );
}

pub(crate) fn route(host: &str, backend: SocketAddr) -> String {
    format!("- host: \"{host}\"\n  backends: [\"{backend}\"]\n")
}

/// A `ClientHello` as rustls writes it.
pub(crate) fn hello(name: &str) -> Vec<u8> {
    let roots = rustls::RootCertStore::empty();
    let config = rustls::ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = name.to_owned().try_into().unwrap();
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut bytes).unwrap();
    }
    bytes
}

/// A server that reads one hello, answers with its name, and then echoes.
pub(crate) fn named_echo(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut head = [0; 5];
                stream.read_exact(&mut head).ok()?;
                let mut body = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
                stream.read_exact(&mut body).ok()?;
                stream.write_all(name.as_bytes()).ok()?;
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    stream.write_all(&buffer[..count]).ok()?;
                }
                Some(())
            });
        }
    });
    address
}

/// Says hello for `host` and reads who answers, or the code of the alert.
pub(crate) fn who(gateway: &Gateway, host: &str) -> Result<String, u8> {
    who_on(gateway.connect(), host)
}

/// The same, on a connection that is there already.
pub(crate) fn who_on(mut stream: TcpStream, host: &str) -> Result<String, u8> {
    stream.write_all(&hello(host)).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    match answer.as_slice() {
        [21, 3, _, 0, 2, 2, alert] => Err(*alert),
        _ => Ok(String::from_utf8_lossy(&answer).into_owned()),
    }
}

/// A CA with a server certificate for `*.example.com` and a client certificate, as
/// PEM files.
pub(crate) struct Certificates {
    dir: tempfile::TempDir,
}

impl Certificates {
    pub(crate) fn new() -> Self {
        use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| fs::write(dir.path().join(name), text).unwrap();
        let ca_key = KeyPair::generate().unwrap();
        let mut ca = CertificateParams::new([]).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.distinguished_name.push(DnType::CommonName, "test CA");
        write("ca.pem", ca.self_signed(&ca_key).unwrap().pem());
        let issuer = Issuer::new(ca, ca_key);
        for (file, name, names) in [
            ("server", "server", vec!["*.example.com".to_owned()]),
            ("client", "somebody", vec![]),
        ] {
            let key = KeyPair::generate().unwrap();
            let mut leaf = CertificateParams::new(names).unwrap();
            leaf.distinguished_name.push(DnType::CommonName, name);
            write(
                &format!("{file}.pem"),
                leaf.signed_by(&key, &issuer).unwrap().pem(),
            );
            write(&format!("{file}.key"), key.serialize_pem());
        }
        Self { dir }
    }

    pub(crate) fn path(&self, file: &str) -> String {
        self.dir.path().join(file).display().to_string()
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }
}
