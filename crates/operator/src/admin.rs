//! The operator's own HTTP: `/livez`, `/readyz`, `/metrics`.
//!
//! Refuses: anything that changes state. Ready means the caches are filled; a standby is ready too,
//! since it can take over at once.

use std::{
    net::SocketAddr,
    sync::Arc,
    sync::atomic::{AtomicBool, Ordering},
};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

/// Whether the caches are filled.
#[derive(Clone, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    /// Says that everything needed to work is there.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it was said.
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Routes of the health address.
pub fn health(readiness: Readiness) -> Router {
    Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .with_state(readiness)
}

/// Routes of the metrics address.
pub fn metrics(metrics: Metrics) -> Router {
    Router::new()
        .route("/metrics", get(render))
        .with_state(metrics)
}

async fn ready(State(readiness): State<Readiness>) -> impl IntoResponse {
    if readiness.get() {
        (StatusCode::OK, "ok\n")
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "the caches are not filled yet: is the API server reachable, are the CRDs installed?\n",
        )
    }
}

async fn render(State(metrics): State<Metrics>) -> impl IntoResponse {
    (
        [(
            header::CONTENT_TYPE,
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
        )],
        metrics.render(),
    )
}

/// Opens the address, so that a taken port is known before anything starts.
///
/// # Errors
/// A sentence that names the flag.
pub async fn bind(flag: &str, address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address).await.map_err(|error| {
        format!("{flag}: can't listen on {address}: {error}; choose a free port or `0`")
    })
}

/// Serves until the token is cancelled.
pub async fn serve(listener: TcpListener, routes: Router, stop: CancellationToken) {
    let served = axum::serve(listener, routes)
        .with_graceful_shutdown(stop.cancelled_owned())
        .await;
    if let Err(error) = served {
        tracing::error!(%error, "admin server stopped");
    }
}
