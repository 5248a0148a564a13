//! The operator's program: flags in, exit code out.

use std::process::ExitCode;

use clap::Parser;
use steward_operator::{
    client,
    config::Config,
    run::{self, Extras},
    telemetry,
};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> ExitCode {
    let config = Config::parse();
    if let Err(sentence) = config.check().and_then(|()| telemetry::init(&config)) {
        eprintln!("error: {sentence}");
        return ExitCode::from(2);
    }
    let client = match client().await {
        Ok(client) => client,
        Err(error) => {
            eprintln!(
                "error: no way to the API server: {error:#}; run in a pod, or set KUBECONFIG"
            );
            return ExitCode::from(2);
        }
    };
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    match run::run(config, client, Extras::default(), stop).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ run::Error::Flags(_)) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
        Err(error @ run::Error::LostLeadership) => {
            tracing::error!(%error, "stopped");
            // Not by returning: that would wait for whatever blocks a thread, such as a name server.
            std::process::exit(1)
        }
    }
}

async fn client() -> anyhow::Result<kube::Client> {
    client::client(kube::Config::infer().await?).map_err(anyhow::Error::from_boxed)
}

async fn stop_on_signal(stop: CancellationToken) {
    let (Ok(mut terminate), Ok(mut interrupt)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) else {
        return;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping");
    stop.cancel();
}
