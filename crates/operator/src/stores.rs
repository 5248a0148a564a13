//! What is known of each `DataStore`, for the tenants that use it.
//!
//! Owns: the latest finding of the datastore controller and its open connection. Written by that
//! controller only, read by every tenant's reconcile. Refuses: connecting; a tenant never waits for a
//! datastore that does not answer.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use steward_plan::DatastoreSeen;

use crate::datastore::Datastore;

/// One datastore as last seen.
#[derive(Clone)]
pub struct Entry {
    /// What a plan may know.
    pub seen: DatastoreSeen,
    /// The open connection, when it can be used.
    pub driver: Option<Arc<dyn Datastore>>,
}

/// All of them, by name.
#[derive(Default)]
pub struct Stores(Mutex<HashMap<String, Entry>>);

impl Stores {
    /// The last finding. A datastore that was never looked at is not there or not ready yet, which the
    /// caller knows better.
    pub fn get(&self, name: &str) -> Option<Entry> {
        self.lock().get(name).cloned()
    }

    /// Replaces the finding. Says whether tenants should hear of it.
    pub fn set(&self, name: &str, entry: Entry) -> bool {
        let mut stores = self.lock();
        let news = stores
            .get(name)
            .is_none_or(|before| differs(&before.seen, &entry.seen));
        stores.insert(name.to_owned(), entry);
        news
    }

    /// Forgets a datastore that is gone.
    pub fn remove(&self, name: &str) -> bool {
        self.lock().remove(name).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn differs(before: &DatastoreSeen, now: &DatastoreSeen) -> bool {
    match (before, now) {
        (DatastoreSeen::Missing, DatastoreSeen::Missing) => false,
        (DatastoreSeen::NotReady { reason: before }, DatastoreSeen::NotReady { reason: now }) => {
            before != now
        }
        (DatastoreSeen::Ready(before), DatastoreSeen::Ready(now)) => {
            before.driver != now.driver
                || before.endpoints != now.endpoints
                || before.ca_certificate != now.ca_certificate
                || before.ca_key != now.ca_key
                || before.vulnerable != now.vulnerable
        }
        _ => true,
    }
}
