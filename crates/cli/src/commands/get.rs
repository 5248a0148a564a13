//! `steward get`: tenants at a glance.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use kube::runtime::{WatchStreamExt, watcher};
use steward_api::TenantControlPlane;

use super::rows::Row;
use crate::args::{Get, Output};
use crate::cluster::Management;
use crate::output::{machine, table, width};
use crate::problem::Problem;

/// Objects a page: memory stays bounded however many tenants there are.
const PAGE: u32 = 500;

/// With more tenants than this, they are not asked for their nodes one by one.
const ASKED: usize = 50;

/// How many are asked at once, and how long one may take.
const AT_ONCE: usize = 10;
const PATIENCE: Duration = Duration::from_secs(2);

/// Prints, and stays if asked to.
pub async fn run(management: &Management, args: &Get) -> Result<ExitCode, Problem> {
    let mut rows = match &args.name {
        Some(name) => vec![Row::new(&management.tenant(name).await?, Timestamp::now())],
        None => list(management, args.all_namespaces).await?,
    };
    if rows.len() <= ASKED {
        count_workers(management, &mut rows).await;
    }
    print(&rows, args, true)?;
    if args.watch {
        watch(management, args, &rows).await?;
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

/// Asks the tenants that can be used how many nodes they have, several at a time.
async fn count_workers(management: &Management, rows: &mut [Row]) {
    let asked: Vec<_> = rows
        .iter_mut()
        .filter(|row| row.available)
        .map(async |row| {
            let seen = Management {
                client: management.client.clone(),
                namespace: row.namespace.clone(),
            };
            let counted = tokio::time::timeout(PATIENCE, workers(&seen, &row.name)).await;
            row.workers = counted.ok().flatten();
        })
        .collect();
    futures::stream::iter(asked)
        .buffer_unordered(AT_ONCE)
        .collect::<()>()
        .await;
}

async fn workers(management: &Management, tenant: &str) -> Option<u64> {
    let client = management.tenant_client(tenant).await.ok()?;
    let api: Api<Node> = Api::all(client);
    // The first page is enough: the answer says how many more there are.
    let found = api
        .list_metadata(&ListParams::default().limit(PAGE))
        .await
        .ok()?;
    let more = found.metadata.remaining_item_count.unwrap_or(0);
    Some(found.items.len() as u64 + u64::try_from(more).unwrap_or(0))
}

fn print(rows: &[Row], args: &Get, head: bool) -> Result<(), Problem> {
    // One tenant asked for by name is an object, a list is a list, as kubectl has it.
    let text = match (&args.name, rows) {
        (Some(_), [row]) => machine(row, args.output)?,
        _ => machine(&rows, args.output)?,
    };
    if let Some(text) = text {
        out!("{text}");
        return Ok(());
    }
    if rows.is_empty() {
        let where_else = if args.all_namespaces {
            ""
        } else {
            ", -A looks in every namespace"
        };
        anstream::eprintln!("no tenants here; `steward create` makes one{where_else}");
        return Ok(());
    }
    let wide = args.output == Output::Wide;
    let cells: Vec<_> = rows
        .iter()
        .map(|r| r.cells(wide, args.all_namespaces))
        .collect();
    let text = table(&Row::head(wide, args.all_namespaces), &cells, width());
    let skipped = usize::from(!head);
    text.lines().skip(skipped).for_each(|line| outln!("{line}"));
    Ok(())
}

async fn watch(management: &Management, args: &Get, first: &[Row]) -> Result<(), Problem> {
    let config = match &args.name {
        Some(name) => watcher::Config::default().fields(&format!("metadata.name={name}")),
        None => watcher::Config::default(),
    };
    let stream = watcher(api(management, args.all_namespaces), config)
        .default_backoff()
        .touched_objects();
    let mut stream = std::pin::pin!(stream);
    let mut shown: BTreeMap<_, Row> = first.iter().map(|row| (key(row), ageless(row))).collect();
    while let Some(event) = stream.next().await {
        let tenant = match event {
            Ok(tenant) => tenant,
            Err(error) => {
                anstream::eprintln!("the watch broke off and is tried again: {error}");
                continue;
            }
        };
        let mut row = Row::new(&tenant, Timestamp::now());
        if tenant.metadata.deletion_timestamp.is_some() {
            "Deleting".clone_into(&mut row.state);
        }
        row.workers = shown.get(&key(&row)).and_then(|r| r.workers);
        let seen = ageless(&row);
        if shown.insert(key(&row), seen.clone()) != Some(seen) {
            print(std::slice::from_ref(&row), args, false)?;
        }
    }
    Ok(())
}

fn key(row: &Row) -> (String, String) {
    (row.namespace.clone(), row.name.clone())
}

/// What is compared: time passing is no change.
fn ageless(row: &Row) -> Row {
    Row {
        age_seconds: 0,
        ..row.clone()
    }
}
