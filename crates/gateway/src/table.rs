//! The routing table: immutable, with structure shared between versions.
//!
//! Readers take whatever version is current and keep it as long as they like;
//! writers make the next one. One changed route costs the same with ten routes or
//! a hundred thousand.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use crate::{
    host::Host,
    route::{Route, RouteSpec},
    trie::Trie,
};

/// All routes at one moment.
#[derive(Debug, Clone, Default)]
pub struct Table {
    exact: Trie<Route>,
    below: Trie<Route>,
}

/// The current table, and the only way to change it.
#[derive(Debug, Default)]
pub struct Router {
    current: ArcSwap<Table>,
    /// Held while the next table is made, so that no change is lost.
    changing: Mutex<()>,
}

// === impl Table ===

impl Table {
    /// A table without routes.
    pub fn new() -> Self {
        Self::default()
    }

    /// This table with a route for `host`, in the place of the one it had. The
    /// state of that one (open connections, limits, health) is taken over.
    #[must_use]
    pub fn with_route(&self, host: Host, spec: &RouteSpec) -> Self {
        let old = self.get(&host).map(AsRef::as_ref);
        self.with(host, spec, old)
    }

    fn with(&self, host: Host, spec: &RouteSpec, old: Option<&Route>) -> Self {
        let route = Arc::new(Route::new(host, spec, old));
        match route.host() {
            Host::Exact(_) => Self {
                exact: self.exact.with(route),
                below: self.below.clone(),
            },
            Host::Below(_) => Self {
                exact: self.exact.clone(),
                below: self.below.with(route),
            },
        }
    }

    /// This table without the route for `host`.
    #[must_use]
    pub fn without(&self, host: &Host) -> Self {
        match host {
            Host::Exact(name) => Self {
                exact: self.exact.without(name),
                below: self.below.clone(),
            },
            Host::Below(name) => Self {
                exact: self.exact.clone(),
                below: self.below.without(name),
            },
        }
    }

    /// A table of exactly these routes, with the state of those that were here.
    #[must_use]
    pub fn replaced<'a>(&self, routes: impl IntoIterator<Item = (Host, &'a RouteSpec)>) -> Self {
        routes.into_iter().fold(Self::new(), |table, (host, spec)| {
            let old = self.get(&host).map(AsRef::as_ref);
            table.with(host, spec, old)
        })
    }

    /// The route of exactly this host.
    pub fn get(&self, host: &Host) -> Option<&Arc<Route>> {
        match host {
            Host::Exact(name) => self.exact.get(name),
            Host::Below(name) => self.below.get(name),
        }
    }

    /// The most specific route for a name in lower case.
    pub fn lookup(&self, name: &str) -> Option<&Arc<Route>> {
        if let Some(route) = self.exact.get(name) {
            return Some(route);
        }
        if self.below.is_empty() {
            return None;
        }
        let mut rest = name;
        let mut labels = 0;
        while let Some((_, parent)) = rest.split_once('.') {
            labels += 1;
            let found = self.below.get(parent);
            if let Some(route) = found.filter(|route| route.covers(labels)) {
                return Some(route);
            }
            rest = parent;
        }
        None
    }

    /// How many routes there are.
    pub fn len(&self) -> usize {
        self.exact.len() + self.below.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All routes, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Route>> {
        self.exact.iter().chain(self.below.iter())
    }
}

// === impl Router ===

impl Router {
    /// A router that starts with `table`.
    pub fn new(table: Table) -> Self {
        Self {
            current: ArcSwap::from_pointee(table),
            changing: Mutex::default(),
        }
    }

    /// The current table.
    pub fn table(&self) -> Arc<Table> {
        self.current.load_full()
    }

    /// The most specific route for a name in lower case.
    pub fn lookup(&self, name: &str) -> Option<Arc<Route>> {
        self.current.load().lookup(name).map(Arc::clone)
    }

    /// Replaces the table by what `change` makes of it. The next connection sees
    /// it; those that are open do not notice.
    pub fn update(&self, change: impl FnOnce(&Table) -> Table) {
        let _alone = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let next = change(&self.current.load());
        self.current.store(Arc::new(next));
    }
}

#[cfg(test)]
mod tests;
