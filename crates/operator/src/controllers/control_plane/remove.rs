//! Deletion: what is outside of Kubernetes goes first, the rest follows its owner.

use std::time::Duration;

use kube::{Api, Resource, ResourceExt, runtime::controller::Action};
use steward_api::{TenantControlPlane, metadata::finalizers};
use steward_plan::{EventKind, Kind, ObjectKey, Owner, Standing};

use super::{forget, word};
use crate::{
    carry_out,
    context::Context,
    controllers::status,
    error::Error,
    observe::{self, Observation, key_of},
    tenant::Key,
};

/// A deletion that can't go on is looked at this often; a datastore that comes back says so at once.
const BLOCKED: Duration = Duration::from_secs(30);

/// Cleans up behind a tenant that is being deleted.
pub(super) async fn remove(
    context: &Context,
    api: &Api<TenantControlPlane>,
    tenant: TenantControlPlane,
) -> Result<Action, Error> {
    let key = key_of(&tenant);
    let last = tenant.status.as_ref().and_then(word);
    if !tenant
        .finalizers()
        .iter()
        .any(|name| name == finalizers::DATASTORE)
    {
        forget(context, &key, last.as_deref());
        return Ok(Action::await_change());
    }
    context.tenants.close(&key);
    let Observation { observed, .. } = Box::pin(observe::observe(context, tenant)).await?;
    let teardown = steward_plan::teardown(&context.settings, &observed);
    let news = status::write(
        api,
        &observed.tenant,
        observed.tenant.status.as_ref(),
        &teardown.status(&observed),
    )
    .await?;
    if let Some(event) = teardown.event.as_ref().filter(|_| news) {
        let warning = event.kind == EventKind::Warning;
        context
            .events
            .publish(
                &observed.tenant.object_ref(&()),
                warning,
                &event.reason,
                event.action,
                &event.note,
            )
            .await;
    }
    if let Some(reason) = &teardown.blocked {
        tracing::warn!(
            namespace = key.0,
            name = key.1,
            reason,
            "deletion is blocked"
        );
        return Ok(Action::requeue(crate::backoff::spread(&key, BLOCKED)));
    }
    // Pods that still run must find nothing to write to; the driver removes their user before their data.
    remove_pods(context, &observed.tenant, &key).await?;
    for wish in &teardown.datastore {
        if let Some(left) = carry_out::fulfil(context, &observed.tenant, wish).await? {
            tracing::warn!(
                namespace = key.0,
                name = key.1,
                left,
                "left in the datastore what belongs to somebody else"
            );
        }
    }
    // The status write has moved the object on.
    let fresh = api.get_opt(&key.1).await.map_err(|error| Error::Read {
        what: format!("TenantControlPlane {}/{}", key.0, key.1),
        error,
    })?;
    if let Some(fresh) = fresh {
        status::finalizer(api, &fresh, finalizers::DATASTORE, false).await?;
    }
    tracing::info!(
        namespace = key.0,
        name = key.1,
        abandoned = teardown.abandon,
        "cleaned up behind tenant"
    );
    let uid = observed.tenant.uid();
    context
        .claims
        .release_all(context, &key, uid.as_deref())
        .await;
    forget(context, &key, last.as_deref());
    for store in steward_plan::datastore_names(&context.settings, &observed.tenant) {
        context.wake_store(&store);
    }
    Ok(Action::await_change())
}

/// Removes the Deployment, if it is this tenant's: somebody else's may have its name.
async fn remove_pods(
    context: &Context,
    tenant: &TenantControlPlane,
    key: &Key,
) -> Result<(), Error> {
    let deployment = ObjectKey::new(Kind::Deployment, &key.0, &key.1);
    let Some(found) = context.engine.get(&deployment).await? else {
        return Ok(());
    };
    if Owner::tenant(tenant).standing(&found) != Standing::Ours {
        return Ok(());
    }
    let uid = found["metadata"]["uid"].as_str().map(str::to_owned);
    context.engine.delete(&deployment, uid).await
}
