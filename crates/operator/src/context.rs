//! What every reconcile has at hand: clients, caches, metrics, and the means to wake someone up.
//!
//! Refuses: logic. Steps take the smallest piece of it that they need.

use std::{sync::Arc, time::Duration};

use kube::{Client, core::DeserializeGuard, runtime::reflector::Store};
use steward_api::{DataStore, TenantControlPlane};
use steward_plan::{Platform, Settings};
use tokio::sync::{mpsc, watch};

use crate::{
    apply::{Engine, Versions},
    backoff::Backoff,
    claims::Claims,
    config::TenantAccess,
    datastore::{connections::Connections, upkeep::Upkeep},
    events::Events,
    lease::{Fence, Leadership},
    metrics::Metrics,
    reach::Reaches,
    stores::Stores,
    tenant::{Key, Place, Tenants},
    underway::Underway,
};

/// A tenant that may not be readable: one malformed object stops nobody.
pub type GuardedTenant = DeserializeGuard<TenantControlPlane>;
/// A datastore that may not be readable.
pub type GuardedDataStore = DeserializeGuard<DataStore>;

/// Finds a tenant's API server other than by its Service; for tests, and for operators that run elsewhere.
pub type Dial = Arc<dyn Fn(&TenantControlPlane) -> Option<Place> + Send + Sync>;

/// The shared means of both controllers.
pub struct Context {
    /// Of the management cluster.
    pub client: Client,
    /// Writes to the management cluster.
    pub engine: Engine,
    /// How new what the engine reads has to be.
    pub versions: Versions,
    /// Which tenants are being looked at.
    pub underway: Underway,
    /// Uid of this management cluster, which tells its tenants from those of others in a shared datastore.
    pub cluster: String,
    /// For the plan.
    pub settings: Settings,
    /// How tenants are dialled.
    pub access: TenantAccess,
    /// Overrides `access`.
    pub dial: Option<Dial>,
    /// Limit of one reconcile.
    pub timeout: Duration,
    /// Longest time without a look.
    pub resync: Duration,
    /// Everything that is counted.
    pub metrics: Metrics,
    /// Tells people.
    pub events: Events,
    /// Sessions inside tenants.
    pub tenants: Tenants,
    /// Whether tenants' endpoints answer.
    pub reaches: Reaches,
    /// What is known of datastores.
    pub stores: Stores,
    /// Open connections to datastores.
    pub connections: Connections,
    /// Managed datastores that are being defragmented.
    pub upkeep: Upkeep,
    /// Files below this are not defragmented; 0 is never.
    pub defragment_above: u64,
    /// Who has which hostname.
    pub claims: Claims,
    /// What the management cluster offers.
    pub platform: watch::Receiver<Platform>,
    /// Whether we lead.
    pub leadership: watch::Receiver<Leadership>,
    /// What every write has to pass.
    pub fence: Fence,
    /// All tenants, as watched.
    pub tenant_cache: Store<GuardedTenant>,
    /// All datastores, as watched.
    pub datastore_cache: Store<GuardedDataStore>,
    /// Wakes tenants.
    pub wake_tenant: mpsc::UnboundedSender<Key>,
    /// Wakes datastores.
    pub wake_datastore: mpsc::UnboundedSender<String>,
    /// Failures of tenants in a row.
    pub tenant_backoff: Backoff<Key>,
    /// Failures of datastores in a row.
    pub datastore_backoff: Backoff<String>,
}

impl Context {
    /// Whether this replica may write now.
    pub fn leads(&self) -> bool {
        *self.leadership.borrow() == Leadership::Leader && self.fence.is_open()
    }

    /// Looks at a tenant soon. The receiver is gone only when the operator stops.
    pub fn wake(&self, key: Key) {
        let _ = self.wake_tenant.send(key);
    }

    /// A watch told of a tenant, or of something that it is made of. Looks at it soon, unless that was our own doing.
    pub fn told(&self, key: Key, plural: &str, version: Option<&str>) {
        if self.versions.heard(plural, version) && !self.underway.keep(&key, version) {
            self.wake(key);
        }
    }

    /// Notes that a tenant is being looked at, until what this returns is dropped.
    pub fn look_at(self: &Arc<Self>, key: Key) -> Look {
        self.underway.begin(key.clone());
        Look {
            context: Arc::clone(self),
            key,
        }
    }

    /// Looks at a datastore soon.
    pub fn wake_store(&self, name: &str) {
        let _ = self.wake_datastore.send(name.to_owned());
    }
}

/// A look at a tenant that is under way.
pub struct Look {
    context: Arc<Context>,
    key: Key,
}

impl Drop for Look {
    fn drop(&mut self) {
        let told = self.context.underway.end(&self.key);
        let news = |version: &Option<String>| self.context.versions.is_news(version.as_deref());
        if told.iter().any(news) {
            self.context.wake(self.key.clone());
        }
    }
}
