//! Who owns a user and a schema of a shared datastore.
//!
//! Owns: the record of it, and the comparison of owners. A record lies in the datastore itself, under keys that
//! no tenant's role reaches: a tenant's keys begin with `/`, these do not. Refuses: deciding by what a tenant's
//! spec or status says. Users of a namespace can write both.

use serde::{Deserialize, Serialize};

/// Under this prefix are the records of users.
const USERS: &str = "steward.butlerlabs.dev/claims/users/";
/// Under this prefix are the records of schemas.
const SCHEMAS: &str = "steward.butlerlabs.dev/claims/schemas/";

/// A tenant, as a datastore that several management clusters may share has to know it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Owner {
    /// Uid of the management cluster's `kube-system` namespace.
    pub cluster: String,
    /// Namespace of the tenant.
    pub namespace: String,
    /// Name of the tenant.
    pub name: String,
    /// Uid of the tenant when it made the claim. A tenant that was restored has another one and is the same owner.
    pub uid: String,
}

/// A user and a schema, and the tenant that asks for them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Account {
    /// The user.
    pub user: String,
    /// The schema.
    pub schema: String,
    /// The tenant.
    pub owner: Owner,
    /// Another tenant that names the same user or schema and has the better right to it, as far as nothing is
    /// recorded: from before there were records.
    pub rival: Option<String>,
}

impl Owner {
    /// Whether both are the same tenant. Names are unique in a namespace, so the tenant before this one is gone.
    pub fn is(&self, other: &Self) -> bool {
        (&self.cluster, &self.namespace, &self.name)
            == (&other.cluster, &other.namespace, &other.name)
    }

    /// What the datastore keeps.
    pub(super) fn record(&self) -> Vec<u8> {
        // Four strings always serialise.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Key of a user's record.
pub(super) fn user_key(user: &str) -> String {
    format!("{USERS}{user}")
}

/// Key of a schema's record.
pub(super) fn schema_key(schema: &str) -> String {
    format!("{SCHEMAS}{schema}")
}

/// What a record says of a name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Claim {
    /// Nobody has it.
    Free,
    /// This tenant has it.
    Ours,
    /// Another tenant has it.
    Theirs(String),
}

/// Reads a record. One that can't be read belongs to somebody else: nothing is given away by mistake.
pub(super) fn read(record: Option<&[u8]>, owner: &Owner) -> Claim {
    let Some(record) = record else {
        return Claim::Free;
    };
    match serde_json::from_slice::<Owner>(record) {
        Ok(found) if found.is(owner) => Claim::Ours,
        Ok(found) if found.cluster != owner.cluster => Claim::Theirs(format!(
            "the tenant {found} of the management cluster {}",
            found.cluster
        )),
        Ok(found) => Claim::Theirs(format!("the tenant {found}")),
        Err(_) => Claim::Theirs("a record that can't be read".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(cluster: &str, namespace: &str, name: &str, uid: &str) -> Owner {
        Owner {
            cluster: cluster.into(),
            namespace: namespace.into(),
            name: name.into(),
            uid: uid.into(),
        }
    }

    #[test]
    fn a_name_belongs_to_the_tenant_of_the_record_and_to_nobody_else() {
        let victim = owner("c", "blue", "t1", "1");
        let record = victim.record();
        assert_eq!(read(None, &victim), Claim::Free);
        assert_eq!(read(Some(&record), &victim), Claim::Ours);
        let restored = owner("c", "blue", "t1", "2");
        assert_eq!(read(Some(&record), &restored), Claim::Ours);
        for thief in [
            owner("c", "red", "t1", "1"),
            owner("c", "blue", "t2", "1"),
            owner("d", "blue", "t1", "1"),
        ] {
            let Claim::Theirs(said) = read(Some(&record), &thief) else {
                panic!("{thief:?} has it");
            };
            assert!(said.contains("blue/t1"), "{said}");
        }
    }

    #[test]
    fn a_record_that_can_not_be_read_gives_nothing_away() {
        let someone = owner("c", "blue", "t1", "1");
        for record in [&b"{}"[..], b"", b"\xff", b"[]"] {
            assert!(matches!(read(Some(record), &someone), Claim::Theirs(_)));
        }
    }

    #[test]
    fn no_tenant_s_prefix_reaches_the_records() {
        for key in [user_key("a"), schema_key("a")] {
            assert!(!key.starts_with('/'), "{key}");
        }
        assert_ne!(user_key("a"), schema_key("a"));
    }
}
