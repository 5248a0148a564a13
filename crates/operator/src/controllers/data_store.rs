//! The datastore controller: connects to each `DataStore`, runs the managed ones, says how they are.
//!
//! Owns: connections, health, `usedBy`, the finalizer that keeps a used datastore. Refuses: touching
//! tenants' users and data; tenants' own reconciles do that through the driver kept here.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{FutureExt, future::BoxFuture};
use jiff::Timestamp;
use kube::{Api, Resource, ResourceExt, runtime::controller::Action};
use steward_api::{
    DataStore, DataStoreStatus,
    conditions::{self, ConditionType, Reason},
    datastore::{Driver, ManagedEtcdStatus},
    metadata::{annotations, finalizers},
};
use steward_plan::{Datastore as Known, DatastoreSeen};

mod access;
mod managed;
mod report;
mod upkeep;

use super::status;
use crate::{
    context::{Context, GuardedDataStore},
    datastore::{
        self, Datastore as _, Health,
        etcd::{Access, Etcd},
    },
    error::Error,
    metrics::DatastoreLabels,
    observe::key_of,
    stores::Entry,
};

const NAME: &str = "datastore";

/// How often a healthy datastore is asked.
const HEALTHY: Duration = Duration::from_secs(30);
/// How often one that is not.
const UNHEALTHY: Duration = Duration::from_secs(5);

/// One reconcile, with its time limit and its metrics.
pub fn reconcile(
    guarded: Arc<GuardedDataStore>,
    context: Arc<Context>,
) -> BoxFuture<'static, Result<Action, Error>> {
    async move {
        let started = Instant::now();
        let limit = context.timeout;
        let result = tokio::time::timeout(limit, guard(&guarded, &context))
            .await
            .unwrap_or(Err(Error::Timeout { after: limit }));
        context.metrics.reconciled(
            NAME,
            started.elapsed(),
            result.as_ref().err().map(Error::class),
        );
        if result.is_ok() {
            context.datastore_backoff.succeeded(&guarded.name_any());
        }
        result
    }
    .boxed()
}

/// When to try again after a failure.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature is that of kube's error policy"
)]
pub fn retry(guarded: Arc<GuardedDataStore>, error: &Error, context: Arc<Context>) -> Action {
    let name = guarded.name_any();
    let delay = context.datastore_backoff.failed(&name);
    tracing::warn!(%error, name, ?delay, class = error.class().as_str(), "datastore reconcile failed");
    Action::requeue(delay)
}

async fn guard(guarded: &GuardedDataStore, context: &Context) -> Result<Action, Error> {
    let name = guarded.name_any();
    if let Err(invalid) = &guarded.0 {
        let reason = format!(
            "DataStore {name} can't be read: {}; correct it with kubectl edit",
            invalid.error
        );
        publish(
            context,
            &name,
            Entry {
                seen: DatastoreSeen::NotReady { reason },
                driver: None,
            },
        );
        return Ok(Action::await_change());
    }
    let api: Api<DataStore> = Api::all(context.client.clone());
    let store = api.get_opt(&name).await.map_err(|error| Error::Read {
        what: format!("DataStore {name}"),
        error,
    })?;
    let Some(store) = store else {
        forget(context, &name);
        return Ok(Action::await_change());
    };
    if store.annotations().contains_key(annotations::PAUSED) {
        return Ok(Action::await_change());
    }
    // A member that defragments does not answer: that is no news about the datastore.
    if context.upkeep.runs(&name) {
        return Ok(Action::requeue(UNHEALTHY));
    }
    let used_by = users(context, &name);
    if context.leads() {
        let keep = store.metadata.deletion_timestamp.is_none() || !used_by.is_empty();
        status::finalizer(&api, &store, finalizers::IN_USE, keep).await?;
        if !keep {
            forget(context, &name);
            return Ok(Action::await_change());
        }
    }
    let found = look(context, &store).await?;
    let delay = if found.trouble.is_none() {
        HEALTHY
    } else {
        UNHEALTHY
    };
    let next_check = found.next_check;
    let status = report::describe(&store, &found, used_by, Timestamp::now());
    count(context, &name, &found);
    publish(context, &name, entry(&store, &found));
    if context.leads() {
        tell(context, &api, &store, &status).await?;
        upkeep::consider(context, &store, &found);
    }
    Ok(super::requeue(&name, delay, next_check, Timestamp::now()))
}

/// What was found out about a datastore.
#[derive(Default)]
struct Found {
    access: Option<Access>,
    ca_key: String,
    driver: Option<Arc<Etcd>>,
    health: Option<Health>,
    trouble: Option<Complaint>,
    managed: Option<ManagedEtcdStatus>,
    next_check: Option<Timestamp>,
}

impl Found {
    /// The version, when it doesn't keep tenants apart.
    fn vulnerable_version(&self) -> Option<&str> {
        let version = self.health.as_ref()?.version.as_str();
        (!steward_plan::datastore::keeps_tenants_apart(version)).then_some(version)
    }

    fn trouble(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            trouble: Some((reason, message.into())),
            ..Self::default()
        }
    }
}

/// Why a datastore can't be used.
type Complaint = (Reason, String);

async fn look(context: &Context, store: &DataStore) -> Result<Found, Error> {
    if store.spec.driver != Driver::Etcd {
        let message = format!(
            "driver {} is not supported by this version: use etcd",
            store.spec.driver.as_str()
        );
        return Ok(Found::trouble(Reason::NotSupported, message));
    }
    let name = store.name_any();
    let (way, managed) = if store.spec.managed.is_some() {
        let managed = managed::run(context, store, &name).await?;
        (managed.way, Some((managed.status, managed.next_check)))
    } else {
        (access::access(context, store).await?, None)
    };
    let mut found = match way {
        Ok((access, ca_key)) => connect(context, &name, access, ca_key, managed.is_some()).await,
        Err((reason, message)) => Found::trouble(reason, message),
    };
    if let Some((status, next_check)) = managed {
        found.managed = Some(status);
        found.next_check = next_check;
    }
    Ok(found)
}

async fn connect(
    context: &Context,
    name: &str,
    access: Access,
    ca_key: String,
    managed: bool,
) -> Found {
    let mut found = Found {
        access: Some(access.clone()),
        ca_key,
        ..Found::default()
    };
    // Only a leader turns authentication on.
    let ours = managed && context.leads();
    match context.connections.get(name, &access, ours).await {
        Ok(driver) => {
            match driver.health().await {
                Ok(health) => {
                    found.trouble = complaint(&health);
                    found.health = Some(health);
                }
                Err(error) => {
                    context.connections.forget(name);
                    found.trouble = Some((error.reason(), error.to_string()));
                }
            }
            found.driver = Some(driver);
        }
        Err(error) => found.trouble = Some((error.reason(), error.to_string())),
    }
    found
}

/// What is wrong with a datastore that answers.
fn complaint(health: &Health) -> Option<(Reason, String)> {
    if health.full {
        let message = "etcd has raised its NOSPACE alarm and refuses writes: raise --quota-backend-bytes or compact and defragment it, then `etcdctl alarm disarm`";
        return Some((Reason::DatastoreFull, message.into()));
    }
    if !health.authenticated {
        let message = "authentication is off in this etcd, so tenants could read each other's data: make user and role root, then `etcdctl auth enable`";
        return Some((Reason::DatastoreDenied, message.into()));
    }
    None
}

/// Tenants that use a datastore, or did and are not cleaned up yet.
fn users(context: &Context, name: &str) -> Vec<String> {
    let tenants = context.tenant_cache.state();
    let mut users: Vec<String> = tenants
        .iter()
        .filter_map(|guarded| guarded.0.as_ref().ok())
        .filter(|tenant| {
            let actual = tenant
                .status
                .as_ref()
                .and_then(|status| status.storage.as_ref()?.data_store_name.as_deref());
            actual == Some(name)
                || steward_plan::datastore_names(&context.settings, tenant)
                    .iter()
                    .any(|used| used == name)
        })
        .map(|tenant| {
            let (namespace, name) = key_of(tenant);
            format!("{namespace}/{name}")
        })
        .collect();
    users.sort();
    users
}

fn entry(store: &DataStore, found: &Found) -> Entry {
    let seen = match (&found.trouble, &found.access) {
        (None, Some(access)) => DatastoreSeen::Ready(Known {
            name: store.name_any(),
            driver: Driver::Etcd.as_str().to_owned(),
            endpoints: access.endpoints.clone(),
            ca_certificate: access.ca.clone(),
            ca_key: found.ca_key.clone(),
            vulnerable: found
                .vulnerable_version()
                .filter(|version| !report::accepted(store, version))
                .map(str::to_owned),
            other_tenant: None,
        }),
        (Some((_, reason)), _) => DatastoreSeen::NotReady {
            reason: reason.clone(),
        },
        (None, None) => DatastoreSeen::NotReady {
            reason: "it has no address yet".into(),
        },
    };
    Entry {
        seen,
        driver: found
            .driver
            .clone()
            .map(|driver| driver as Arc<dyn datastore::Datastore>),
    }
}

/// Lets tenants know.
fn publish(context: &Context, name: &str, entry: Entry) {
    if context.stores.set(name, entry) {
        wake_users(context, name);
    }
}

fn wake_users(context: &Context, name: &str) {
    for tenant in context.tenant_cache.state() {
        if let Ok(tenant) = &tenant.0
            && steward_plan::datastore_names(&context.settings, tenant)
                .iter()
                .any(|used| used == name)
        {
            context.wake(key_of(tenant));
        }
    }
}

/// Nothing of a datastore that is gone stays in memory.
pub fn forget(context: &Context, name: &str) {
    context.connections.forget(name);
    context.datastore_backoff.succeeded(&name.to_owned());
    let labels = DatastoreLabels {
        datastore: name.to_owned(),
    };
    context.metrics.datastore_up.remove(&labels);
    context.metrics.datastore_bytes.remove(&labels);
    context.metrics.datastore_latency.remove(&labels);
    if context.stores.remove(name) {
        wake_users(context, name);
    }
}

fn count(context: &Context, name: &str, found: &Found) {
    let labels = DatastoreLabels {
        datastore: name.to_owned(),
    };
    context
        .metrics
        .datastore_up
        .get_or_create(&labels)
        .set(i64::from(found.trouble.is_none()));
    if let Some(health) = &found.health {
        context
            .metrics
            .datastore_bytes
            .get_or_create(&labels)
            .set(i64::try_from(health.bytes).unwrap_or(i64::MAX));
        context
            .metrics
            .datastore_latency
            .get_or_create(&labels)
            .set(health.latency.as_secs_f64());
    }
}

async fn tell(
    context: &Context,
    api: &Api<DataStore>,
    store: &DataStore,
    now: &DataStoreStatus,
) -> Result<(), Error> {
    if !status::write(api, store, store.status.as_ref(), now).await? {
        return Ok(());
    }
    context.metrics.wrote("management", NAME, "status");
    let old = store
        .status
        .as_ref()
        .and_then(|status| conditions::find(&status.conditions, ConditionType::Ready));
    let new = conditions::find(&now.conditions, ConditionType::Ready);
    if let Some(new) = new
        && old.is_none_or(|old| old.status != new.status || old.reason != new.reason)
    {
        context
            .events
            .publish(
                &store.object_ref(&()),
                !now.ready,
                &new.reason,
                "Check",
                &new.message,
            )
            .await;
        tracing::info!(
            datastore = store.name_any(),
            ready = now.ready,
            reason = new.reason,
            message = new.message,
            "datastore"
        );
    }
    Ok(())
}
