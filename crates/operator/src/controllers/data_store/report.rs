//! What a datastore's status says.

use jiff::Timestamp;
use kube::ResourceExt;
use steward_api::{
    DataStore, DataStoreStatus,
    conditions::{self, ConditionType, Finding, Reason},
    datastore::ManagedEtcdStatus,
    metadata::annotations,
};

use super::Found;
use crate::datastore::Health;

/// The status that tells what was found.
pub(super) fn describe(
    store: &DataStore,
    found: &Found,
    used_by: Vec<String>,
    now: Timestamp,
) -> DataStoreStatus {
    let before = store.status.clone().unwrap_or_default();
    let ready = match &found.trouble {
        None => Finding::yes(
            ConditionType::Ready,
            Reason::Ready,
            "it answers, and accepts our credentials",
        ),
        Some((reason, message)) => Finding::no(ConditionType::Ready, *reason, message.clone()),
    };
    let deletion = if used_by.is_empty() {
        Finding::yes(
            ConditionType::DeletionAllowed,
            Reason::Ready,
            "no tenant uses it",
        )
    } else {
        let message = format!(
            "{} tenants use it, among them {}",
            used_by.len(),
            used_by[0]
        );
        Finding::no(
            ConditionType::DeletionAllowed,
            Reason::DatastoreInUse,
            message,
        )
    };
    DataStoreStatus {
        observed_generation: store.metadata.generation,
        ready: found.trouble.is_none(),
        conditions: conditions::merge(
            &before.conditions,
            &[ready, deletion, isolation(store, found)],
            store.metadata.generation,
            now,
        ),
        used_by,
        version: found
            .health
            .as_ref()
            .map(|health| health.version.clone())
            .or(before.version),
        endpoints: found
            .access
            .as_ref()
            .map(|access| access.endpoints.clone())
            .unwrap_or_default(),
        managed: found
            .managed
            .clone()
            .map(|status| measured(status, before.managed.as_ref(), found.health.as_ref())),
    }
}

/// Whether its version keeps tenants apart.
fn isolation(store: &DataStore, found: &Found) -> Finding {
    const TYPE: ConditionType = ConditionType::TenantsIsolated;
    let Some(health) = &found.health else {
        return Finding::unknown(TYPE, Reason::DatastoreNotReady, "its version is not known");
    };
    let Some(version) = found.vulnerable_version() else {
        let message = format!("etcd {} keeps tenants to their own prefix", health.version);
        return Finding::yes(TYPE, Reason::Ready, message);
    };
    let consequence = if accepted(store, version) {
        "Its annotation lets several tenants use it all the same".to_owned()
    } else {
        format!(
            "Only one tenant may use it, until it is annotated with {}={version}",
            annotations::ACCEPT_VULNERABLE
        )
    };
    let message = format!(
        "etcd {version} has published holes through which a tenant gets around its permissions: upgrade \
         it to 3.6.14, 3.7.1 or newer. {consequence}"
    );
    Finding::no(TYPE, Reason::DatastoreVulnerable, message)
}

/// Whether who runs the datastore has accepted this version by annotation.
pub(super) fn accepted(store: &DataStore, version: &str) -> bool {
    store
        .annotations()
        .get(annotations::ACCEPT_VULNERABLE)
        .is_some_and(|accepted| accepted == version)
}

/// Adds what the etcd says of itself. Sizes change all the time: only a change worth knowing is told, so that a
/// datastore at rest is not written to.
fn measured(
    status: ManagedEtcdStatus,
    before: Option<&ManagedEtcdStatus>,
    health: Option<&Health>,
) -> ManagedEtcdStatus {
    const WORTH_TELLING: i64 = 64 << 20;
    let version = health
        .map(|health| health.version.clone())
        .or_else(|| before?.version.clone());
    let known = before.and_then(|before| before.database_bytes);
    let now = health.and_then(|health| i64::try_from(health.bytes).ok());
    let database_bytes = match (known, now) {
        (Some(known), Some(now)) if (known - now).abs() < WORTH_TELLING => Some(known),
        (known, now) => now.or(known),
    };
    ManagedEtcdStatus {
        version,
        database_bytes,
        ..status
    }
}
