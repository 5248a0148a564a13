//! Where the tenant's data is.

use steward_api::{
    TenantControlPlane,
    conditions::{ConditionType, Reason},
    metadata::annotations,
};

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
    /// The `DataStore`; its authority is empty while it isn't ready.
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
    let tenant = &observed.tenant;
    let spec = &tenant.spec;
    let uid = tenant.metadata.uid.clone().unwrap_or_default();
    let name = store_name(settings, tenant);
    let schema = spec
        .data_store_schema
        .clone()
        .unwrap_or_else(|| uid.clone());
    let user = spec.data_store_username.clone().unwrap_or(uid);
    problems.extend(moved(tenant, name, &schema, &user));
    problems.extend(reserved("spec.dataStoreSchema", &schema));
    problems.extend(reserved("spec.dataStoreUsername", &user));
    let store = find(observed, name, "spec.dataStore", waits, problems);
    let overrides: Vec<(String, Datastore)> = spec
        .data_store_overrides
        .iter()
        .filter_map(|other| {
            let field = "spec.dataStoreOverrides";
            let store = find(observed, &other.data_store, field, waits, problems)?;
            Some((other.resource.clone(), store))
        })
        .collect();
    let ready = store.is_some();
    problems.extend(
        store
            .as_ref()
            .and_then(|store| other_authority(store, &overrides)),
    );
    let store = store.or_else(|| remembered(observed, names, name))?;
    Some(Storage {
        store,
        ready,
        schema,
        user,
        overrides,
    })
}

/// Name of the tenant's `DataStore`: the one it names, the one it already uses, or the
/// default. A changed default is for new tenants only.
pub(super) fn store_name<'a>(settings: &'a Settings, tenant: &'a TenantControlPlane) -> &'a str {
    tenant
        .spec
        .data_store
        .as_deref()
        .or_else(|| used(tenant))
        .unwrap_or(&settings.default_datastore)
}

/// Name of the `DataStore` that the tenant's data is in, once there is any.
pub(super) fn used(tenant: &TenantControlPlane) -> Option<&str> {
    let storage = tenant.status.as_ref()?.storage.as_ref()?;
    storage.data_store_name.as_deref()
}

/// Data doesn't move by itself: a tenant that would start empty elsewhere is stopped.
fn moved(tenant: &TenantControlPlane, name: &str, schema: &str, login: &str) -> Option<Problem> {
    let storage = tenant.status.as_ref()?.storage.as_ref()?;
    let setup = storage.setup.as_ref();
    let used = [
        ("spec.dataStore", storage.data_store_name.as_deref(), name),
        (
            "spec.dataStoreSchema",
            setup.and_then(|setup| setup.schema.as_deref()),
            schema,
        ),
        (
            "spec.dataStoreUsername",
            setup.and_then(|setup| setup.user.as_deref()),
            login,
        ),
    ];
    let (field, before, now) = used
        .into_iter()
        .find(|(_, before, now)| before.is_some_and(|before| before != *now))?;
    let before = before.unwrap_or_default();
    Some(Problem::new(
        ConditionType::Accepted,
        Reason::NotSupported,
        field,
        format!(
            "the tenant's data is in {before} and would be missing in {now}: this version doesn't \
             move data, so set the field back to {before}"
        ),
    ))
}

/// Names that the datastore has for itself: a certificate for etcd's `root` would open every tenant's data.
fn reserved(field: &str, name: &str) -> Option<Problem> {
    steward_api::reserved::is_datastore_name(name).then(|| {
        Problem::new(
            ConditionType::Accepted,
            Reason::DatastoreNameTaken,
            field,
            format!(
                "{name} is the datastore's own: make the tenant again without the field, or with a \
                 name that only this tenant uses"
            ),
        )
    })
}

/// An API server shows one certificate to all its etcds, so one authority must have
/// signed for all.
fn other_authority(main: &Datastore, overrides: &[(String, Datastore)]) -> Option<Problem> {
    let (_, other) = overrides
        .iter()
        .find(|(_, other)| other.ca_certificate != main.ca_certificate)?;
    Some(Problem::new(
        ConditionType::Accepted,
        Reason::NotSupported,
        "spec.dataStoreOverrides",
        format!(
            "the DataStore {} has another authority than {}, and an API server shows the same \
             certificate to both: use stores with one authority",
            other.name, main.name
        ),
    ))
}

fn find(
    observed: &Observed,
    name: &str,
    field: &str,
    waits: &mut Vec<Wait>,
    problems: &mut Vec<Problem>,
) -> Option<Datastore> {
    let (reason, message) = match observed.datastores.get(name) {
        Some(DatastoreSeen::Ready(store)) if store.driver == "etcd" => {
            problems.extend(crowded(&observed.tenant, store, field));
            return Some(store.clone());
        }
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

/// A second tenant on an etcd that doesn't keep tenants apart. One that has its data there goes on.
fn crowded(tenant: &TenantControlPlane, store: &Datastore, field: &str) -> Option<Problem> {
    let version = store.vulnerable.as_ref()?;
    let other = store.other_tenant.as_ref()?;
    if used(tenant).is_some() {
        return None;
    }
    Some(Problem::new(
        ConditionType::Accepted,
        Reason::DatastoreVulnerable,
        field,
        format!(
            "the DataStore {} runs etcd {version}, in which tenants can get around each other's \
             permissions, and the tenant {other} uses it: upgrade that etcd to 3.6.14, 3.7.1 or newer, \
             use another DataStore, or let who runs it annotate the DataStore with {}={version}",
            store.name,
            annotations::ACCEPT_VULNERABLE,
        ),
    ))
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
        vulnerable: None,
        other_tenant: None,
    })
}
