//! The light fixture: etcd and a kube-apiserver on loopback, for tests of
//! controllers.
//!
//! It has no controllers, no scheduler and no node: objects are stored, validated
//! and watched as in any cluster, and nothing else happens to them. It needs no
//! root. It is gone when the value is dropped, when the test binary ends and when
//! it is killed with -9, because a keeper process holds it by a pipe.
//!
//! Most tests share the one of their binary:
//!
//! ```no_run
//! # async fn a_test() -> Result<(), Box<dyn std::error::Error>> {
//! use steward_lab::fixture::ApiServer;
//!
//! let server = ApiServer::shared().await?;
//! let client = server.client().await?;
//! let namespace = server.namespace("rotation").await?; // new, this test's own
//! # Ok(()) }
//! ```
//!
//! A test that breaks the server, or wants its audit log, starts its own:
//!
//! ```no_run
//! # async fn a_test() -> Result<(), Box<dyn std::error::Error>> {
//! use steward_lab::fixture::ApiServer;
//!
//! let server = ApiServer::builder().audit().start().await?;
//! let log = server.audit_log();
//! # Ok(()) }
//! ```

mod keeper;
mod pki;

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    time::Duration,
};

use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Config,
    api::{ObjectMeta, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::sync::OnceCell;

use self::keeper::Keeper;
use crate::poll;

/// Generous: on an idle machine it takes 4 s, on a busy one ten times that.
const READY: Duration = Duration::from_mins(2);

/// Ports are picked before they are bound, so another test may take one in
/// between. That shows as a program that ends at once, and is tried again.
const ATTEMPTS: usize = 4;

const PROGRAMS: [&str; 2] = ["etcd", "kube-apiserver"];

/// etcd and a kube-apiserver that belong to this process.
#[derive(Debug)]
pub struct ApiServer {
    folder: PathBuf,
    port: u16,
    etcd_port: u16,
    keeper: Keeper,
}

/// What a fixture should be like.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    audit: bool,
    arguments: Vec<String>,
    bin_dir: Option<PathBuf>,
}

/// Why there is no fixture.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program the fixture starts could not be had.
    #[error(transparent)]
    Parts(#[from] crate::parts::Error),
    /// The folder for its files could not be made or written.
    #[error("cannot write the fixture's files in {folder}; check that the disk is not full")]
    Files {
        /// Where.
        folder: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A certificate could not be made.
    #[error("cannot make the fixture's certificates")]
    Certificates(#[from] rcgen::Error),
    /// The programs could not be started, or ended at once.
    #[error("the fixture did not start: {why}; its last words were:\n{log}")]
    Start {
        /// What was seen.
        why: String,
        /// The end of the logs.
        log: String,
    },
    /// A client could not be made from the kubeconfig.
    #[error("cannot make a client for the fixture: {0}")]
    Client(String),
    /// The API server refused something a test asked for.
    #[error("the fixture refused to {what}: {why}")]
    Refused {
        /// What was asked.
        what: String,
        /// Its answer.
        why: String,
    },
}

impl ApiServer {
    /// Starts one with the usual settings.
    pub async fn start() -> Result<Self, Error> {
        Self::builder().start().await
    }

    /// Settings for one.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The one that all tests of this binary share, started by the first to ask.
    pub async fn shared() -> Result<&'static Self, Error> {
        static SHARED: OnceCell<ApiServer> = OnceCell::const_new();
        SHARED.get_or_try_init(Self::start).await
    }

    /// A client with every right. Make one per test: a client belongs to the
    /// runtime it was made in.
    pub async fn client(&self) -> Result<Client, Error> {
        Client::try_from(self.config().await?).map_err(|error| Error::Client(error.to_string()))
    }

    /// The configuration behind [`Self::client`], to change before use.
    pub async fn config(&self) -> Result<Config, Error> {
        let text = self.read("admin.conf")?;
        let kubeconfig =
            Kubeconfig::from_yaml(&text).map_err(|error| Error::Client(error.to_string()))?;
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(|error| Error::Client(error.to_string()))
    }

    /// A kubeconfig file with every right.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join("admin.conf")
    }

    /// `https://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// `http://127.0.0.1:PORT` of its etcd: plain, and open to this machine.
    pub fn etcd_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.etcd_port)
    }

    /// The audit log, one JSON object per line, if [`Builder::audit`] was asked.
    pub fn audit_log(&self) -> PathBuf {
        self.folder.join("audit.log")
    }

    /// The API server's own log.
    pub fn log(&self) -> PathBuf {
        self.folder.join("kube-apiserver.log")
    }

    /// Makes a namespace of a name nobody else has, `PREFIX-xxxxx`.
    pub async fn namespace(&self, prefix: &str) -> Result<String, Error> {
        let wanted = Namespace {
            metadata: ObjectMeta {
                generate_name: Some(format!("{prefix}-")),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        let made = Api::<Namespace>::all(self.client().await?)
            .create(&PostParams::default(), &wanted)
            .await
            .map_err(|error| Error::Refused {
                what: format!("make a namespace {prefix}-…"),
                why: error.to_string(),
            })?;
        Ok(made.metadata.name.unwrap_or_default())
    }

    fn read(&self, file: &str) -> Result<String, Error> {
        let path = self.folder.join(file);
        std::fs::read_to_string(&path).map_err(|source| Error::Files {
            folder: path,
            source,
        })
    }
}

impl Builder {
    /// Writes every request to [`ApiServer::audit_log`], metadata only.
    #[must_use]
    pub fn audit(mut self) -> Self {
        self.audit = true;
        self
    }

    /// Adds an argument of the API server, as `--name=value`.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Takes the programs from this folder.
    #[must_use]
    pub fn bin_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.bin_dir = Some(folder.into());
        self
    }

    /// Starts it, and returns when it is ready.
    pub async fn start(self) -> Result<ApiServer, Error> {
        let (etcd, apiserver) = crate::programs::for_fixture(self.bin_dir.as_deref()).await?;
        let mut attempt = 1;
        loop {
            match self.attempt(&etcd, &apiserver).await {
                Err(Error::Start { .. }) if attempt < ATTEMPTS => attempt += 1,
                result => return result,
            }
        }
    }

    async fn attempt(&self, etcd: &Path, apiserver: &Path) -> Result<ApiServer, Error> {
        let folder = tempfile::Builder::new()
            .prefix("steward-fixture-")
            .tempdir()
            .map_err(|source| Error::Files {
                folder: std::env::temp_dir(),
                source,
            })?
            .keep();
        let files = |source| Error::Files {
            folder: folder.clone(),
            source,
        };
        let (port, etcd_port) = free_ports().map_err(files)?;
        let keeper = Keeper::new(&folder).map_err(files)?;
        pki::write(&folder, port)?;
        if self.audit {
            std::fs::write(folder.join("audit.yaml"), AUDIT_POLICY).map_err(files)?;
        }
        keeper
            .run(&[
                command(etcd, etcd_arguments(&folder, etcd_port)),
                command(
                    apiserver,
                    self.apiserver_arguments(&folder, port, etcd_port),
                ),
            ])
            .map_err(files)?;
        let server = ApiServer {
            folder,
            port,
            etcd_port,
            keeper,
        };
        server.wait_ready().await?;
        Ok(server)
    }

    fn apiserver_arguments(&self, folder: &Path, port: u16, etcd_port: u16) -> Vec<String> {
        let file = |name: &str| folder.join(name).display().to_string();
        let mut arguments = vec![
            format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
            "--bind-address=127.0.0.1".into(),
            "--advertise-address=127.0.0.1".into(),
            format!("--secure-port={port}"),
            format!("--tls-cert-file={}", file("server.crt")),
            format!("--tls-private-key-file={}", file("server.key")),
            format!("--client-ca-file={}", file("ca.crt")),
            format!("--service-account-key-file={}", file("sa.pub")),
            format!("--service-account-signing-key-file={}", file("sa.key")),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local".into(),
            "--service-cluster-ip-range=10.0.0.0/16".into(),
            "--authorization-mode=RBAC".into(),
            "--allow-privileged=true".into(),
            "--endpoint-reconciler-type=none".into(),
            // No controller makes the `default` service account here, and
            // without it this plugin refuses every pod.
            "--disable-admission-plugins=ServiceAccount".into(),
            format!("--cert-dir={}", file("certs")),
        ];
        if self.audit {
            arguments.push(format!("--audit-policy-file={}", file("audit.yaml")));
            arguments.push(format!("--audit-log-path={}", file("audit.log")));
        }
        arguments.extend(self.arguments.iter().cloned());
        arguments
    }
}

impl ApiServer {
    async fn wait_ready(&self) -> Result<(), Error> {
        let client = self.client().await?;
        let ready = poll(READY, async || {
            if let Some(program) = self.keeper.ended(&PROGRAMS) {
                return Ok(Err(format!("{program} ended")));
            }
            let request = http_get("/readyz");
            match client.request_text(request).await {
                Ok(_) => Ok(Ok(())),
                Err(error) => Err(error.to_string()),
            }
        })
        .await;
        match ready {
            Ok(Ok(())) => Ok(()),
            Ok(Err(why)) | Err(why) => Err(Error::Start {
                why,
                log: self.last_words(),
            }),
        }
    }

    fn last_words(&self) -> String {
        PROGRAMS
            .map(|name| tail(&self.folder.join(format!("{name}.log"))))
            .join("\n")
    }
}

fn http_get(path: &str) -> http::Request<Vec<u8>> {
    let mut request = http::Request::new(Vec::new());
    *request.uri_mut() = path.parse().unwrap_or_default();
    request
}

fn tail(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}

fn etcd_arguments(folder: &Path, port: u16) -> Vec<String> {
    vec![
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls=http://127.0.0.1:{port}"),
        format!("--advertise-client-urls=http://127.0.0.1:{port}"),
        // A member on its own has no peers: any free port will do.
        "--listen-peer-urls=http://127.0.0.1:0".into(),
        // What is in here is worth nothing after the test.
        "--unsafe-no-fsync".into(),
        "--log-level=warn".into(),
    ]
}

fn command(program: &Path, arguments: Vec<String>) -> Vec<String> {
    std::iter::once(program.display().to_string())
        .chain(arguments)
        .collect()
}

fn free_ports() -> std::io::Result<(u16, u16)> {
    let first = TcpListener::bind(("127.0.0.1", 0))?;
    let second = TcpListener::bind(("127.0.0.1", 0))?;
    Ok((first.local_addr()?.port(), second.local_addr()?.port()))
}

const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
";
