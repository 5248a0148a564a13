//! The tenant controller: observe → validate → plan → apply → report.
//!
//! Owns: the order of the steps, finalizer and pause. Refuses: deciding what a tenant looks like
//! (`steward-plan`), reading (`observe`), writing objects (`carry_out`).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{
    FutureExt,
    future::{BoxFuture, join_all},
};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Api, Resource, ResourceExt,
    runtime::{controller::Action, reflector::ObjectRef},
};
use steward_api::{
    TenantControlPlane, TenantControlPlaneStatus,
    metadata::{annotations, finalizers},
};
use steward_pki::SystemKeys;
use steward_plan::{Event, EventKind, Inside, Plan, Report};

mod remove;

use super::{requeue, status};
use crate::{
    carry_out::{self, Done},
    claims::Settled,
    context::{Context, GuardedTenant},
    error::{Class, Error},
    metrics::TenantLabels,
    observe::{self, Observation, key_of},
    tenant::Key,
};

const NAME: &str = "tenantcontrolplane";

/// As in its URL.
pub const PLURAL: &str = "tenantcontrolplanes";

/// Plans made in one reconcile: an address that the API server gives at once, such as a `ClusterIP`, goes
/// into certificates without waiting for the next event.
const PASSES: usize = 4;

/// Should that not be enough, the next look comes soon: what we write ourselves wakes nobody.
const UNSETTLED: Duration = Duration::from_millis(500);

/// After a conflict the next look comes soon, however often it happens.
const CONFLICT: Duration = Duration::from_millis(500);

/// The datastore's first finding wakes its tenants; this is for the case that it never comes.
const TOO_EARLY: Duration = Duration::from_secs(5);

/// One reconcile, with its time limit and its metrics.
pub fn reconcile(
    guarded: Arc<GuardedTenant>,
    context: Arc<Context>,
) -> BoxFuture<'static, Result<Action, Error>> {
    async move {
        if !context.leads() {
            return Ok(Action::await_change());
        }
        let _look = context.look_at(guarded_key(&guarded));
        let started = Instant::now();
        let limit = context.timeout;
        let result = tokio::time::timeout(limit, Box::pin(guard(&guarded, &context)))
            .await
            .unwrap_or(Err(Error::Timeout { after: limit }));
        context.metrics.reconciled(
            NAME,
            started.elapsed(),
            result.as_ref().err().map(Error::class),
        );
        if result.is_ok() {
            context.tenant_backoff.succeeded(&guarded_key(&guarded));
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
pub fn retry(guarded: Arc<GuardedTenant>, error: &Error, context: Arc<Context>) -> Action {
    let key = guarded_key(&guarded);
    // What changed under us is read anew at once; it is no sign of trouble.
    let delay = if error.is_conflict() {
        CONFLICT
    } else {
        context.tenant_backoff.failed(&key)
    };
    let (namespace, name) = key;
    match error.class() {
        Class::Bug => tracing::error!(%error, namespace, name, ?delay, "reconcile failed"),
        Class::Transient | Class::Waiting | Class::Invalid => {
            tracing::warn!(%error, namespace, name, ?delay, "reconcile failed");
        }
    }
    Action::requeue(delay)
}

fn guarded_key(guarded: &GuardedTenant) -> Key {
    (guarded.namespace().unwrap_or_default(), guarded.name_any())
}

async fn guard(guarded: &GuardedTenant, context: &Context) -> Result<Action, Error> {
    if let Err(invalid) = &guarded.0 {
        let reference = ObjectReference {
            api_version: Some(TenantControlPlane::api_version(&()).into()),
            kind: Some(TenantControlPlane::kind(&()).into()),
            ..guarded.object_ref(&())
        };
        let note = format!(
            "this object can't be read: {}; correct it with kubectl edit, or recreate it",
            invalid.error
        );
        context
            .events
            .publish(&reference, true, "Unreadable", "Reconcile", &note)
            .await;
        return Ok(Action::await_change());
    }
    let (namespace, name) = guarded_key(guarded);
    let api: Api<TenantControlPlane> = Api::namespaced(context.client.clone(), &namespace);
    // The cache may not have our own last write yet; a decision on old data could undo it.
    let tenant = api.get_opt(&name).await.map_err(|error| Error::Read {
        what: format!("TenantControlPlane {namespace}/{name}"),
        error,
    })?;
    let Some(tenant) = tenant else {
        let key = (namespace, name);
        context.claims.release_all(context, &key, None).await;
        forget(context, &key, None);
        return Ok(Action::await_change());
    };
    if tenant.annotations().contains_key(annotations::PAUSED) {
        return Ok(Action::await_change());
    }
    if observe::too_early(context, &tenant) {
        return Ok(Action::requeue(TOO_EARLY));
    }
    if tenant.metadata.deletion_timestamp.is_some() {
        Box::pin(remove::remove(context, &api, tenant)).await
    } else {
        Box::pin(follow(context, &api, tenant)).await
    }
}

/// Makes the tenant what its spec says.
async fn follow(
    context: &Context,
    api: &Api<TenantControlPlane>,
    tenant: TenantControlPlane,
) -> Result<Action, Error> {
    let key = key_of(&tenant);
    // Reading needs no finalizer; whatever is written does.
    let (claimed, observation) = futures::join!(
        claim(context, api, &tenant),
        Box::pin(observe::observe(context, tenant.clone()))
    );
    claimed?;
    let Observation {
        mut observed,
        session,
    } = observation?;
    let Settled { held, taken } = context.claims.settle(context, &tenant).await?;
    observed.claims = taken;
    let mut pass = 0;
    let mut changes = Vec::new();
    let mut fulfilled = Vec::new();
    let mut settled = true;
    let written = observed.tenant.status.clone();
    if let Some(status) = observed.tenant.status.as_mut() {
        steward_plan::claims::disown(status, &held);
    }
    let (report, error) = loop {
        pass += 1;
        let validated = match steward_plan::validate(&context.settings, &observed) {
            Ok(validated) => validated,
            Err(problems) => {
                break (
                    steward_plan::report_problems(&context.settings, &observed, &problems),
                    None,
                );
            }
        };
        let plan = steward_plan::plan(&context.settings, &validated, &observed, &SystemKeys)?;
        let mut done = carry_out::outside(
            context,
            &tenant,
            &plan,
            observed.live.clone(),
            &mut fulfilled,
        )
        .await;
        settled = done.applied.changes.is_empty();
        let again = !settled && done.error.is_none() && pass < PASSES;
        changes.append(&mut done.applied.changes);
        if again {
            observed.live = done.applied.live;
            // What was decided stays decided, though what it was decided by has changed with it.
            if let Some(exposure) = plan.exposure {
                let status = observed.tenant.status.get_or_insert_default();
                status.exposure = Some(exposure);
            }
            continue;
        }
        carry_out::inside(&plan, session.as_deref(), &observed.inside, &mut done).await;
        done.applied.changes = std::mem::take(&mut changes);
        knock(context, &key, &plan);
        if let Some(answered) = plan.answered.filter(|_| settled && done.error.is_none()) {
            status::answer(api, &observed.tenant, answered).await?;
        }
        let Done { applied, error } = done;
        break (
            steward_plan::report(&context.settings, &validated, &observed, &plan, &applied),
            error,
        );
    };
    observed.tenant.status = written;
    tell(context, api, &observed.tenant, &report).await?;
    release(context, &observed.tenant, &report).await;
    claim_datastores(context, &observed.tenant);
    match error.or_else(|| unreached(&observed.inside)) {
        Some(error) => Err(error),
        None if !settled => Ok(Action::requeue(UNSETTLED)),
        None => Ok(requeue(
            &key,
            context.resync,
            report.next_check,
            observed.now,
        )),
    }
}

/// From now on the tenant goes only when its data is gone.
async fn claim(
    context: &Context,
    api: &Api<TenantControlPlane>,
    tenant: &TenantControlPlane,
) -> Result<(), Error> {
    if let Some(written) = status::finalizer(api, tenant, finalizers::DATASTORE, true).await? {
        context.metrics.wrote("management", NAME, "updated");
        let version = written.metadata.resource_version.as_deref();
        context.versions.wrote(PLURAL, version);
    }
    Ok(())
}

/// Names that the tenant neither wants nor uses any more are free for others.
async fn release(context: &Context, tenant: &TenantControlPlane, report: &Report) {
    let now = TenantControlPlane {
        status: Some(report.status.clone()),
        ..tenant.clone()
    };
    context.claims.release(context, &now).await;
}

/// A tenant that should answer and does not is tried again, however little there is to do inside.
fn unreached(inside: &Inside) -> Option<Error> {
    match inside {
        Inside::Unreachable { reason, .. } => Some(Error::TenantAccess {
            reason: reason.clone(),
        }),
        Inside::NotTried | Inside::Reachable { .. } => None,
    }
}

fn knock(context: &Context, key: &Key, plan: &Plan) {
    match &plan.knock {
        Some(knock) => context.reaches.knock(key, knock),
        None => context.reaches.forget(key),
    }
}

/// Writes status and events.
async fn tell(
    context: &Context,
    api: &Api<TenantControlPlane>,
    tenant: &TenantControlPlane,
    report: &Report,
) -> Result<(), Error> {
    if status::write(api, tenant, tenant.status.as_ref(), &report.status).await? {
        context.metrics.wrote("management", NAME, "status");
    }
    announce(context, tenant.object_ref(&()), report.events.clone());
    count(context, tenant, &report.status);
    Ok(())
}

/// Logs events, and publishes them while the next tenant is looked at: nothing depends on them.
fn announce(context: &Context, about: ObjectReference, events: Vec<Event>) {
    for Event { reason, note, .. } in &events {
        let (namespace, name) = (&about.namespace, &about.name);
        tracing::info!(namespace, name, reason, note, "state changed");
    }
    let recorder = context.events.clone();
    tokio::spawn(async move {
        join_all(events.iter().map(|event| {
            let warning = event.kind == EventKind::Warning;
            recorder.publish(&about, warning, &event.reason, event.action, &event.note)
        }))
        .await;
    });
}

fn count(context: &Context, tenant: &TenantControlPlane, status: &TenantControlPlaneStatus) {
    let labels = labels(&key_of(tenant));
    let before = tenant.status.as_ref().and_then(word);
    if let Some(now) = word(status) {
        context.metrics.tenant_is(&labels, before.as_deref(), &now);
    }
    if let Some(expiry) = first_expiry(status) {
        context
            .metrics
            .certificate_expiry
            .get_or_create(&labels)
            .set(expiry);
    }
}

/// The tenant's state in one word, as the original shows it.
pub fn word(status: &TenantControlPlaneStatus) -> Option<String> {
    let status = serde_json::to_value(status).ok()?;
    status
        .pointer("/kubernetesResources/version/status")?
        .as_str()
        .map(str::to_owned)
}

fn first_expiry(status: &TenantControlPlaneStatus) -> Option<i64> {
    fn walk(value: &serde_json::Value, first: &mut Option<jiff::Timestamp>) {
        let Some(map) = value.as_object() else { return };
        for (key, value) in map {
            match value
                .as_str()
                .filter(|_| key == "expires")
                .and_then(|text| text.parse().ok())
            {
                Some(found) => *first = Some(first.map_or(found, |first| first.min(found))),
                None => walk(value, first),
            }
        }
    }
    let mut first = None;
    walk(
        &serde_json::to_value(&status.certificates).ok()?,
        &mut first,
    );
    walk(&serde_json::to_value(&status.kubeconfig).ok()?, &mut first);
    first.map(jiff::Timestamp::as_second)
}

fn labels(key: &Key) -> TenantLabels {
    TenantLabels {
        tcp_namespace: key.0.clone(),
        tcp_name: key.1.clone(),
    }
}

/// Lets datastores know of a user they do not list yet.
fn claim_datastores(context: &Context, tenant: &TenantControlPlane) {
    let (namespace, name) = key_of(tenant);
    let user = format!("{namespace}/{name}");
    for store in steward_plan::datastore_names(&context.settings, tenant) {
        let known = context.datastore_cache.get(&ObjectRef::new(&store));
        let status = known
            .as_ref()
            .and_then(|guarded| guarded.0.as_ref().ok()?.status.as_ref());
        let listed = status.is_some_and(|status| status.used_by.contains(&user));
        if !listed {
            context.wake_store(&store);
        }
    }
}

/// Nothing of a tenant that is gone stays in memory.
pub fn forget(context: &Context, key: &Key, last: Option<&str>) {
    context.tenants.close(key);
    context.reaches.forget(key);
    context.tenant_backoff.succeeded(key);
    context.metrics.tenant_gone(&labels(key), last);
}
