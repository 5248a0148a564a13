//! `steward get`: tenants at a glance.

use std::process::ExitCode;

use futures::StreamExt;
use jiff::Timestamp;
use kube::api::{Api, ListParams};
use kube::runtime::{WatchStreamExt, watcher};
use steward_api::TenantControlPlane;

use super::rows::Row;
use crate::args::{Get, Output};
use crate::cluster::Management;
use crate::output::table;
use crate::problem::Problem;

/// Objects a page: memory stays bounded however many tenants there are.
const PAGE: u32 = 500;

/// Prints, and stays if asked to.
pub async fn run(management: &Management, args: &Get) -> Result<ExitCode, Problem> {
    let rows = match &args.name {
        Some(name) => vec![Row::new(&management.tenant(name).await?, Timestamp::now())],
        None => list(management, args.all_namespaces).await?,
    };
    print(&rows, args.output)?;
    if args.watch {
        watch(management, args).await?;
    }
    Ok(ExitCode::SUCCESS)
}

fn api(management: &Management, all: bool) -> Api<TenantControlPlane> {
    if all {
        Api::all(management.client.clone())
    } else {
        management.tenants()
    }
}

async fn list(management: &Management, all: bool) -> Result<Vec<Row>, Problem> {
    let api = api(management, all);
    let now = Timestamp::now();
    let mut rows = Vec::new();
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let found = api
            .list(&page)
            .await
            .map_err(|e| Problem::from_api("list tenants", e))?;
        rows.extend(found.items.iter().map(|t| Row::new(t, now)));
        match found.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = ListParams::default().limit(PAGE).continue_token(&token),
            None => return Ok(rows),
        }
    }
}

fn print(rows: &[Row], output: Output) -> Result<(), Problem> {
    let broken = |e: String| Problem::Argument(e);
    match output {
        Output::Json => {
            let text = serde_json::to_string_pretty(rows).map_err(|e| broken(e.to_string()))?;
            anstream::println!("{text}");
        }
        Output::Yaml => {
            let text = serde_saphyr::to_string(&rows).map_err(|e| broken(e.to_string()))?;
            anstream::print!("{text}");
        }
        Output::Table | Output::Wide => {
            let wide = output == Output::Wide;
            if rows.is_empty() {
                anstream::eprintln!(
                    "no tenants here; `steward create` makes one, -A looks in every namespace"
                );
                return Ok(());
            }
            let cells: Vec<_> = rows.iter().map(|r| r.cells(wide)).collect();
            anstream::print!("{}", table(&Row::head(wide), &cells));
        }
    }
    Ok(())
}

async fn watch(management: &Management, args: &Get) -> Result<(), Problem> {
    let config = match &args.name {
        Some(name) => watcher::Config::default().fields(&format!("metadata.name={name}")),
        None => watcher::Config::default(),
    };
    let stream = watcher(api(management, args.all_namespaces), config)
        .default_backoff()
        .touched_objects();
    let mut stream = std::pin::pin!(stream);
    let mut shown = std::collections::BTreeMap::new();
    while let Some(event) = stream.next().await {
        let Ok(tenant) = event else { continue };
        let row = Row::new(&tenant, Timestamp::now());
        let key = (row.namespace.clone(), row.name.clone());
        let seen = Row {
            age_seconds: 0,
            ..row.clone()
        };
        if shown.insert(key, seen.clone()) != Some(seen) {
            print(std::slice::from_ref(&row), args.output)?;
        }
    }
    Ok(())
}
