//! From flags to a running gate, and back to nothing.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use steward_wire::{
    Config, Engine, Listen,
    admin::{self, Handler, Request, Response},
    identity::{Follower, ServerIdentity, Versions},
    keeper::Keeper,
};

use crate::{
    access::{Limits, Ranges},
    args::Args,
    gate::Gate,
    metrics::Metrics,
};

/// A gate that serves. Dropping it cuts its connections.
#[derive(Debug)]
pub struct Running {
    engine: Engine,
    admin: SocketAddr,
    draining: Arc<AtomicBool>,
    shutdown_delay: Duration,
    drain_timeout: Duration,
    /// Stops following the files when dropped.
    _follower: Follower,
}

fn gate(args: &Args, identity: &Arc<ServerIdentity>) -> anyhow::Result<Gate> {
    let alpn = vec![args.tunnel_alpn.clone().into_bytes()];
    let tunnel = identity
        .server_config(Versions::Tls13, alpn)
        .context("can't set up TLS")?;
    Ok(Gate {
        apiserver: args.apiserver,
        konnectivity: args.konnectivity,
        konnectivity_alpn: args.konnectivity_alpn.clone().into_bytes(),
        konnectivity_names: args.konnectivity_name.clone(),
        tunnel_alpn: args.tunnel_alpn.clone().into_bytes(),
        tunnel: Arc::new(tunnel),
        allow: Ranges::new(&args.allow),
        trust_proxy: Ranges::new(&args.trust_proxy),
        limits: Limits::new(
            args.max_connections,
            args.max_handshakes_per_second,
            Instant::now(),
        ),
        metrics: Metrics::default(),
        access_log: args.access_log,
    })
}

fn pages(
    gate: &Arc<Gate>,
    engine: &Engine,
    follower: &Follower,
    draining: &Arc<AtomicBool>,
) -> Arc<Handler> {
    let (gate, counters, files) = (
        Arc::clone(gate),
        engine.counters_handle(),
        follower.counts(),
    );
    let draining = Arc::clone(draining);
    Arc::new(move |request: &Request<'_>| match request.path {
        "/readyz" if draining.load(Relaxed) => Some(Response::unavailable("draining\n")),
        "/livez" | "/readyz" => Some(Response::ok("ok\n")),
        "/metrics" => Some(Response::metrics(gate.metrics.page(&counters, &files))),
        _ => None,
    })
}

impl Running {
    /// Starts everything, or says what is wrong with the flags or files.
    pub fn start(args: &Args, keeper: &Keeper) -> anyhow::Result<Self> {
        let (identity, files) = ServerIdentity::open(&args.cert, &args.key)?;
        let gate = Arc::new(gate(args, &identity)?);
        let settings = Config {
            workers: args.workers,
            ..Config::default()
        };
        let listen = [Listen::new(args.listen)];
        let listeners = keeper.listeners(&listen, settings.effective_workers())?;
        let engine = Engine::serve(&settings, listeners, &gate)?;
        let follower = Follower::start(vec![files]).context("can't start a thread")?;
        let draining = Arc::new(AtomicBool::new(false));
        let handler = pages(&gate, &engine, &follower, &draining);
        let admin = admin::serve(args.admin, handler).context("--admin")?;
        for address in engine.addresses() {
            tracing::info!(
                listen = %address,
                admin = %admin,
                apiserver = %args.apiserver,
                konnectivity = args.konnectivity.map(tracing::field::display),
                "ready"
            );
        }
        Ok(Self {
            engine,
            admin,
            draining,
            shutdown_delay: args.shutdown_delay,
            drain_timeout: args.drain_timeout,
            _follower: follower,
        })
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.engine.addresses()
    }

    /// Where its admin pages are.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Lets live connections finish, within the limits given by flags. `because` is for the log.
    pub fn stop(self, because: &str) {
        self.draining.store(true, Relaxed);
        let live = self.engine.counters().live;
        tracing::info!(because, live, "stopping");
        thread::sleep(self.shutdown_delay);
        let drained = self.engine.drain(self.drain_timeout);
        tracing::info!(cut = drained.remaining, "stopped");
    }
}
