//! OpenSSL, curl, Python, GnuTLS, Go and rustls, through the gateway to nginx,
//! which reports what it saw.

use std::{
    fs,
    io::{Read, Write},
    net::SocketAddr,
    process::{Command, Stdio},
    sync::Arc,
};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

use crate::support::{Certificates, Gateway, Running, connect, free_address, route, until};

/// nginx, which answers every request with what TLS told it.
fn nginx(certificates: &Certificates) -> (Running, SocketAddr) {
    let address = free_address();
    let dir = certificates.dir();
    let config = format!(
        "daemon off; master_process off; pid {dir}/nginx.pid; error_log stderr crit; worker_processes 1;
        events {{ worker_connections 256; }}
        http {{
          access_log off; client_body_temp_path {dir}/b; proxy_temp_path {dir}/p;
          fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
          server {{
            listen {address} ssl http2; ssl_protocols TLSv1.2 TLSv1.3;
            ssl_certificate {dir}/server.pem; ssl_certificate_key {dir}/server.key;
            ssl_client_certificate {dir}/ca.pem; ssl_verify_client optional;
            location / {{
              default_type text/plain;
              return 200 \"sni=$ssl_server_name http=$server_protocol alpn=$ssl_alpn_protocol client=$ssl_client_s_dn\\n\";
            }}
          }}
        }}",
        dir = dir.display(),
    );
    fs::write(dir.join("nginx.conf"), config).unwrap();
    let child = Command::new("nginx")
        .arg("-c")
        .arg(dir.join("nginx.conf"))
        .arg("-p")
        .arg(dir)
        .stderr(Stdio::null())
        .spawn()
        .expect("nginx is installed (apt install nginx-light)");
    let running = Running(child);
    until("nginx listens", || {
        std::net::TcpStream::connect(address).is_ok()
    });
    (running, address)
}

struct Scene {
    certificates: Certificates,
    _nginx: Running,
    gateway: Gateway,
}

impl Scene {
    fn new() -> Self {
        let certificates = Certificates::new();
        let (nginx, backend) = nginx(&certificates);
        let gateway = Gateway::start(&format!("routes:\n{}", route("*.example.com", backend)));
        Self {
            certificates,
            _nginx: nginx,
            gateway,
        }
    }

    fn port(&self) -> String {
        self.gateway.address.port().to_string()
    }

    fn file(&self, name: &str) -> String {
        self.certificates.path(name)
    }
}

/// Runs a program with `input`, at most as long as anyone should wait.
fn run(program: &str, arguments: &[&str], input: &str) -> String {
    let mut child = Command::new("timeout")
        // A Go compiler with an empty cache takes its time.
        .args(["120", program])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text + &String::from_utf8_lossy(&output.stderr)
}

fn request(host: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
}

fn saw(output: &str, expected: &str) {
    assert!(output.contains(expected), "{expected}\nnot in\n{output}");
}

#[test]
fn curl_speaks_both_http_versions_and_keeps_its_certificate() {
    let scene = Scene::new();
    let to = format!("t1.example.com:443:127.0.0.1:{}", scene.port());
    let ca = scene.file("ca.pem");
    let base = [
        "-s",
        "--connect-to",
        &to,
        "--cacert",
        &ca,
        "https://t1.example.com/",
    ];
    let output = run("curl", &[&base[..], &["--http1.1"]].concat(), "");
    saw(
        &output,
        "sni=t1.example.com http=HTTP/1.1 alpn=http/1.1 client=\n",
    );
    let (cert, key) = (scene.file("client.pem"), scene.file("client.key"));
    let output = run(
        "curl",
        &[&base[..], &["--http2", "--cert", &cert, "--key", &key]].concat(),
        "",
    );
    saw(
        &output,
        "sni=t1.example.com http=HTTP/2.0 alpn=h2 client=CN=somebody",
    );
}

#[test]
fn openssl_gets_through_and_reads_the_alerts() {
    let scene = Scene::new();
    let to = format!("127.0.0.1:{}", scene.port());
    let ca = scene.file("ca.pem");
    let base = [
        "s_client",
        "-connect",
        &to,
        "-CAfile",
        &ca,
        "-quiet",
        "-verify_return_error",
    ];
    for version in ["-tls1_2", "-tls1_3"] {
        let arguments = [&base[..], &["-servername", "T2.Example.Com", version]].concat();
        let output = run("openssl", &arguments, &request("t2.example.com"));
        saw(&output, "alpn= client=");
        saw(&output.to_lowercase(), "sni=t2.example.com");
    }
    let output = run(
        "openssl",
        &[&base[..], &["-servername", "t1.example.org"]].concat(),
        "",
    );
    saw(&output, "SSL alert number 112");
    let output = run("openssl", &[&base[..], &["-noservername"]].concat(), "");
    saw(&output, "SSL alert number 109");
}

#[test]
fn gnutls_gets_through() {
    let scene = Scene::new();
    let (ca, port) = (scene.file("ca.pem"), scene.port());
    let output = run(
        "gnutls-cli",
        &[
            "--x509cafile",
            &ca,
            "--sni-hostname",
            "t3.example.com",
            "--verify-hostname",
            "t3.example.com",
            "--port",
            &port,
            "127.0.0.1",
        ],
        &request("t3.example.com"),
    );
    saw(&output, "sni=t3.example.com http=HTTP/1.1");
}

#[test]
fn python_gets_through_with_its_certificate() {
    let scene = Scene::new();
    let program = format!(
        "import socket, ssl
context = ssl.create_default_context(cafile='{ca}')
context.load_cert_chain('{cert}', '{key}')
context.set_alpn_protocols(['h2', 'http/1.1'][1:])
raw = socket.create_connection(('127.0.0.1', {port}), 30)
with context.wrap_socket(raw, server_hostname='t4.example.com') as tls:
    tls.sendall(b'GET / HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n')
    while data := tls.recv(4096):
        print(data.decode())",
        ca = scene.file("ca.pem"),
        cert = scene.file("client.pem"),
        key = scene.file("client.key"),
        port = scene.port(),
    );
    let output = run("python3", &["-c", &program], "");
    saw(
        &output,
        "sni=t4.example.com http=HTTP/1.1 alpn=http/1.1 client=CN=somebody",
    );
}

#[test]
fn go_gets_through_with_its_large_hello() {
    let scene = Scene::new();
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("main.go");
    let program = r#"package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"os"
)

func main() {
	pem, _ := os.ReadFile(os.Args[1])
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	config := &tls.Config{RootCAs: pool, ServerName: "t5.example.com", NextProtos: []string{"http/1.1"}}
	connection, err := tls.Dial("tcp", os.Args[2], config)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Fprint(connection, "GET / HTTP/1.1\r\nHost: t5.example.com\r\nConnection: close\r\n\r\n")
	io.Copy(os.Stdout, connection)
}
"#;
    fs::write(&source, program).unwrap();
    let to = scene.gateway.address.to_string();
    let output = run(
        "go",
        &[
            "run",
            &source.display().to_string(),
            &scene.file("ca.pem"),
            &to,
        ],
        "",
    );
    saw(&output, "sni=t5.example.com http=HTTP/1.1 alpn=http/1.1");
}

#[test]
fn rustls_gets_through() {
    let scene = Scene::new();
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(scene.file("ca.pem")).unwrap())
        .unwrap();
    let chain = vec![CertificateDer::from_pem_file(scene.file("client.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(scene.file("client.key")).unwrap();
    let config = rustls::ClientConfig::builder()
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .unwrap();
    let name = "t6.example.com".try_into().unwrap();
    let client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = rustls::StreamOwned::new(client, connect(scene.gateway.address));
    stream
        .write_all(request("t6.example.com").as_bytes())
        .unwrap();
    let mut output = String::new();
    let _ = stream.read_to_string(&mut output);
    saw(
        &output,
        "sni=t6.example.com http=HTTP/1.1 alpn= client=CN=somebody",
    );
}
