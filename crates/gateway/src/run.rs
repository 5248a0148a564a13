//! From the command line to a running gateway, and to its end.

use std::{
    process::ExitCode,
    sync::{Arc, OnceLock, atomic::AtomicBool, atomic::Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use steward_wire::{
    Config, Engine, Listen, ListenError, Listeners, StartError,
    admin::{self, Request},
    keeper::{self, Keeper, Role},
    logging,
    signals::Stop,
};

use crate::{
    admin::Pages,
    capacity::{self, Capacity},
    cli::Options,
    file::FileError,
    kubernetes::{controller, follow},
    metrics::Metrics,
    proxy::{Gateway, Trust},
    reload::Reloader,
    shares::{Limits, Shares},
    table::Router,
};

/// Why the gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The routes file.
    #[error(transparent)]
    Routes(#[from] FileError),
    /// A flag's address.
    #[error("{flag}: {source}")]
    Address {
        /// The flag.
        flag: &'static str,
        /// What is wrong with it.
        source: ListenError,
    },
    /// The system refused something.
    #[error("could not start: {0}")]
    System(String),
}

/// Bad input ends with this code, as bad flags do.
const BAD_INPUT: u8 = 2;

/// Runs until SIGTERM and drains.
pub fn run(options: &Options) -> ExitCode {
    logging::init(options.log_format);
    let outcome = match keeper::split(options.restart_in_place, options.holder.as_deref()) {
        Ok(Role::Serve(keeper)) => serve(options, &keeper),
        Ok(Role::End(code)) => return code,
        Err(error) => Err(Failure::System(error.to_string())),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("steward-gateway: {failure}");
            match failure {
                Failure::Routes(_) | Failure::Address { .. } => ExitCode::from(BAD_INPUT),
                Failure::System(_) => ExitCode::FAILURE,
            }
        }
    }
}

fn serve(options: &Options, keeper: &Keeper) -> Result<(), Failure> {
    let system = |error: std::io::Error| Failure::System(error.to_string());
    let mut stop = Stop::new().map_err(system)?;
    let router = Arc::new(Router::default());
    let metrics = Arc::new(Metrics::new(options.metrics_routes));
    let synced = Arc::new(AtomicBool::new(options.routes.is_some()));
    let reloader = match &options.routes {
        Some(file) => Some(Reloader::start(
            file.clone(),
            Arc::clone(&router),
            Arc::clone(&metrics),
        )?),
        None => None,
    };
    if options.kubernetes {
        follow::start(following(options), Arc::clone(&router), Arc::clone(&synced))
            .map_err(system)?;
    }
    let (config, shares) = room(options);
    let pages = Arc::new(Pages {
        router: Arc::clone(&router),
        metrics: Arc::clone(&metrics),
        shares: Arc::clone(&shares),
        private_metrics: options.private_metrics,
        engine: OnceLock::new(),
        draining: AtomicBool::new(false),
        synced,
        start: Instant::now(),
    });
    let shown = Arc::clone(&pages);
    let admin = admin::serve(
        options.admin,
        Arc::new(move |request: &Request<'_>| shown.answer(request)),
    )
    .map_err(|source| Failure::Address {
        flag: "--admin",
        source,
    })?;
    let listeners = listeners(options, keeper, &config)?;
    if let Some(signal) = known(&pages.synced, &mut stop) {
        tracing::info!(signal, "stopped before the routes were known");
        return Ok(());
    }
    let gateway = gateway(options, &router, metrics, &shares);
    let engine = Engine::serve(&config, listeners, &gateway).map_err(unable)?;
    // Set once, here.
    let _ = pages.engine.set(engine.counters_handle());
    let _watching = reloader.map(Reloader::watch).transpose().map_err(system)?;
    tracing::info!(
        listen = ?engine.addresses(),
        %admin,
        routes = router.table().len(),
        connections = shares.limits().connections,
        "gateway serves"
    );
    let signal = stop.wait();
    pages.draining.store(true, Relaxed);
    // Those who send us connections learn from /readyz; until they have, we take them.
    thread::sleep(options.shutdown_delay);
    drain(engine, options, signal, stop);
    Ok(())
}

fn following(options: &Options) -> controller::Config {
    controller::Config {
        port: options.port,
        publish_service: options.publish_service.clone(),
        publish_addresses: options.publish_address.clone(),
    }
}

/// How much room there is, and who may have how much of it.
fn room(options: &Options) -> (Config, Arc<Shares>) {
    let config = Config {
        workers: options.workers,
        hello_timeout: options.hello_timeout,
        connect_timeout: options.connect_timeout,
        half_closed_timeout: options.half_closed_timeout,
        ..Config::default()
    };
    let given = options.max_connections;
    let memory = capacity::memory();
    let buffered = options.max_buffered.map(|mib| mib.saturating_mul(1 << 20));
    let capacity = Capacity::new(config.sockets(), memory, given);
    if let Some(given) = given.filter(|given| *given > capacity.connections) {
        tracing::warn!(
            given,
            connections = capacity.connections,
            "--max-connections is more than may be opened; raise the limit on open files"
        );
    }
    let limited = |rate: u32| (rate > 0).then_some(rate);
    let shares = Shares::new(Limits {
        connections: capacity.connections,
        route: options.route_share,
        source: options.source_share,
        route_handshakes: limited(options.route_handshakes),
        source_handshakes: limited(options.source_handshakes),
    });
    let config = Config {
        max_descriptors: Some(capacity.sockets),
        max_buffered: buffered.or(memory.map(|memory| memory / 2)),
        ..config
    };
    (config, Arc::new(shares))
}

fn listeners(options: &Options, keeper: &Keeper, config: &Config) -> Result<Listeners, Failure> {
    let listen: Vec<Listen> = options.listen.iter().copied().map(Listen::new).collect();
    keeper
        .listeners(&listen, config.effective_workers())
        .map_err(|source| unable(StartError::Listen(source)))
}

fn gateway(
    options: &Options,
    router: &Arc<Router>,
    metrics: Arc<Metrics>,
    shares: &Arc<Shares>,
) -> Arc<Gateway> {
    let trust = Trust(options.trust_proxy.clone());
    let (router, shares) = (Arc::clone(router), Arc::clone(shares));
    Arc::new(Gateway::new(
        router,
        metrics,
        shares,
        trust,
        options.access_log,
    ))
}

/// Waits until the routes are known: whoever came before would be told that nobody has the
/// name it asks for. Returns early with a signal.
fn known(synced: &AtomicBool, stop: &mut Stop) -> Option<&'static str> {
    while !synced.load(Relaxed) {
        if let Some(signal) = stop.came() {
            return Some(signal);
        }
        thread::sleep(Duration::from_millis(5));
    }
    None
}

fn unable(error: StartError) -> Failure {
    match error {
        StartError::Listen(source) => Failure::Address {
            flag: "--listen",
            source,
        },
        StartError::System { operation, source } => {
            Failure::System(format!("{operation}: {source}"))
        }
    }
}

fn drain(engine: Engine, options: &Options, signal: &str, mut stop: Stop) {
    let live = engine.counters().live;
    let limit = options.drain_timeout;
    tracing::info!(signal, live, ?limit, "draining: no new connections");
    // Whoever asks twice does not want to wait.
    thread::spawn(move || {
        stop.wait();
        tracing::warn!("asked again, stopping at once");
        std::process::exit(1);
    });
    let drained = engine.drain(limit);
    match drained.remaining {
        0 => tracing::info!("drained, all connections finished"),
        remaining => tracing::warn!(remaining, "drain timeout, connections were cut"),
    }
}
