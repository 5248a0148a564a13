//! Where the tenant's data is.

use steward_api::conditions::{ConditionType, Reason};

use super::wait;
use crate::{
    names::Names,
    observed::{Datastore, DatastoreSeen, Observed},
    outcome::Wait,
    problem::Problem,
    secret,
    settings::Settings,
};

/// The tenant's place in a datastore.
#[derive(Debug, Clone)]
pub struct Storage {
    /// The DataStore; its authority is empty while it isn't ready.
    pub store: Datastore,
    /// Whether it can be used now.
    pub ready: bool,
    /// Prefix `/<schema>` of all keys.
    pub schema: String,
    /// Who the API server is to the datastore.
    pub user: String,
    /// Other stores for some resources: `resource`, store.
    pub overrides: Vec<(String, Datastore)>,
}

/// The storage, as far as it is known. A store that has gone away doesn't stop a tenant
/// that already uses it: its connection is in a Secret of ours.
pub(super) fn resolve(
    settings: &Settings,
    observed: &Observed,
    names: &Names,
    waits: &mut Vec<Wait>,
    problems: &mut Vec<Problem>,
) -> Option<Storage> {
    let spec = &observed.tenant.spec;
    let uid = observed.tenant.metadata.uid.clone().unwrap_or_default();
    let name = spec
        .data_store
        .as_ref()
        .unwrap_or(&settings.default_datastore);
    let schema = spec
        .data_store_schema
        .clone()
        .unwrap_or_else(|| uid.clone());
    let user = spec.data_store_username.clone().unwrap_or(uid);
    let store = find(observed, name, "spec.dataStore", waits, problems);
    let overrides = spec
        .data_store_overrides
        .iter()
        .filter_map(|other| {
            let field = "spec.dataStoreOverrides";
            let store = find(observed, &other.data_store, field, waits, problems)?;
            Some((other.resource.clone(), store))
        })
        .collect();
    let ready = store.is_some();
    let store = store.or_else(|| remembered(observed, names, name))?;
    Some(Storage {
        store,
        ready,
        schema,
        user,
        overrides,
    })
}

fn find(
    observed: &Observed,
    name: &str,
    field: &str,
    waits: &mut Vec<Wait>,
    problems: &mut Vec<Problem>,
) -> Option<Datastore> {
    let (reason, message) = match observed.datastores.get(name) {
        Some(DatastoreSeen::Ready(store)) if store.driver == "etcd" => return Some(store.clone()),
        Some(DatastoreSeen::Ready(store)) => {
            problems.push(Problem::new(
                ConditionType::Accepted,
                Reason::NotSupported,
                field,
                format!(
                    "the DataStore {name} has the driver {}, which this version doesn't run \
                     tenants on: use one with the driver etcd",
                    store.driver
                ),
            ));
            return None;
        }
        Some(DatastoreSeen::NotReady { reason }) => (
            Reason::DatastoreNotReady,
            format!("the DataStore {name} is not ready: {reason}"),
        ),
        Some(DatastoreSeen::Missing) | None => (
            Reason::DatastoreMissing,
            format!("there is no DataStore {name}: make it, or name one that exists in {field}"),
        ),
    };
    waits.push(wait(ConditionType::DatastoreReady, reason, message));
    None
}

/// The connection as it was when the store was last ready.
fn remembered(observed: &Observed, names: &Names, name: &str) -> Option<Datastore> {
    let config = secret::read(&observed.live, &names.namespace, &names.datastore_config())?;
    let certificate = secret::read(
        &observed.live,
        &names.namespace,
        &names.datastore_certificate(),
    )?;
    let endpoints = config
        .get("DB_CONNECTION_STRING")?
        .split(',')
        .map(str::to_owned)
        .collect();
    Some(Datastore {
        name: name.to_owned(),
        driver: "etcd".into(),
        endpoints,
        ca_certificate: certificate.get("ca.crt")?.clone(),
        ca_key: String::new(),
    })
}
