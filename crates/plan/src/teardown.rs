//! Deletion: what has to be undone outside of Kubernetes, and when to give up on it.
//!
//! Objects go by their owner; only the datastore has to be cleaned by hand.

use kube::ResourceExt as _;
use steward_api::{
    TenantControlPlane, TenantControlPlaneStatus,
    conditions::{ConditionType, Finding, Reason, merge},
    metadata::annotations,
};

use crate::{
    names::Names,
    observed::{DatastoreSeen, Observed},
    outcome::{DatastoreWish, Event, EventKind},
    secret,
    settings::Settings,
};

/// What deletion needs.
#[derive(Debug, Clone)]
pub struct Teardown {
    /// What must be gone from datastores before the finalizer is removed. First let the
    /// Deployment go (delete it and wait), so that nothing writes after the cleaning.
    pub datastore: Vec<DatastoreWish>,
    /// The datastore can't be cleaned and the user said to go on without: remove the
    /// finalizer now.
    pub abandon: bool,
    /// What can't be done now, as a sentence; retry, and tell it with [`Self::status`].
    pub blocked: Option<String>,
    /// Event to publish when `abandon` or `blocked`.
    pub event: Option<Event>,
}

/// What has to be undone.
pub fn teardown(settings: &Settings, observed: &Observed) -> Teardown {
    let tenant = &observed.tenant;
    let names = Names {
        tenant: tenant.name_any(),
        namespace: tenant.namespace().unwrap_or_default(),
    };
    let (user, schema) = account(tenant);
    let stores = crate::validate::stores_with_data(settings, tenant);
    let wish = |store: &String| DatastoreWish::Gone {
        store: store.clone(),
        user: user.clone(),
        schema: schema.clone(),
    };
    let missing: Vec<&String> = stores
        .iter()
        .filter(|name| {
            !matches!(
                observed.datastores.get(*name),
                Some(DatastoreSeen::Ready(_))
            )
        })
        .collect();
    let note = tenant.annotations().get(annotations::ABANDON_DATASTORE);
    let abandon = !missing.is_empty() && note.is_some_and(|value| *value == names.tenant);
    // A tenant that never got as far as a datastore has nothing there.
    let never = secret::read(&observed.live, &names.namespace, &names.datastore_config()).is_none()
        && tenant
            .status
            .as_ref()
            .is_none_or(|status| status.storage.is_none());
    let blocked = (!missing.is_empty() && !abandon && !never).then(|| {
        let list = missing
            .iter()
            .map(|name| name.as_str())
            .collect::<Vec<_>>()
            .join(", ");
        format!(
            "its data can't be removed because the DataStore {list} is not available. Bring it \
             back, or annotate the tenant with {}={} to leave the user {user} and the keys under \
             /{schema}/ behind",
            annotations::ABANDON_DATASTORE,
            names.tenant,
        )
    });
    let event = match (&blocked, abandon) {
        (Some(note), _) => Some(warning(Reason::Deleting, note.clone())),
        (None, true) => Some(warning(
            Reason::DatastoreAbandoned,
            format!(
                "removed without its datastore: the user {user} and the keys under /{schema}/ \
                     are left behind"
            ),
        )),
        (None, false) => None,
    };
    let reachable = stores.iter().filter(|name| !missing.contains(name));
    Teardown {
        datastore: reachable.map(wish).collect(),
        abandon,
        blocked,
        event,
    }
}

/// User and schema that were set up, or would have been. What the spec says now is not what counts: a change
/// of it has been refused.
fn account(tenant: &TenantControlPlane) -> (String, String) {
    let uid = tenant.uid().unwrap_or_default();
    let setup = tenant
        .status
        .as_ref()
        .and_then(|status| status.storage.as_ref()?.setup.clone())
        .unwrap_or_default();
    let spec = &tenant.spec;
    let user = setup.user.or_else(|| spec.data_store_username.clone());
    let schema = setup.schema.or_else(|| spec.data_store_schema.clone());
    (
        user.unwrap_or_else(|| uid.clone()),
        schema.unwrap_or_else(|| uid.clone()),
    )
}

impl Teardown {
    /// The status of a tenant on its way out.
    pub fn status(&self, observed: &Observed) -> TenantControlPlaneStatus {
        let mut status = observed.tenant.status.clone().unwrap_or_default();
        let message = self
            .blocked
            .clone()
            .unwrap_or_else(|| "its data is being removed".into());
        let findings = [
            Finding::no(ConditionType::Available, Reason::Deleting, message.clone()),
            Finding::yes(ConditionType::Progressing, Reason::Deleting, message),
        ];
        let generation = observed.tenant.metadata.generation;
        status.conditions = merge(&status.conditions, &findings, generation, observed.now);
        status.observed_generation = generation;
        status
    }
}

fn warning(reason: Reason, note: String) -> Event {
    Event {
        kind: EventKind::Warning,
        reason: reason.as_str().into(),
        action: "Delete",
        note,
    }
}
