//! What wakes reconciles: tenants, datastores, what they are made of, leadership, the cluster itself.
//!
//! Owns: every watch of the management cluster. Only tenants and datastores are cached, without their
//! bookkeeping; all else is metadata, filtered by label, and forgotten at once.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::ApiResource,
    runtime::{
        Predicate, PredicateConfig, WatchStreamExt, predicates, reflector,
        watcher::{self, Event, watcher},
    },
};
use steward_api::metadata::labels;
use steward_plan::Kind;
use tokio::task::JoinSet;

use crate::{
    context::{Context, GuardedDataStore, GuardedTenant},
    controllers::{control_plane, data_store},
    lease::Leadership,
    watches::{self, Change},
};

/// Keeps the cache of tenants and wakes those whose spec, annotations or deletion changed. Our own status
/// writes wake nobody.
pub(crate) async fn tenants(
    context: Arc<Context>,
    writer: reflector::store::Writer<GuardedTenant>,
) {
    let api: Api<GuardedTenant> = Api::all(context.client.clone());
    let gone = context.clone();
    let stream = watcher(api, watcher::Config::default())
        .default_backoff()
        .modify(|tenant| tenant.managed_fields_mut().clear())
        .reflect(writer)
        .inspect_ok(move |event| {
            if let Event::Delete(tenant) = event {
                let key = (tenant.namespace().unwrap_or_default(), tenant.name_any());
                control_plane::forget(&gone, &key, last_word(tenant).as_deref());
                if let Ok(tenant) = &tenant.0 {
                    for store in steward_plan::datastore_names(&gone.settings, tenant) {
                        gone.wake_store(&store);
                    }
                }
            }
        })
        .applied_objects();
    let changes = predicates::generation
        .combine(predicates::annotations)
        .combine(predicates::finalizers);
    let mut stream = stream
        .predicate_filter(changes, PredicateConfig::default())
        .boxed();
    loop {
        match stream.try_next().await {
            Ok(Some(tenant)) => {
                let key = (tenant.namespace().unwrap_or_default(), tenant.name_any());
                let version = tenant.resource_version();
                context.told(key, control_plane::PLURAL, version.as_deref());
            }
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, "watching TenantControlPlanes; are the CRDs installed?");
            }
        }
    }
}

fn last_word(tenant: &GuardedTenant) -> Option<String> {
    control_plane::word(tenant.0.as_ref().ok()?.status.as_ref()?)
}

pub(crate) async fn datastores(
    context: Arc<Context>,
    writer: reflector::store::Writer<GuardedDataStore>,
) {
    let api: Api<GuardedDataStore> = Api::all(context.client.clone());
    let gone = context.clone();
    let stream = watcher(api, watcher::Config::default())
        .default_backoff()
        .modify(|store| store.managed_fields_mut().clear())
        .reflect(writer)
        .inspect_ok(move |event| {
            if let Event::Delete(store) = event {
                data_store::forget(&gone, &store.name_any());
            }
        })
        .applied_objects();
    let changes = predicates::generation
        .combine(predicates::annotations)
        .combine(predicates::finalizers);
    let mut stream = stream
        .predicate_filter(changes, PredicateConfig::default())
        .boxed();
    loop {
        match stream.try_next().await {
            Ok(Some(store)) => context.wake_store(&store.name_any()),
            Ok(None) => return,
            Err(error) => tracing::warn!(%error, "watching DataStores; are the CRDs installed?"),
        }
    }
}

/// Looks at everything on becoming leader: standbys watch, but do nothing.
pub(crate) async fn leadership(context: Arc<Context>) {
    let mut leadership = context.leadership.clone();
    loop {
        let leads = *leadership.borrow_and_update() == Leadership::Leader;
        context.metrics.leader.set(i64::from(leads));
        if leads {
            wake_all(&context);
        }
        if leadership.changed().await.is_err() {
            return;
        }
    }
}

fn wake_all(context: &Context) {
    for store in context.datastore_cache.state() {
        context.wake_store(&store.name_any());
    }
    for tenant in context.tenant_cache.state() {
        context.wake((tenant.namespace().unwrap_or_default(), tenant.name_any()));
    }
}

/// Watches what tenants and datastores are made of, of every kind that is served, and looks at all tenants
/// when the cluster offers something else than before.
pub(crate) async fn platform(context: Arc<Context>) {
    let mut platform = context.platform.clone();
    let mut watched: Vec<Kind> = Vec::new();
    let mut tasks = JoinSet::new();
    loop {
        let now = platform.borrow_and_update().clone();
        let mut new = steward_plan::managed_kinds(&now);
        new.retain(|kind| !watched.contains(kind));
        // What changed between the first look at a tenant and the first list is in nobody's watch:
        // once all are listed, everything is looked at once more.
        let missing = Arc::new(AtomicUsize::new(new.len()));
        for kind in new {
            watched.push(kind);
            tasks.spawn(children(context.clone(), kind, Arc::clone(&missing)));
        }
        if platform.changed().await.is_err() {
            return;
        }
        wake_all(&context);
    }
}

async fn children(context: Arc<Context>, kind: Kind, missing: Arc<AtomicUsize>) {
    let owners = context.clone();
    let listed = move || {
        if missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            wake_all(&owners);
        }
    };
    labelled(context, kind.api_resource(), listed).await;
}

/// Pods are not ours to write, but they say why a control plane does not start.
pub(crate) async fn pods(context: Arc<Context>) {
    labelled(context, ApiResource::erase::<Pod>(&()), || {}).await;
}

async fn labelled(context: Arc<Context>, resource: ApiResource, listed: impl FnOnce() + Send) {
    let owners = context.clone();
    let plural = resource.plural.clone();
    let changed = move |change: Change| match change {
        Change::One(metadata) => {
            let version = metadata.resource_version.as_deref();
            let name = metadata
                .labels
                .as_ref()
                .and_then(|all| all.get(labels::NAME))
                .cloned();
            // A reconcile goes on with what it was answered until nothing changes any more.
            if let (Some(namespace), Some(name)) = (metadata.namespace, name) {
                owners.told((namespace, name), &plural, version);
            }
        }
        Change::Any => wake_all(&owners),
        Change::Lost => {}
    };
    watches::changes(
        context.client.clone(),
        resource,
        watcher::Config::default().labels(labels::NAME),
        listed,
        changed,
    )
    .await;
}

/// Watches what managed datastores are made of.
pub(crate) async fn members(context: Arc<Context>, kind: Kind) {
    let owners = context.clone();
    let changed = move |change: Change| match change {
        Change::One(metadata) => {
            let version = metadata.resource_version.as_deref();
            owners.versions.heard(kind.names().3, version);
            if let Some(name) = metadata
                .labels
                .as_ref()
                .and_then(|all| all.get(labels::DATASTORE))
            {
                owners.wake_store(name);
            }
        }
        Change::Any => wake_all(&owners),
        Change::Lost => {}
    };
    let selector = format!("{}=etcd,{}", labels::COMPONENT, labels::DATASTORE);
    watches::changes(
        context.client.clone(),
        kind.api_resource(),
        watcher::Config::default().labels(&selector),
        || {},
        changed,
    )
    .await;
}
