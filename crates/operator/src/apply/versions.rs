//! How fresh a list has to be: not older than what we know already.
//!
//! Owns: per kind, the newest resource version that we wrote, were told of by a watch, or read. A list that
//! is allowed to be as old as that comes from the API server's memory at once; one that has to be the very
//! newest waits until the API server has asked its datastore how far that is, up to a tenth of a second.
//! Nothing is missed: what changed later wakes us later. And it knows our own writes when a watch tells of
//! them: whoever wrote has the answer already.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::api::{ListParams, VersionMatch};

/// Objects per page of a list.
const PAGE: u32 = 500;

/// Own writes that are remembered: a watch tells of them within moments.
const WRITES: usize = 1024;

/// What is known. By default nothing is remembered, and every list is the newest there is.
#[derive(Clone, Default)]
pub struct Versions(Option<Arc<Mutex<Known>>>);

#[derive(Default)]
struct Known {
    /// By plural name of the kind.
    newest: HashMap<String, u64>,
    /// Our own, the oldest first.
    written: VecDeque<u64>,
}

impl Versions {
    /// Remembers. Only for whoever watches all that it lists, and notes what the watches tell.
    pub fn remembered() -> Self {
        Self(Some(Arc::default()))
    }

    /// We read this version, so everything that anybody wrote before is older.
    pub fn reached(&self, plural: &str, version: Option<&str>) {
        let (Some(mut known), Some(version)) = (self.lock(), number(version)) else {
            return;
        };
        known.reached(plural, version);
    }

    /// We wrote this version.
    pub fn wrote(&self, plural: &str, version: Option<&str>) {
        let (Some(mut known), Some(version)) = (self.lock(), number(version)) else {
            return;
        };
        known.reached(plural, version);
        if known.written.len() == WRITES {
            known.written.pop_front();
        }
        known.written.push_back(version);
    }

    /// A watch told of this version. Says whether it is news, that is: not our own doing.
    pub fn heard(&self, plural: &str, version: Option<&str>) -> bool {
        let (Some(mut known), Some(version)) = (self.lock(), number(version)) else {
            return true;
        };
        // It says nothing of what the watch is yet to tell, so it counts only after a first look of our own:
        // whoever led before us may have written something newer.
        if known.newest.contains_key(plural) {
            known.reached(plural, version);
        }
        !known.written.contains(&version)
    }

    /// Whether a version that was told of is not our own doing, by what is known now.
    pub fn is_news(&self, version: Option<&str>) -> bool {
        let (Some(known), Some(version)) = (self.lock(), number(version)) else {
            return true;
        };
        !known.written.contains(&version)
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
        self.lock()?.newest.get(plural).copied()
    }

    /// Nothing is known any more of a kind: the API server does not know that version. Whatever it counts from now
    /// on, it may count anew.
    pub fn forget(&self, plural: &str) {
        if let Some(mut known) = self.lock() {
            known.newest.remove(plural);
            known.written.clear();
        }
    }

    fn lock(&self) -> Option<MutexGuard<'_, Known>> {
        let known = self.0.as_ref()?;
        Some(known.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Known {
    fn reached(&mut self, plural: &str, version: u64) {
        match self.newest.get_mut(plural) {
            Some(newest) => *newest = version.max(*newest),
            None => drop(self.newest.insert(plural.to_owned(), version)),
        }
    }
}

/// One that is no number is nobody's business but the API server's.
fn number(version: Option<&str>) -> Option<u64> {
    version?.parse().ok()
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
        assert!(versions.heard("secrets", Some("13")));
        assert_eq!(versions.known("secrets"), Some(13));
        versions.forget("secrets");
        assert_eq!(versions.known("secrets"), None);
    }

    #[test]
    fn hearsay_alone_makes_no_list_older() {
        let versions = Versions::remembered();
        assert!(versions.heard("secrets", Some("12")));
        assert_eq!(versions.known("secrets"), None);
    }

    #[test]
    fn our_own_writes_are_no_news_and_later_ones_of_others_are() {
        let versions = Versions::remembered();
        versions.wrote("secrets", Some("12"));
        assert!(!versions.heard("secrets", Some("12")));
        assert!(versions.heard("secrets", Some("13")));
        for later in 0..WRITES {
            versions.wrote("secrets", Some(&(100 + later).to_string()));
        }
        assert!(versions.heard("secrets", Some("12")), "forgotten by now");
    }
}
