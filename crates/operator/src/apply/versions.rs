//! How fresh a list has to be: not older than what we know already.
//!
//! Owns: per kind, the newest resource version that we wrote, were told of by a watch, or read. A list that
//! is allowed to be as old as that comes from the API server's memory at once; one that has to be the very
//! newest waits until the API server has asked its datastore how far that is, up to a tenth of a second.
//! Nothing is missed: what changed later wakes us later.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::api::{ListParams, VersionMatch};

/// Objects per page of a list.
const PAGE: u32 = 500;

/// Newest known versions, by plural name of the kind. By default nothing is remembered, and every list is
/// the newest there is.
#[derive(Clone, Default)]
pub struct Versions(Option<Arc<Mutex<HashMap<String, u64>>>>);

impl Versions {
    /// Remembers. Only for whoever watches all that it lists, and notes what the watches tell.
    pub fn remembered() -> Self {
        Self(Some(Arc::default()))
    }

    /// We read or wrote this version, so everything that anybody wrote before is older.
    pub fn reached(&self, plural: &str, version: Option<&str>) {
        // One that is no number is nobody's business but the API server's.
        let Some(version) = version.and_then(|text| text.parse::<u64>().ok()) else {
            return;
        };
        let Some(mut known) = self.lock() else {
            return;
        };
        match known.get_mut(plural) {
            Some(newest) => *newest = version.max(*newest),
            None => drop(known.insert(plural.to_owned(), version)),
        }
    }

    /// A watch told of this version. That says nothing of what its sender is yet to tell, so it counts only
    /// after a first look of our own: whoever led before us may have written something newer.
    pub fn heard(&self, plural: &str, version: Option<&str>) {
        if self.known(plural).is_some() {
            self.reached(plural, version);
        }
    }

    /// How to ask for all of a kind with these labels, as new as it has to be. In pages, unless it comes from
    /// the API server's memory, which knows none.
    pub fn list(&self, plural: &str, labels: &str) -> ListParams {
        let all = ListParams::default().labels(labels);
        match self.known(plural) {
            Some(version) => all
                .at(&version.to_string())
                .matching(VersionMatch::NotOlderThan),
            None => all.limit(PAGE),
        }
    }

    fn known(&self, plural: &str) -> Option<u64> {
        self.lock()?.get(plural).copied()
    }

    /// Nothing is known any more of a kind: the API server does not know that version.
    pub fn forget(&self, plural: &str) {
        self.lock().and_then(|mut known| known.remove(plural));
    }

    fn lock(&self) -> Option<MutexGuard<'_, HashMap<String, u64>>> {
        let known = self.0.as_ref()?;
        Some(known.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_must_be_as_new_as_the_newest_that_is_known_of_its_kind() {
        let versions = Versions::remembered();
        versions.reached("secrets", Some("12"));
        versions.reached("secrets", Some("7"));
        versions.reached("configmaps", Some("900"));
        versions.reached("secrets", Some("opaque"));
        versions.reached("secrets", None);
        assert_eq!(versions.known("secrets"), Some(12));
        versions.heard("secrets", Some("13"));
        assert_eq!(versions.known("secrets"), Some(13));
        versions.forget("secrets");
        assert_eq!(versions.known("secrets"), None);
    }

    #[test]
    fn hearsay_alone_makes_no_list_older() {
        let versions = Versions::remembered();
        versions.heard("secrets", Some("12"));
        assert_eq!(versions.known("secrets"), None);
    }
}
