//! Real programs for tests: found, started, and gone when dropped.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use jiff::Timestamp;
use steward_lab::{
    parts::{self, Options, Part},
    progress::Progress,
};
use steward_operator::datastore::etcd::{Access, Etcd};
use steward_pki::{Authority, KeyKind, Pair, Request, San, SystemKeys, Usage, Validity};

const YEAR: Duration = Duration::from_hours(365 * 24);

/// An etcd of its own with TLS, authentication still off.
pub(crate) struct EtcdServer {
    pub authority: Authority,
    pub endpoint: String,
    folder: tempfile::TempDir,
    port: u16,
    peer_port: u16,
    arguments: Vec<String>,
    child: Option<Child>,
}

impl EtcdServer {
    pub(crate) async fn start(arguments: &[&str]) -> Self {
        let authority = authority("etcd");
        let server = request("etcd", Usage::Both, &["127.0.0.1", "localhost"]);
        let folder = tempfile::tempdir().unwrap();
        let (port, peer_port) = (free_port(), free_port());
        write_pair(folder.path(), "server", &issue(&authority, &server));
        std::fs::write(folder.path().join("ca.crt"), &authority.pair().certificate).unwrap();
        let arguments = arguments.iter().map(ToString::to_string).collect();
        let endpoint = format!("127.0.0.1:{port}");
        let mut etcd = Self {
            authority,
            endpoint,
            folder,
            port,
            peer_port,
            arguments,
            child: None,
        };
        etcd.run().await;
        etcd
    }

    /// Starts it again after [`EtcdServer::stop`], with the same data.
    pub(crate) async fn run(&mut self) {
        let file = |name: &str| self.folder.path().join(name).display().to_string();
        let child = Command::new(program("etcd"))
            .args([
                format!("--data-dir={}", file("data")),
                format!("--listen-client-urls=https://127.0.0.1:{}", self.port),
                format!("--advertise-client-urls=https://127.0.0.1:{}", self.port),
                format!("--listen-peer-urls=http://127.0.0.1:{}", self.peer_port),
                format!(
                    "--initial-advertise-peer-urls=http://127.0.0.1:{}",
                    self.peer_port
                ),
                format!(
                    "--initial-cluster=default=http://127.0.0.1:{}",
                    self.peer_port
                ),
                format!("--cert-file={}", file("server.crt")),
                format!("--key-file={}", file("server.key")),
                format!("--trusted-ca-file={}", file("ca.crt")),
                "--client-cert-auth=true".into(),
                "--unsafe-no-fsync".into(),
                "--log-level=error".into(),
            ])
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stderr(std::fs::File::create(self.folder.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        self.child = Some(child);
        let access = self.root();
        let up = steward_lab::poll(Duration::from_mins(1), async || {
            match Etcd::connect(&access).await {
                Ok(_) => Ok(()),
                Err(error) => Err(error.to_string()),
            }
        });
        up.await.unwrap();
    }

    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// The administrator's way in.
    pub(crate) fn root(&self) -> Access {
        self.access("root")
    }

    /// The way in of a user.
    pub(crate) fn access(&self, user: &str) -> Access {
        let pair = issue(&self.authority, &request(user, Usage::Client, &[]));
        Access {
            endpoints: vec![self.endpoint.clone()],
            ca: self.authority.pair().certificate.clone(),
            certificate: pair.certificate,
            key: pair.key,
        }
    }

    /// Runs etcdctl as a user: what it printed, or its complaint.
    pub(crate) fn etcdctl(&self, user: &str, arguments: &[&str]) -> Result<String, String> {
        let access = self.access(user);
        let pair = Pair {
            certificate: access.certificate,
            key: access.key,
        };
        write_pair(self.folder.path(), user, &pair);
        let file = |name: String| self.folder.path().join(name).display().to_string();
        let output = Command::new(program("etcdctl"))
            .arg(format!("--endpoints=https://{}", self.endpoint))
            .arg(format!("--cacert={}", file("ca.crt".into())))
            .arg(format!("--cert={}", file(format!("{user}.crt"))))
            .arg(format!("--key={}", file(format!("{user}.key"))))
            .args(arguments)
            .output()
            .unwrap();
        if output.status.success() {
            Ok(String::from_utf8(output.stdout).unwrap())
        } else {
            Err(String::from_utf8(output.stderr).unwrap())
        }
    }
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A program of the lab's etcd.
pub(crate) fn program(name: &str) -> PathBuf {
    let options = Options::from_env().unwrap();
    let etcd = parts::ensure(Part::Etcd, &options, &Progress::stderr()).unwrap();
    etcd.path(name).unwrap().to_owned()
}

pub(crate) fn authority(name: &str) -> Authority {
    Authority::new(
        &SystemKeys,
        KeyKind::EcdsaP256,
        name,
        Validity::starting(Timestamp::now(), YEAR),
    )
    .unwrap()
}

pub(crate) fn request(name: &str, usage: Usage, sans: &[&str]) -> Request {
    Request {
        common_name: name.into(),
        organization: None,
        usage,
        sans: sans.iter().map(|san| San::parse(san)).collect(),
    }
}

pub(crate) fn issue(authority: &Authority, request: &Request) -> Pair {
    authority
        .issue(
            &SystemKeys,
            KeyKind::EcdsaP256,
            request,
            Validity::starting(Timestamp::now(), YEAR),
        )
        .unwrap()
}

fn write_pair(folder: &Path, name: &str, pair: &Pair) {
    std::fs::write(folder.join(format!("{name}.crt")), &pair.certificate).unwrap();
    std::fs::write(folder.join(format!("{name}.key")), &pair.key).unwrap();
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}
