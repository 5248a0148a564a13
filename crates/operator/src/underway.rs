//! Reconciles that are under way, and what watches tell of their tenants meanwhile.
//!
//! A watch may tell of a write of ours before the write's own answer is here, and then looks like news. So
//! what is told of a tenant that is being looked at is kept until that is over: by then every write has its
//! answer. Nothing is delayed by it, since a tenant is looked at once at a time anyway.
//!
//! Owns: who is being looked at, and what was told. Refuses: knowing whose write it was (`Versions`).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::tenant::Key;

/// What was told of each tenant that is being looked at: resource versions.
#[derive(Clone, Default)]
pub struct Underway(Arc<Mutex<HashMap<Key, Vec<Option<String>>>>>);

impl Underway {
    /// A look begins.
    pub fn begin(&self, key: Key) {
        self.lock().insert(key, Vec::new());
    }

    /// Keeps what was told until the look is over. False when there is none.
    pub fn keep(&self, key: &Key, version: Option<&str>) -> bool {
        let mut all = self.lock();
        let Some(told) = all.get_mut(key) else {
            return false;
        };
        told.push(version.map(str::to_owned));
        true
    }

    /// The look is over. Returns what was told.
    pub fn end(&self, key: &Key) -> Vec<Option<String>> {
        self.lock().remove(key).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Vec<Option<String>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_during_a_look_is_kept_until_it_is_over() {
        let underway = Underway::default();
        let key: Key = ("tenants".into(), "t1".into());
        assert!(!underway.keep(&key, Some("1")), "nobody looks");
        underway.begin(key.clone());
        assert!(underway.keep(&key, Some("2")));
        assert!(underway.keep(&key, None));
        assert_eq!(underway.end(&key), [Some("2".to_owned()), None]);
        assert!(!underway.keep(&key, Some("3")), "it is over");
    }

    #[test]
    fn each_tenant_has_its_own() {
        let underway = Underway::default();
        let (one, other): (Key, Key) = (("a".into(), "t".into()), ("b".into(), "t".into()));
        underway.begin(one.clone());
        assert!(!underway.keep(&other, Some("1")));
        assert!(underway.end(&one).is_empty());
    }
}
