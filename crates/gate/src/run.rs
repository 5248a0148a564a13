//! From flags to a running gate, and back to nothing.

use std::{
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
    admin::{self, Handler, Response},
    identity::{Follower, ServerIdentity, Versions},
    signals::Stop,
};

use crate::{
    access::{Limits, Ranges},
    args::Args,
    gate::Gate,
    metrics::Metrics,
};

/// A gate that serves.
pub(crate) struct Running {
    engine: Engine,
    stop: Stop,
    draining: Arc<AtomicBool>,
    shutdown_delay: Duration,
    drain_timeout: Duration,
    /// Stops following the files when dropped.
    _follower: Follower,
}

/// Starts everything, or says what is wrong with the flags or files.
pub(crate) fn start(args: &Args) -> anyhow::Result<Running> {
    let stop = Stop::new().context("can't catch signals")?;
    let (identity, followed) = ServerIdentity::open(&args.cert, &args.key)?;
    let alpn = vec![args.tunnel_alpn.clone().into_bytes()];
    let tunnel = identity
        .server_config(Versions::Tls13, alpn)
        .context("can't set up TLS")?;
    let gate = Arc::new(Gate {
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
    });
    let settings = Config {
        workers: args.workers,
        ..Config::default()
    };
    let engine = Engine::start(&settings, &[Listen::new(args.listen)], &gate)?;
    let follower = Follower::start(vec![followed]).context("can't start a thread")?;
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
    Ok(Running {
        engine,
        stop,
        draining,
        shutdown_delay: args.shutdown_delay,
        drain_timeout: args.drain_timeout,
        _follower: follower,
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
    Arc::new(move |path| match path {
        "/readyz" if draining.load(Relaxed) => Some(Response::unavailable("draining\n")),
        "/livez" | "/readyz" => Some(Response::ok("ok\n")),
        "/metrics" => Some(Response::metrics(gate.metrics.page(&counters, &files))),
        _ => None,
    })
}

impl Running {
    /// Serves until a signal comes, then drains.
    pub(crate) fn until_stopped(mut self) {
        let signal = self.stop.wait();
        self.draining.store(true, Relaxed);
        let live = self.engine.counters().live;
        tracing::info!(signal, live, "stopping");
        thread::sleep(self.shutdown_delay);
        let drained = self.engine.drain(self.drain_timeout);
        tracing::info!(cut = drained.remaining, "stopped");
    }
}
