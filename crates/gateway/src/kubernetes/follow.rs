//! Connects the watches to the table: a thread of its own with a small runtime,
//! away from the threads that carry bytes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use kube::Client;
use tracing::{error, warn};

use super::controller::{self, Change, Config, Goal};
use crate::host::Host;
use crate::route::RouteSpec;
use crate::table::{Router, Table};

/// Starts following the cluster. `synced` turns true after the first full table.
pub fn start(config: Config, router: Arc<Router>, synced: Arc<AtomicBool>) -> io::Result<()> {
    // The only error is that a provider is installed already: then there is one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let thread = thread::Builder::new().name("kubernetes".to_owned());
    thread.spawn(move || runtime.block_on(follow(config, &router, &synced)))?;
    Ok(())
}

async fn follow(config: Config, router: &Router, synced: &AtomicBool) {
    let client = match Client::try_default().await {
        Ok(client) => client,
        // Without a cluster there will never be a route: better to say so and be restarted.
        Err(problem) => {
            error!(error = %problem, "no cluster to follow; check the service account or KUBECONFIG");
            std::process::exit(2);
        }
    };
    let apply = |changes: Vec<Change>| router.update(|table| changed(table, &changes));
    controller::run(client, config, apply, || synced.store(true, Relaxed)).await;
}

fn changed(table: &Table, changes: &[Change]) -> Table {
    let mut next = table.clone();
    for change in changes {
        match change {
            Change::Set(host, goal) => {
                if let Some(host) = parse(host) {
                    next = next.with_route(host, &route(goal));
                }
            }
            Change::Remove(host) => {
                if let Some(host) = parse(host) {
                    next = next.without(&host);
                }
            }
        }
    }
    next
}

fn parse(host: &str) -> Option<Host> {
    host.parse()
        .inspect_err(|why| warn!(%why, "a hostname is left out"))
        .ok()
}

fn route(goal: &Goal) -> RouteSpec {
    RouteSpec {
        backends: goal.backends.clone(),
        allow: goal.allow.clone(),
        one_label: goal.one_label,
        ..RouteSpec::default()
    }
}
