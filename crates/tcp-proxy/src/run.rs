//! From flags to a running proxy, and back to a node as it was.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use anyhow::{Context as _, bail};
use rustls::pki_types::ServerName;
use steward_wire::{
    Config, CountersHandle, Engine, Listen, ListenError,
    admin::{self, Handler, Request, Response},
    dial::{self, Target, Upstream},
    identity::{Counts, Followed, Follower, ServerIdentity, Trust, Versions},
    keeper::Keeper,
    signals::Stop,
};

use crate::{
    address::Addresses,
    args::{self, Args},
    health::{Probe, Verdict},
    metrics::{Metrics, Sources},
    proxy::{Mode, Proxy, Tunnel},
    terminate::Terminate,
};

/// A proxy that serves.
pub(crate) struct Running {
    engine: Engine,
    stop: Stop,
    draining: Arc<AtomicBool>,
    admin: Arc<Admin>,
    shutdown_delay: Duration,
    drain_timeout: Duration,
    /// Stops following the files when dropped.
    _follower: Follower,
    /// Taken off `lo` when dropped, last of all.
    _addresses: Addresses,
}

/// The admin address, while it is ours.
#[derive(Default)]
struct Admin {
    bound: OnceLock<SocketAddr>,
    closed: Arc<AtomicBool>,
}

/// Starts everything, or says what is wrong with the flags or files. What is not there yet, such
/// as the upstream, is not waited for.
pub(crate) fn start(args: &Args, keeper: &Keeper) -> anyhow::Result<Running> {
    let stop = Stop::new().context("can't catch signals")?;
    let (trust, ca) = Trust::open(&args.ca).context("--ca")?;
    let mut files = vec![ca];
    let mode = mode(args, &mut files)?;
    let target = args
        .upstream
        .clone()
        .with_aliases(&args.host_alias)
        .with_pinned(&args.pin)
        .with_internal(args.internal_endpoint);
    let server_name = server_name(args, &target)?;
    let upstream = Upstream::start(target, dial::System).context("can't start a thread")?;
    let proxy = Arc::new(Proxy {
        mode,
        upstream: Arc::new(upstream),
        trust,
        server_name,
        health: Arc::default(),
        metrics: Metrics::default(),
        access_log: args.access_log,
    });
    let addresses = Addresses::put(&args.address, keeper.heir())?;
    let settings = Config {
        workers: args.workers,
        ..Config::default()
    };
    let listen: Vec<Listen> = args
        .listen
        .iter()
        .map(|&address| Listen {
            // The tunnel does not depend on what the client says, so it need not wait for it.
            client_speaks_first: matches!(args.mode, args::Mode::Terminate),
            share: true,
            ..Listen::new(address)
        })
        .collect();
    let listeners = keeper.listeners(&listen, settings.effective_workers())?;
    let engine = Engine::serve(&settings, listeners, &proxy)?;
    let follower = Follower::start(files).context("can't start a thread")?;
    proxy
        .health
        .watch(probe(&proxy))
        .context("can't start a thread")?;
    let draining = Arc::new(AtomicBool::new(false));
    let handler = pages(
        &proxy,
        engine.counters_handle(),
        follower.counts(),
        &draining,
    );
    let admin = Arc::new(Admin::default());
    admin.serve(args.admin, handler)?;
    for address in engine.addresses() {
        tracing::info!(listen = %address, upstream = %args.upstream, mode = ?args.mode, "listening");
    }
    if args.mode == args::Mode::Terminate {
        tracing::warn!(
            "mode terminate: client certificates can't pass, clients must authenticate by token"
        );
    }
    Ok(Running {
        engine,
        stop,
        draining,
        admin,
        shutdown_delay: args.shutdown_delay,
        drain_timeout: args.drain_timeout,
        _follower: follower,
        _addresses: addresses,
    })
}

fn mode(args: &Args, files: &mut Vec<Followed>) -> anyhow::Result<Mode> {
    match (args.mode, &args.cert, &args.key) {
        (args::Mode::EndToEnd, None, None) => Ok(Mode::EndToEnd(Tunnel::new(&args.tunnel_alpn))),
        (args::Mode::EndToEnd, ..) => bail!(
            "--cert and --key are for --mode terminate: end to end, the API server's own \
             certificate is what clients see"
        ),
        (args::Mode::Terminate, Some(cert), Some(key)) => {
            let (identity, followed) = ServerIdentity::open(cert, key)?;
            files.push(followed);
            let config = identity
                .server_config(Versions::Tls12And13, Vec::new())
                .context("can't set up TLS")?;
            Ok(Mode::Terminate(Box::new(Terminate::new(config))))
        }
        (args::Mode::Terminate, ..) => bail!("--mode terminate needs --cert and --key"),
    }
}

/// What the upstream is called: by flag, or by its own name.
fn server_name(args: &Args, target: &Target) -> anyhow::Result<ServerName<'static>> {
    if let Some(name) = &args.server_name {
        return Ok(name.clone());
    }
    match (target.name(), target.literal()) {
        (Some(name), _) => ServerName::try_from(name.to_string())
            .with_context(|| format!("--upstream: `{name}` can't be a server name")),
        (None, Some(address)) => Ok(ServerName::from(address)),
        (None, None) => bail!("--upstream has no host"),
    }
}

fn probe(proxy: &Proxy) -> Probe {
    Probe {
        upstream: Arc::clone(&proxy.upstream),
        trust: Arc::clone(&proxy.trust),
        server_name: proxy.server_name.clone(),
        tunnel: match &proxy.mode {
            Mode::EndToEnd(tunnel) => Some(tunnel.clone()),
            Mode::Terminate(_) => None,
        },
    }
}

impl Admin {
    /// Serves the admin pages. While a predecessor on the same node still has the address, it
    /// is tried again until it is free: the successor must not fail because of it.
    fn serve(self: &Arc<Self>, address: SocketAddr, handler: Arc<Handler>) -> anyhow::Result<()> {
        match self.bind(address, &handler) {
            Ok(()) => {}
            Err(error) if error.source.kind() == io::ErrorKind::AddrInUse => {
                tracing::warn!(admin = %address, "admin address in use, by a predecessor on this node perhaps: waiting for it");
                let admin = Arc::clone(self);
                thread::Builder::new()
                    .name("admin-wait".to_owned())
                    .spawn(move || {
                        while !admin.closed.load(Relaxed) && admin.bind(address, &handler).is_err()
                        {
                            thread::sleep(Duration::from_secs(1));
                        }
                    })
                    .context("can't start a thread")?;
            }
            Err(error) => return Err(error).context("--admin"),
        }
        Ok(())
    }

    fn bind(&self, address: SocketAddr, handler: &Arc<Handler>) -> Result<(), ListenError> {
        let closed = Arc::clone(&self.closed);
        let bound = admin::serve_until(address, Arc::clone(handler), closed)?;
        tracing::info!(admin = %bound, "admin pages");
        let _ = self.bound.set(bound);
        Ok(())
    }

    /// Leaves the address to a successor, who is ready only when it can say so.
    fn close(&self) {
        match self.bound.get() {
            Some(bound) => admin::close(*bound, &self.closed),
            None => self.closed.store(true, Relaxed),
        }
    }
}

fn pages(
    proxy: &Arc<Proxy>,
    counters: CountersHandle,
    files: Arc<Counts>,
    draining: &Arc<AtomicBool>,
) -> Arc<Handler> {
    let (proxy, draining) = (Arc::clone(proxy), Arc::clone(draining));
    Arc::new(move |request: &Request<'_>| match request.path {
        "/livez" => Some(Response::ok("ok\n")),
        "/readyz" if draining.load(Relaxed) => Some(Response::unavailable("draining\n")),
        "/readyz" => Some(readiness(&proxy)),
        "/metrics" => Some(Response::metrics(proxy.metrics.page(&Sources {
            engine: &counters,
            files: &files,
            health: &proxy.health,
            upstream: &proxy.upstream,
        }))),
        _ => None,
    })
}

fn readiness(proxy: &Proxy) -> Response {
    let upstream = proxy.upstream.target();
    match proxy.health.verdict() {
        Verdict::Up => {
            let age = proxy.health.age().unwrap_or_default().as_secs();
            Response::ok(format!(
                "ok: the API server behind {upstream} answered {age} s ago\n"
            ))
        }
        Verdict::Unknown => Response::unavailable(format!("{upstream}: not tried yet\n")),
        Verdict::Down(reason) => Response::unavailable(format!("{upstream}: {reason}\n")),
    }
}

impl Running {
    /// Serves until a signal comes, then drains.
    pub(crate) fn until_stopped(mut self) {
        let signal = self.stop.wait();
        self.draining.store(true, Relaxed);
        let live = self.engine.counters().live;
        tracing::info!(signal, live, "stopping");
        thread::sleep(self.shutdown_delay);
        self.admin.close();
        let drained = self.engine.drain(self.drain_timeout);
        tracing::info!(cut = drained.remaining, "stopped");
    }
}
