//! A tenant's account in a datastore: its user and schema, and who else names them.
//!
//! Owns: the right to a name of which the datastore has no record yet. Such names are from before there were
//! records. Refuses: reading statuses of tenants for it, which their users can write.

use jiff::Timestamp;
use kube::ResourceExt;
use steward_api::TenantControlPlane;

use crate::{
    context::Context,
    datastore::claims::{Account, Owner},
    observe::key_of,
};

/// The account of a tenant under these names in a datastore.
pub fn account(
    context: &Context,
    tenant: &TenantControlPlane,
    store: &str,
    user: &str,
    schema: &str,
) -> Account {
    let (namespace, name) = key_of(tenant);
    let others = context.tenant_cache.state();
    let others = others
        .iter()
        .filter_map(|guarded| guarded.0.as_ref().ok())
        .filter(|other| {
            steward_plan::datastore_names(&context.settings, other)
                .iter()
                .any(|used| used == store)
        });
    Account {
        user: user.to_owned(),
        schema: schema.to_owned(),
        rival: rival(tenant, user, schema, others),
        owner: Owner {
            cluster: context.cluster.clone(),
            namespace,
            name,
            uid: tenant.uid().unwrap_or_default(),
        },
    }
}

/// Another tenant of the same datastore that has the better right to one of the names: it is that tenant's uid,
/// or that tenant names it too and is older.
fn rival<'a>(
    tenant: &TenantControlPlane,
    user: &str,
    schema: &str,
    mut others: impl Iterator<Item = &'a TenantControlPlane>,
) -> Option<String> {
    let own = tenant.uid().unwrap_or_default();
    if user == own && schema == own {
        return None;
    }
    let age = |tenant: &TenantControlPlane| {
        let since = tenant.creation_timestamp().map(|time| time.0);
        (since.unwrap_or(Timestamp::MAX), tenant.uid())
    };
    let named = |name: Option<&String>, wanted: &str| {
        wanted != own && name.is_some_and(|name| name == wanted)
    };
    let better = |other: &&TenantControlPlane| {
        let uid = other.uid();
        if uid.as_ref() == Some(&own) {
            return false;
        }
        let theirs = named(uid.as_ref(), user) || named(uid.as_ref(), schema);
        let both = named(other.spec.data_store_username.as_ref(), user)
            || named(other.spec.data_store_schema.as_ref(), schema);
        theirs || (both && age(other) < age(tenant))
    };
    let found = others.find(better)?;
    let (namespace, name) = key_of(found);
    Some(format!("{namespace}/{name}"))
}

#[cfg(test)]
mod tests {
    use steward_api::TenantControlPlaneSpec;

    use super::*;

    fn tenant(name: &str, uid: &str, since: i64, names: Option<&str>) -> TenantControlPlane {
        let mut tenant = TenantControlPlane::new(name, TenantControlPlaneSpec::default());
        tenant.metadata.namespace = Some("tenants".into());
        tenant.metadata.uid = Some(uid.into());
        let time = Timestamp::from_second(since).unwrap();
        tenant.metadata.creation_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(time));
        tenant.spec.data_store_schema = names.map(str::to_owned);
        tenant.spec.data_store_username = names.map(str::to_owned);
        tenant
    }

    fn found(me: &TenantControlPlane, name: &str, others: &[TenantControlPlane]) -> Option<String> {
        rival(me, name, name, others.iter())
    }

    #[test]
    fn a_uid_is_its_tenant_s_however_old_the_other_is() {
        let victim = tenant("victim", "u1", 50, None);
        let thief = tenant("thief", "u2", 1, Some("u1"));
        let all = vec![victim.clone(), thief.clone()];
        assert_eq!(found(&thief, "u1", &all).as_deref(), Some("tenants/victim"));
        assert_eq!(found(&victim, "u1", &all), None);
    }

    #[test]
    fn of_two_that_name_the_same_the_older_has_it() {
        let older = tenant("older", "u1", 1, Some("shared"));
        let younger = tenant("younger", "u2", 2, Some("shared"));
        let all = vec![older.clone(), younger.clone()];
        assert_eq!(
            found(&younger, "shared", &all).as_deref(),
            Some("tenants/older")
        );
        assert_eq!(found(&older, "shared", &all), None);
    }

    #[test]
    fn a_name_that_nobody_else_uses_has_no_rival() {
        let me = tenant("me", "u1", 1, Some("mine"));
        let other = tenant("other", "u2", 0, Some("theirs"));
        let all = vec![me.clone(), other];
        assert_eq!(found(&me, "mine", &all), None);
    }
}
