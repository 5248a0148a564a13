//! The first step: reading everything that bears on one tenant.
//!
//! Owns: every read of a reconcile. Refuses: writing, deciding, and failing because a tenant or a
//! datastore does not answer; not to answer is something to observe.

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use futures::future::try_join_all;
use jiff::Timestamp;
use kube::{ResourceExt, runtime::reflector::ObjectRef};
use serde_json::Value;
use steward_api::{TenantControlPlane, conditions::Reason, metadata::labels};
use steward_pki::Pair;
use steward_plan::{
    DatastoreSeen, Inside, Kind, Live, ObjectKey, Observed, Owner, Platform, Standing,
    names::{Names, PROJECT},
};

use crate::{
    config::TenantAccess,
    context::Context,
    error::Error,
    front_door,
    tenant::{Key, Place, Session, Target},
    trouble,
};

/// Everything that was read, and the session that was used for it.
pub struct Observation {
    /// For the plan.
    pub observed: Observed,
    /// Inside the tenant, when it can be reached.
    pub session: Option<Arc<Session>>,
}

/// Namespace and name of a tenant.
pub fn key_of(tenant: &TenantControlPlane) -> Key {
    (tenant.namespace().unwrap_or_default(), tenant.name_any())
}

/// Selector of everything that belongs to a tenant in the management cluster.
pub fn selector(name: &str) -> String {
    format!("{}={name}", labels::NAME)
}

/// Selector of everything of ours inside a tenant.
pub fn inside_selector() -> String {
    format!("{}={PROJECT}", labels::PROJECT)
}

/// Reads all that bears on a tenant.
///
/// # Errors
/// When the management cluster can't be read.
pub async fn observe(context: &Context, tenant: TenantControlPlane) -> Result<Observation, Error> {
    let key = key_of(&tenant);
    let mut platform: Platform = context.platform.borrow().clone();
    let selector = selector(&key.1);
    let mut live = context
        .engine
        .list(
            &steward_plan::managed_kinds(&platform),
            Some(&key.0),
            &selector,
        )
        .await?;
    // Whatever labels it has: what isn't this tenant's says nothing about it.
    let owner = Owner::tenant(&tenant);
    live.0
        .retain(|_, found| owner.standing(found) != Standing::Foreign);
    named_secrets(context, &tenant, &key.0, &mut live).await?;
    platform.front_door = front_door::addresses(&context.client, &tenant, &live).await?;
    let deployment = live.get(Kind::Deployment, &key.0, &key.1);
    let trouble = match deployment {
        Some(deployment) => {
            let (client, versions) = (&context.client, &context.versions);
            trouble::find(client, versions, &key.0, &selector, deployment).await?
        }
        None => None,
    };
    // What is inside a tenant that goes is of no interest any more.
    let (inside, session) = match tenant.metadata.deletion_timestamp {
        Some(_) => (Inside::NotTried, None),
        None => look_inside(context, &tenant, &key, &live).await,
    };
    let (reach, knocked) = context.reaches.get(&key);
    let observed = Observed {
        now: Timestamp::now(),
        datastores: datastores(context, &tenant),
        // Claiming is a write: who reconciles does it.
        claims: Vec::new(),
        reach,
        knocked,
        tenant,
        live,
        platform,
        inside,
        trouble,
    };
    Ok(Observation { observed, session })
}

/// Secrets that matter although they may not carry our label: authorities that the user brought.
async fn named_secrets(
    context: &Context,
    tenant: &TenantControlPlane,
    namespace: &str,
    live: &mut Live,
) -> Result<(), Error> {
    let names = steward_plan::named_secrets(tenant).into_iter();
    let keys = names.map(|name| ObjectKey::new(Kind::Secret, namespace, name));
    let unknown: Vec<ObjectKey> = keys.filter(|key| !live.0.contains_key(key)).collect();
    let found = try_join_all(unknown.iter().map(|key| context.engine.get(key))).await?;
    for (key, found) in unknown.into_iter().zip(found) {
        if let Some(found) = found {
            live.insert(key, found);
        }
    }
    Ok(())
}

fn datastores(context: &Context, tenant: &TenantControlPlane) -> BTreeMap<String, DatastoreSeen> {
    let names = steward_plan::datastore_names(&context.settings, tenant);
    names
        .into_iter()
        .map(|name| {
            let mut seen = datastore(context, &name);
            if let DatastoreSeen::Ready(store) = &mut seen
                && store.vulnerable.is_some()
            {
                store.other_tenant = elder(context, tenant, &name);
            }
            (name, seen)
        })
        .collect()
}

/// Another tenant that uses a datastore, and was there before this one.
fn elder(context: &Context, tenant: &TenantControlPlane, store: &str) -> Option<String> {
    let age = |tenant: &TenantControlPlane| {
        let since = tenant.creation_timestamp().map(|time| time.0);
        (since.unwrap_or(Timestamp::MAX), tenant.uid())
    };
    let others = context.tenant_cache.state();
    let found = others
        .iter()
        .filter_map(|guarded| guarded.0.as_ref().ok())
        .filter(|other| age(other) < age(tenant))
        .find(|other| {
            steward_plan::datastore_names(&context.settings, other)
                .iter()
                .any(|used| used == store)
        })?;
    let (namespace, name) = key_of(found);
    Some(format!("{namespace}/{name}"))
}

fn datastore(context: &Context, name: &str) -> DatastoreSeen {
    match context.stores.get(name) {
        Some(entry) => entry.seen,
        None if exists(context, name) => DatastoreSeen::NotReady {
            reason: format!("DataStore {name} has not been looked at yet"),
        },
        None => DatastoreSeen::Missing,
    }
}

fn exists(context: &Context, name: &str) -> bool {
    context.datastore_cache.get(&ObjectRef::new(name)).is_some()
}

/// Whether a datastore of the tenant is there and was not looked at since we started. Nothing should be said
/// about the tenant before that.
pub fn too_early(context: &Context, tenant: &TenantControlPlane) -> bool {
    let names = steward_plan::datastore_names(&context.settings, tenant);
    names
        .iter()
        .any(|name| context.stores.get(name).is_none() && exists(context, name))
}

async fn look_inside(
    context: &Context,
    tenant: &TenantControlPlane,
    key: &Key,
    live: &Live,
) -> (Inside, Option<Arc<Session>>) {
    let up = live
        .get(Kind::Deployment, &key.0, &key.1)
        .and_then(|deployment| deployment["status"]["readyReplicas"].as_i64())
        .is_some_and(|ready| ready > 0);
    let target = if up {
        target(context, tenant, key, live)
    } else {
        None
    };
    let Some(target) = target else {
        context.tenants.close(key);
        return (Inside::NotTried, None);
    };
    let exposure = tenant
        .status
        .as_ref()
        .and_then(|status| status.exposure.as_ref());
    let moving = exposure.is_some_and(|exposure| exposure.previous.is_some());
    match context.tenants.open(key, &target).await {
        Ok(session) => {
            let inside = session.look(moving).await;
            (inside, Some(session))
        }
        Err(error) => (
            Inside::Unreachable {
                reason: error.to_string(),
                cause: Reason::TenantUnreachable,
            },
            None,
        ),
    }
}

/// Where the tenant's API server is dialled, as soon as that can be said.
fn target(
    context: &Context,
    tenant: &TenantControlPlane,
    key: &Key,
    live: &Live,
) -> Option<Target> {
    let names = Names {
        tenant: key.1.clone(),
        namespace: key.0.clone(),
    };
    let secret = live.get(Kind::Secret, &key.0, &names.ca())?;
    let authority = Pair {
        certificate: secret_text(secret, "ca.crt")?,
        key: secret_text(secret, "ca.key")?,
    };
    let place = match &context.dial {
        Some(dial) => dial(tenant),
        None => place(context.access, tenant, &names, live),
    }?;
    Some(Target { place, authority })
}

fn place(
    access: TenantAccess,
    tenant: &TenantControlPlane,
    names: &Names,
    live: &Live,
) -> Option<Place> {
    let service = live.get(Kind::Service, &names.namespace, &names.tenant)?;
    let port = service["spec"]["ports"][0]["port"].as_i64()?;
    let host = names.service_host();
    let (address, server_name) = match access {
        TenantAccess::ClusterIp => (
            bracketed(service["spec"]["clusterIP"].as_str()?),
            Some(host),
        ),
        TenantAccess::Dns => (host, None),
        TenantAccess::Endpoint => {
            let endpoint = tenant.status.as_ref()?.control_plane_endpoint.clone()?;
            return Some(Place {
                url: format!("https://{endpoint}").parse().ok()?,
                server_name: None,
            });
        }
    };
    Some(Place {
        url: format!("https://{address}:{port}").parse().ok()?,
        server_name,
    })
}

fn bracketed(address: &str) -> String {
    if address.contains(':') {
        format!("[{address}]")
    } else {
        address.to_owned()
    }
}

/// One entry of a Secret as text.
pub fn secret_text(secret: &Value, entry: &str) -> Option<String> {
    let bytes = BASE64_STANDARD
        .decode(secret["data"][entry].as_str()?)
        .ok()?;
    String::from_utf8(bytes).ok()
}
