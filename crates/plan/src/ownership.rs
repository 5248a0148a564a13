//! Whose an object is: the one question before every write and every removal in the management cluster.
//!
//! Owns: the answer, told from the controller reference alone. Refuses: believing names and labels, which
//! anybody can give to anything. An object changes hands only when somebody who may write it offers it, with
//! the annotation [`annotations::ADOPT`], and only when no living controller has it.

use kube::ResourceExt as _;
use serde_json::{Value, json};
use steward_api::{TenantControlPlane, metadata::annotations};

use crate::object::ObjectKey;

/// A `TenantControlPlane` or `DataStore` as the owner of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    group: String,
    kind: String,
    /// Its name.
    pub name: String,
    /// Its uid: another one of the same name is somebody else.
    pub uid: String,
}

/// Whose an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The owner's.
    Ours,
    /// Nobody's, and offered to the owner.
    Offered,
    /// Somebody else's.
    Foreign,
}

impl Owner {
    /// A tenant.
    pub fn tenant(tenant: &TenantControlPlane) -> Self {
        Self {
            group: steward_api::GROUP.into(),
            kind: "TenantControlPlane".into(),
            name: tenant.name_any(),
            uid: tenant.uid().unwrap_or_default(),
        }
    }

    /// The controller that a body names, if it names one.
    pub fn of(body: &Value) -> Option<Self> {
        let reference = controller(body)?;
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let (group, _) = text("apiVersion").split_once('/').unwrap_or_default();
        Some(Self {
            group: group.into(),
            kind: text("kind").into(),
            name: text("name").into(),
            uid: text("uid").into(),
        })
    }

    /// Whose an object in the owner's namespace is.
    pub fn standing(&self, found: &Value) -> Standing {
        let held = Self::of(found);
        if held.as_ref().is_some_and(|held| held.uid == self.uid) {
            return Standing::Ours;
        }
        let offer = &found["metadata"]["annotations"][annotations::ADOPT];
        let free = held.is_none_or(|held| held.is_earlier(self));
        if free && offer.as_str() == Some(&self.name) {
            Standing::Offered
        } else {
            Standing::Foreign
        }
    }

    /// Whether this was an object of the same name, which is gone: two can't be there at once.
    fn is_earlier(&self, now: &Self) -> bool {
        (&self.group, &self.kind, &self.name) == (&now.group, &now.kind, &now.name)
            && self.uid != now.uid
    }

    /// Why an object is left alone, and what to do, as a sentence without its name.
    pub fn refusal(&self, key: &ObjectKey, found: &Value) -> String {
        let name = &self.name;
        let held = Self::of(found);
        let (whose, free) = match &held {
            None => ("has no owner".to_owned(), true),
            Some(held) if held.is_earlier(self) => {
                let kind = &self.kind;
                (format!("was made for an earlier {kind} {name}"), true)
            }
            Some(held) => (format!("belongs to the {} {}", held.kind, held.name), false),
        };
        let advice = format!(
            "{whose}, so it is neither changed nor removed: remove or rename it, or give the {} \
             another name",
            self.kind
        );
        if !free {
            return advice;
        }
        let (_, _, kind, _) = key.kind.names();
        let kind = kind.to_ascii_lowercase();
        let place = key.namespace.as_deref().unwrap_or_default();
        let (object, adopt) = (&key.name, annotations::ADOPT);
        format!(
            "{advice}. To hand it over as it is: kubectl annotate {kind} -n {place} {object} \
             {adopt}={name}"
        )
    }

    /// What makes an offered object the owner's, as a merge patch. It must still be the one that was seen.
    pub fn adoption(body: &Value, found: &Value) -> Value {
        json!({"metadata": {
            "uid": found["metadata"]["uid"],
            "resourceVersion": found["metadata"]["resourceVersion"],
            "ownerReferences": body["metadata"]["ownerReferences"],
            "annotations": {annotations::ADOPT: null},
        }})
    }
}

fn controller(object: &Value) -> Option<&Value> {
    object["metadata"]["ownerReferences"]
        .as_array()?
        .iter()
        .find(|reference| reference["controller"] == true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Kind;

    fn reference(kind: &str, name: &str, uid: &str, controller: bool) -> Value {
        let group = if kind == "ReplicaSet" {
            "apps/v1"
        } else {
            "steward.butlerlabs.dev/v1alpha1"
        };
        json!({"apiVersion": group, "kind": kind, "name": name, "uid": uid, "controller": controller})
    }

    fn object(owners: &[Value], offered_to: Option<&str>) -> Value {
        let mut object = json!({"metadata": {"name": "web", "ownerReferences": owners,
            "labels": {"steward.butlerlabs.dev/name": "web", "steward.butlerlabs.dev/project": "steward"}}});
        if let Some(name) = offered_to {
            object["metadata"]["annotations"] = json!({annotations::ADOPT: name});
        }
        object
    }

    fn web() -> Owner {
        Owner::of(&object(
            &[reference("TenantControlPlane", "web", "new", true)],
            None,
        ))
        .unwrap()
    }

    #[test]
    fn only_the_controller_s_uid_makes_an_object_ours() {
        let mine = |controller| reference("TenantControlPlane", "web", "new", controller);
        let table = [
            (vec![mine(true)], None, Standing::Ours),
            (vec![mine(false)], None, Standing::Foreign),
            (vec![], None, Standing::Foreign),
            (vec![], Some("web"), Standing::Offered),
            (vec![], Some("other"), Standing::Foreign),
            (
                vec![reference("TenantControlPlane", "web", "old", true)],
                None,
                Standing::Foreign,
            ),
            (
                vec![reference("TenantControlPlane", "web", "old", true)],
                Some("web"),
                Standing::Offered,
            ),
            (
                vec![reference("TenantControlPlane", "other", "old", true)],
                Some("web"),
                Standing::Foreign,
            ),
            (
                vec![reference("ReplicaSet", "web", "old", true)],
                Some("web"),
                Standing::Foreign,
            ),
        ];
        for (owners, offered, standing) in table {
            let found = object(&owners, offered);
            assert_eq!(web().standing(&found), standing, "{found}");
        }
    }

    #[test]
    fn a_refusal_says_whose_it_is_and_offers_only_what_would_work() {
        let key = ObjectKey::new(Kind::Deployment, "ns", "web");
        let free = web().refusal(&key, &object(&[], None));
        assert!(free.contains("has no owner"), "{free}");
        assert!(
            free.ends_with(
                "kubectl annotate deployment -n ns web steward.butlerlabs.dev/adopt=web"
            ),
            "{free}"
        );
        let held = [reference("ReplicaSet", "r", "x", true)];
        let held = web().refusal(&key, &object(&held, None));
        assert!(held.contains("belongs to the ReplicaSet r"), "{held}");
        assert!(!held.contains("kubectl"), "{held}");
    }
}
