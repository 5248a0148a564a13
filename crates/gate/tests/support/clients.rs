//! Clients that nobody here wrote, each asking the server for its report.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::PathBuf,
    process::{Command, Stdio},
    sync::{Arc, OnceLock},
    time::Duration,
};

use rustls::{
    ClientConfig, ClientConnection, StreamOwned, crypto::aws_lc_rs, pki_types::ServerName,
};

use super::pki::{Identity, Pki};

/// What to ask for.
pub(crate) struct Ask<'a> {
    pub(crate) pki: &'a Pki,
    pub(crate) address: SocketAddr,
    pub(crate) sni: &'a str,
    pub(crate) alpn: &'a [&'a str],
    pub(crate) client: Option<&'a Identity>,
}

/// A kind of client: its name and how it asks.
pub(crate) type Client = (&'static str, fn(&Ask<'_>) -> String);

/// All of them. Each answers with the server's report, or with what went wrong.
pub(crate) const ALL: [Client; 6] = [
    ("openssl", openssl),
    ("curl", curl),
    ("python", python),
    ("gnutls", gnutls),
    ("go", go),
    ("rustls", rustls),
];

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: kubernetes\r\n\r\n";
const PATIENCE: Duration = Duration::from_mins(2);

/// The Go client, compiled once.
fn go_client() -> &'static str {
    static CLIENT: OnceLock<String> = OnceLock::new();
    let build = || {
        let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let id = std::process::id();
        let (source, program) = (
            place.join(format!("client-{id}.go")),
            place.join(format!("client-{id}")),
        );
        std::fs::write(&source, include_str!("client.go")).unwrap();
        let built = Command::new("go")
            .args(["build", "-o"])
            .args([&program, &source])
            .env("GO111MODULE", "off")
            .env("CGO_ENABLED", "0")
            .status();
        std::fs::remove_file(source).unwrap();
        let ok = built.as_ref().is_ok_and(std::process::ExitStatus::success);
        assert!(ok, "go has to be installed: {built:?}");
        // One name for all runs, so that only one stays behind, in the target directory.
        let kept = place.join("go-client");
        std::fs::rename(program, &kept).unwrap();
        kept.display().to_string()
    };
    CLIENT.get_or_init(build)
}

pub(crate) fn go(ask: &Ask<'_>) -> String {
    let (cert, key) = match ask.client {
        Some(client) => (path(&client.cert), path(&client.key)),
        None => Default::default(),
    };
    let args = [
        ask.address.to_string(),
        ask.sni.to_owned(),
        ask.alpn.join(","),
        path(&ask.pki.ca()),
        cert,
        key,
    ];
    run(go_client(), &args, "")
}

/// Runs a program with `input`, and gives its output. It is always under `timeout`, so that a
/// hang is a failure.
fn run(program: &str, args: &[String], input: &str) -> String {
    let mut child = Command::new("timeout")
        .args(["120", program])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A client that was refused does not read.
    let _ = stdin.write_all(input.as_bytes());
    let _ = stdin.flush();
    let mut text = String::new();
    let mut stdout = child.stdout.take().unwrap();
    let mut all = Vec::new();
    // With the input still open: s_client ends with it.
    let _ = stdout.read_to_end(&mut all);
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_ne!(
        output.status.code(),
        Some(127),
        "{program} is not installed"
    );
    text.push_str(&String::from_utf8_lossy(&all));
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    text
}

fn strings(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| (*arg).to_owned()).collect()
}

fn path(path: &std::path::Path) -> String {
    path.display().to_string()
}

pub(crate) fn openssl(ask: &Ask<'_>) -> String {
    let mut args = strings(&["s_client", "-quiet", "-verify_return_error", "-ign_eof"]);
    args.extend(["-connect".into(), ask.address.to_string()]);
    args.extend([
        "-servername".into(),
        ask.sni.into(),
        "-verify_hostname".into(),
        ask.sni.into(),
    ]);
    args.extend(["-CAfile".into(), path(&ask.pki.ca())]);
    if !ask.alpn.is_empty() {
        args.extend(["-alpn".into(), ask.alpn.join(",")]);
    }
    if let Some(client) = ask.client {
        args.extend([
            "-cert".into(),
            path(&client.cert),
            "-key".into(),
            path(&client.key),
        ]);
    }
    run("openssl", &args, REQUEST)
}

pub(crate) fn curl(ask: &Ask<'_>) -> String {
    let port = ask.address.port();
    let version = if ask.alpn.contains(&"h2") {
        "--http2"
    } else {
        "--http1.1"
    };
    let mut args = strings(&["--silent", "--show-error", version]);
    args.extend(["--cacert".into(), path(&ask.pki.ca())]);
    args.extend([
        "--resolve".into(),
        format!("{}:{port}:{}", ask.sni, ask.address.ip()),
    ]);
    if let Some(client) = ask.client {
        args.extend([
            "--cert".into(),
            path(&client.cert),
            "--key".into(),
            path(&client.key),
        ]);
    }
    args.push(format!("https://{}:{port}/", ask.sni));
    run("curl", &args, "")
}

pub(crate) fn python(ask: &Ask<'_>) -> String {
    const SCRIPT: &str = r#"
import socket, ssl, sys
address, port, sni, alpn, ca, cert, key = sys.argv[1:8]
context = ssl.create_default_context(cafile=ca)
if alpn: context.set_alpn_protocols(alpn.split(","))
if cert: context.load_cert_chain(cert, key)
with context.wrap_socket(socket.create_connection((address, int(port)), 30), server_hostname=sni) as tls:
    tls.sendall(b"GET / HTTP/1.1\r\nHost: kubernetes\r\n\r\n")
    while data := tls.recv(4096): sys.stdout.write(data.decode())
"#;
    let client = |part: fn(&Identity) -> &std::path::Path| {
        ask.client
            .map(|client| path(part(client)))
            .unwrap_or_default()
    };
    let mut args = strings(&["-c", SCRIPT]);
    args.extend([
        ask.address.ip().to_string(),
        ask.address.port().to_string(),
        ask.sni.to_owned(),
        ask.alpn.join(","),
        path(&ask.pki.ca()),
        client(|client| &client.cert),
        client(|client| &client.key),
    ]);
    run("python3", &args, "")
}

pub(crate) fn gnutls(ask: &Ask<'_>) -> String {
    let mut args = strings(&["--no-ocsp", "--logfile=/dev/null"]);
    args.push(format!("--x509cafile={}", path(&ask.pki.ca())));
    args.push(format!("--sni-hostname={}", ask.sni));
    args.push(format!("--verify-hostname={}", ask.sni));
    args.push(format!("--port={}", ask.address.port()));
    args.extend(ask.alpn.iter().map(|id| format!("--alpn={id}")));
    if let Some(client) = ask.client {
        args.push(format!("--x509certfile={}", path(&client.cert)));
        args.push(format!("--x509keyfile={}", path(&client.key)));
    }
    args.push(ask.address.ip().to_string());
    run("gnutls-cli", &args, REQUEST)
}

pub(crate) fn rustls(ask: &Ask<'_>) -> String {
    let socket = TcpStream::connect(ask.address).unwrap();
    let mut tls = StreamOwned::new(connection(ask), socket);
    tls.sock.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut report = String::new();
    if let Err(error) = tls.write_all(REQUEST.as_bytes()) {
        return format!("error: {error}");
    }
    match tls.read_to_string(&mut report) {
        Ok(_) => report,
        Err(error) => format!("{report} error: {error}"),
    }
}

/// A rustls client that is about to ask.
pub(crate) fn connection(ask: &Ask<'_>) -> ClientConnection {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(ask.pki.roots());
    let mut config = match ask.client {
        None => builder.with_no_client_auth(),
        Some(client) => builder
            .with_client_auth_cert(vec![client.der.clone()], client.key_der.clone_key())
            .unwrap(),
    };
    config.alpn_protocols = ask.alpn.iter().map(|id| id.as_bytes().to_vec()).collect();
    let name = ServerName::try_from(ask.sni.to_owned()).unwrap();
    ClientConnection::new(Arc::new(config), name).unwrap()
}

/// For rustls clients that have sessions in common, and no certificate.
pub(crate) fn config(pki: &Pki, alpn: &[&str]) -> Arc<ClientConfig> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(pki.roots())
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|id| id.as_bytes().to_vec()).collect();
    Arc::new(config)
}
