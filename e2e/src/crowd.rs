//! Many clients at once, each asking its own tenant again and again while something is done to the
//! cluster, and looking at every answer.
//!
//! Owns the counting: what failed, what was merely cut and asked again, what came from the wrong
//! tenant. Refuses to judge: a story says what may fail.

use std::fmt;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream as Dialled;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, RootCertStore};
use steward_lab::Host;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::tenant::Tenant;

/// Between two requests of one client.
const PACE: Duration = Duration::from_secs(2);
/// After a failure.
const AGAIN: Duration = Duration::from_millis(100);
/// No answer at all within this time is a failure too.
const PATIENCE: Duration = Duration::from_secs(30);
/// What the errors of connecting begin with.
const CONNECT: &str = "connect";
/// Failures that are kept word by word.
const KEPT: usize = 20;

/// Where a client goes, and what it has to find there.
#[derive(Clone, Debug)]
pub struct Target {
    /// In the hello, and in the certificate that comes back.
    pub name: String,
    /// What is dialled.
    pub address: SocketAddr,
    /// Who must have signed the certificate, PEM.
    pub authority: String,
    /// Who asks.
    pub token: String,
    /// Of the namespace kube-system: no two tenants have the same.
    pub uid: String,
}

impl Target {
    /// A tenant at a name and an address, asked by its default account, which may look from now on.
    pub async fn of(tenant: &Tenant, name: &str, address: SocketAddr) -> Result<Self> {
        let grant = [
            "create",
            "clusterrolebinding",
            "look",
            "--clusterrole=view",
            "--serviceaccount=default:default",
        ];
        let granted = tenant.kubectl(&grant).await;
        if let Err(error) = granted {
            ensure!(error.to_string().contains("already exists"), "{error:#}");
        }
        let token = ["create", "token", "default", "--duration=3h"];
        let uid = "jsonpath={.metadata.uid}";
        let trusted = [
            "get",
            "configmap",
            "kube-root-ca.crt",
            "-o",
            "jsonpath={.data.ca\\.crt}",
        ];
        Ok(Self {
            name: name.to_owned(),
            address,
            authority: tenant.kubectl(&trusted).await?,
            token: tenant.kubectl(&token).await?.trim().to_owned(),
            uid: tenant
                .kubectl(&["get", "namespace", "kube-system", "-o", uid])
                .await?,
        })
    }
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Requests that were answered as they should.
    pub answered: u64,
    /// Connections that were opened.
    pub opened: u64,
    /// Kept connections that were closed under a client, which then asked on a new one.
    pub cut: u64,
    /// Requests on a new connection that got no answer, or a wrong one.
    pub failed: u64,
    /// Those of them that nobody was there to connect to.
    pub refused: u64,
    /// Answers of another tenant.
    pub misrouted: u64,
    /// The longest time that one client was without an answer.
    pub longest: Duration,
    /// What was said of the first failures.
    pub words: Vec<String>,
}

/// Clients at work; they stop when told, or when dropped.
pub struct Crowd {
    stop: Arc<AtomicBool>,
    tally: Arc<Mutex<Figures>>,
    tasks: JoinSet<()>,
}

struct Client {
    host: Host,
    target: Arc<Target>,
    tls: TlsConnector,
    keeps: bool,
    kept: Option<TlsStream<UnixStream>>,
    tally: Arc<Mutex<Figures>>,
}

enum Fault {
    Failed(anyhow::Error),
    Misrouted(String),
}

impl Crowd {
    /// Starts so many clients on a host. Half of them keep their connection, half open one per
    /// request.
    pub fn start(host: &Host, target: &Target, clients: u32) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(target.authority.as_bytes()) {
            roots.add(certificate?)?;
        }
        let config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let tls = TlsConnector::from(Arc::new(config));
        let (stop, tally) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let target = Arc::new(target.clone());
        let mut tasks = JoinSet::new();
        for number in 0..clients {
            let client = Client {
                host: host.clone(),
                target: Arc::clone(&target),
                tls: tls.clone(),
                keeps: number % 2 == 0,
                kept: None,
                tally: Arc::clone(&tally),
            };
            // Spread over the pace, so that something is under way at every moment.
            let delay = PACE * number / clients;
            tasks.spawn(client.work(Arc::clone(&stop), delay));
        }
        Ok(Self { stop, tally, tasks })
    }

    /// What has come of it since it was last asked.
    pub fn take(&self) -> Figures {
        std::mem::take(&mut *lock(&self.tally))
    }

    /// What has come of it so far.
    pub fn look(&self) -> Figures {
        lock(&self.tally).clone()
    }

    /// Lets every client finish its request and tells what came of all since the last look.
    pub async fn finish(mut self) -> Figures {
        self.stop.store(true, Relaxed);
        while self.tasks.join_next().await.is_some() {}
        self.take()
    }
}

impl Client {
    async fn work(mut self, stop: Arc<AtomicBool>, delay: Duration) {
        tokio::time::sleep(delay).await;
        let mut since: Option<Instant> = None;
        while !stop.load(Relaxed) {
            let asked = Instant::now();
            let outcome = self.ask().await;
            let well = outcome.is_ok();
            let since_when = *since.get_or_insert(asked);
            lock(&self.tally).count(outcome, since_when);
            if well {
                since = None;
                tokio::time::sleep(PACE).await;
            } else {
                tokio::time::sleep(AGAIN).await;
            }
        }
    }

    /// One request: on the kept connection if there is one, else on a new one. A kept one that
    /// turns out to be closed is no failure: every HTTP client asks again then. Nor is a server that
    /// says so instead (503 with Retry-After): clients of Kubernetes ask again then, too.
    async fn ask(&mut self) -> Result<(), Fault> {
        if let Some(mut stream) = self.kept.take() {
            match tokio::time::timeout(PATIENCE, self.exchange(&mut stream)).await {
                Ok(Ok(answer)) if !answer.elsewhere => return self.judge(answer, stream),
                Ok(_) => lock(&self.tally).cut += 1,
                Err(_) => return Err(silence("a kept connection")),
            }
        }
        let fresh = async {
            let mut stream = self.open().await?;
            let answer = self.exchange(&mut stream).await?;
            anyhow::Ok((answer, stream))
        };
        match tokio::time::timeout(PATIENCE, fresh).await {
            Ok(Ok((answer, stream))) => self.judge(answer, stream),
            Ok(Err(error)) => Err(Fault::Failed(error)),
            Err(_) => Err(silence("a new connection")),
        }
    }

    async fn open(&self) -> Result<TlsStream<UnixStream>> {
        let (host, address) = (self.host.clone(), self.target.address);
        let dialled = tokio::task::spawn_blocking(move || host.connect(address)).await?;
        let dialled: Dialled = dialled.context(CONNECT)?;
        dialled.set_nonblocking(true)?;
        let name = ServerName::try_from(self.target.name.clone())?;
        let stream = UnixStream::from_std(dialled)?;
        let stream = self.tls.connect(name, stream).await.context("handshake")?;
        lock(&self.tally).opened += 1;
        Ok(stream)
    }

    async fn exchange(&self, stream: &mut TlsStream<UnixStream>) -> Result<Answer> {
        let request = format!(
            "GET /api/v1/namespaces/kube-system HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
             Accept: application/json\r\nUser-Agent: steward-e2e\r\n\r\n",
            self.target.name, self.target.token
        );
        stream.write_all(request.as_bytes()).await.context("send")?;
        stream.flush().await.context("send")?;
        Answer::read(stream).await.context("receive")
    }

    fn judge(&mut self, answer: Answer, stream: TlsStream<UnixStream>) -> Result<(), Fault> {
        if answer.status != 200 {
            let error = anyhow::anyhow!("status {}: {}", answer.status, answer.body);
            return Err(Fault::Failed(error));
        }
        if !answer.body.contains(&self.target.uid) {
            return Err(Fault::Misrouted(answer.body));
        }
        if self.keeps && !answer.last {
            self.kept = Some(stream);
        }
        Ok(())
    }
}

struct Answer {
    status: u16,
    body: String,
    /// Whether the server closes the connection after it.
    last: bool,
    /// Whether the server is about to go and asks to try again.
    elsewhere: bool,
}

impl Answer {
    async fn read(stream: &mut TlsStream<UnixStream>) -> Result<Self> {
        let mut bytes = Vec::new();
        let head = loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            let more = stream.read_buf(&mut bytes).await?;
            ensure!(more > 0, "closed before an answer");
        };
        let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name))
                .map(str::trim)
        };
        let status = text.split(' ').nth(1).context("no status")?.parse()?;
        let length: usize = field("content-length:").context("no length")?.parse()?;
        let last = field("connection:") == Some("close");
        while bytes.len() < head + length {
            let more = stream.read_buf(&mut bytes).await?;
            ensure!(more > 0, "closed in the middle of an answer");
        }
        let body = String::from_utf8_lossy(&bytes[head..]).into_owned();
        Ok(Self {
            elsewhere: status == 503 && field("retry-after:").is_some(),
            status,
            body,
            last,
        })
    }
}

impl Figures {
    fn count(&mut self, outcome: Result<(), Fault>, since: Instant) {
        match outcome {
            Ok(()) => {
                self.answered += 1;
                self.longest = self.longest.max(since.elapsed());
            }
            Err(Fault::Failed(error)) => self.fail(&error),
            Err(Fault::Misrouted(answer)) => {
                self.misrouted += 1;
                self.words.push(answer);
            }
        }
    }

    fn fail(&mut self, error: &anyhow::Error) {
        self.failed += 1;
        self.refused += u64::from(error.to_string() == CONNECT);
        if self.words.len() < KEPT {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            let now = now.unwrap_or_default().as_secs_f64();
            self.words.push(format!("{now:.1} {error:#}"));
        }
    }

    /// Prints them, and what was said of failures.
    pub fn tell(&self, of: &str) {
        eprintln!("{of}: {self}");
        for words in &self.words {
            eprintln!("    {}", words.trim());
        }
    }

    /// Adds what others found.
    pub fn add(&mut self, other: Self) {
        self.answered += other.answered;
        self.opened += other.opened;
        self.cut += other.cut;
        self.failed += other.failed;
        self.refused += other.refused;
        self.misrouted += other.misrouted;
        self.longest = self.longest.max(other.longest);
        self.words.extend(other.words);
    }

    /// Fails if a request failed or went astray, or if there was none.
    pub fn none_failed(&self, during: &str) -> Result<()> {
        ensure!(self.answered > 0, "{during}: no request was made");
        self.none_astray(during)?;
        ensure!(
            self.failed == 0,
            "{during}: {self}\n{}",
            self.words.join("\n")
        );
        Ok(())
    }

    /// Fails if somebody could not connect, or if a request went astray.
    pub fn none_refused(&self, during: &str) -> Result<()> {
        self.none_astray(during)?;
        ensure!(
            self.refused == 0,
            "{during}: {self}\n{}",
            self.words.join("\n")
        );
        Ok(())
    }

    /// Fails if an answer was another tenant's.
    pub fn none_astray(&self, during: &str) -> Result<()> {
        ensure!(
            self.misrouted == 0,
            "{during}: {self}\n{}",
            self.words.join("\n")
        );
        Ok(())
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} answered on {} new connections, {} kept ones cut, {} failed ({} refused), {} misrouted, longest wait {} ms",
            self.answered,
            self.opened,
            self.cut,
            self.failed,
            self.refused,
            self.misrouted,
            self.longest.as_millis()
        )
    }
}

fn silence(what: &str) -> Fault {
    Fault::Failed(anyhow::anyhow!("{what} gave no answer in {PATIENCE:?}"))
}

fn lock(tally: &Mutex<Figures>) -> std::sync::MutexGuard<'_, Figures> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}
