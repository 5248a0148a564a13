//! Tenants' own API servers: how they are reached, and one session for each that is up.
//!
//! Owns: sessions. A session is one HTTP/2 connection with the operator's own certificate, filtered watches
//! on it, and the memory of what was last found in order. Refuses: caching tenants' objects; what a
//! tenant keeps in its cluster costs the operator nothing. A tenant that does not answer has a short
//! timeout of its own and holds nobody up.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use hear::Watched;
use kube::Client;
use serde_json::Value;
use steward_api::conditions::Reason;
use steward_plan::{Inside, Object, Prune};
use tokio::{sync::mpsc, task::JoinSet};

use crate::{
    apply::{self, Cluster, Engine, owned},
    error::Error,
    lease::Fence,
    metrics::Metrics,
};

pub mod access;
mod grant;
mod hear;
#[cfg(test)]
mod hostile;
pub mod limits;
mod look;

pub use access::{Identity, Place, Target};
pub use look::{ready, rollout};

/// One look inside takes no longer than this.
const PATIENCE: Duration = Duration::from_secs(10);

/// Within this time a second look would find the same; watches say when not.
const FRESH: Duration = Duration::from_secs(5);

/// All sessions.
pub struct Tenants {
    sessions: Mutex<HashMap<Key, Arc<Session>>>,
    wake: mpsc::UnboundedSender<Key>,
    metrics: Metrics,
    fence: Fence,
}

/// Namespace and name.
pub type Key = (String, String);

/// A tenant that is up.
pub struct Session {
    /// Writes inside the tenant.
    pub engine: Engine,
    /// Where it is dialled, for messages.
    pub endpoint: String,
    client: Client,
    fingerprint: String,
    /// The certificate is renewed by opening another session.
    until: Instant,
    /// The tenant refused us: our rights are gone, or the certificate is no longer good.
    denied: AtomicBool,
    state: Arc<State>,
    memory: Mutex<Memory>,
    watches: Mutex<Option<JoinSet<()>>>,
}

/// What the watches tell.
struct State {
    /// Something of ours changed since we last looked.
    unseen: AtomicBool,
    /// Something of ours changed since we last put everything in order. Not the same: what changes
    /// between a look and the work that follows from it must be looked at again.
    dirty: AtomicBool,
    key: Key,
    wake: mpsc::UnboundedSender<Key>,
}

#[derive(Default)]
struct Memory {
    /// Digest of what was last found to be in order.
    settled: Option<String>,
    seen: Option<(Instant, Inside)>,
}

impl State {
    fn touch(&self) {
        let known = self.unseen.swap(true, Ordering::AcqRel);
        // One message is enough until it is acted upon.
        if !self.dirty.swap(true, Ordering::AcqRel) || !known {
            // The receiver is gone only when the operator stops.
            let _ = self.wake.send(self.key.clone());
        }
    }
}

impl Tenants {
    /// No sessions yet. `wake` hears of tenants in which something of ours changed.
    pub fn new(wake: mpsc::UnboundedSender<Key>, metrics: Metrics, fence: Fence) -> Self {
        Self {
            sessions: Mutex::default(),
            wake,
            metrics,
            fence,
        }
    }

    /// The session of a tenant: another one when address or authority changed, when the tenant refused us, or
    /// when our certificate is half through its life.
    ///
    /// # Errors
    /// When the authority can't be used, or the tenant does not let us have our rights.
    pub async fn open(&self, key: &Key, target: &Target) -> Result<Arc<Session>, Error> {
        let fingerprint = target.fingerprint();
        let found = self.lock().get(key).cloned();
        if let Some(session) = found.filter(|session| session.usable(&fingerprint)) {
            return Ok(session);
        }
        let client = limits::client(target.client(Identity::Operator)?, &self.fence);
        let granted = tokio::time::timeout(PATIENCE, grant::ensure(&client, target, &self.fence));
        granted.await.map_err(|_| grant::too_slow(PATIENCE))??;
        let session = Arc::new(Session {
            engine: Engine::new(client.clone(), Cluster::Tenant, self.metrics.clone()),
            endpoint: target.place.url.to_string(),
            client,
            fingerprint,
            until: Instant::now() + access::session_age(key),
            denied: AtomicBool::new(false),
            state: Arc::new(State {
                unseen: AtomicBool::new(true),
                dirty: AtomicBool::new(true),
                key: key.clone(),
                wake: self.wake.clone(),
            }),
            memory: Mutex::default(),
            watches: Mutex::default(),
        });
        let mut sessions = self.lock();
        sessions.insert(key.clone(), session.clone());
        self.count(&sessions);
        drop(sessions);
        tracing::info!(
            namespace = key.0,
            name = key.1,
            endpoint = session.endpoint,
            "session with tenant opened"
        );
        Ok(session)
    }

    /// Ends the session of a tenant that is gone, asleep or has no pod.
    pub fn close(&self, key: &Key) {
        let mut sessions = self.lock();
        if sessions.remove(key).is_some() {
            self.count(&sessions);
            tracing::info!(
                namespace = key.0,
                name = key.1,
                "session with tenant closed"
            );
        }
    }

    fn count(&self, sessions: &HashMap<Key, Arc<Session>>) {
        self.metrics
            .tenants_watched
            .set(i64::try_from(sessions.len()).unwrap_or(i64::MAX));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    fn usable(&self, fingerprint: &str) -> bool {
        self.fingerprint == fingerprint
            && !self.denied.load(Ordering::Acquire)
            && Instant::now() < self.until
    }

    /// What is seen inside. Never fails: not to be reached is an answer too. While the tenant is
    /// `moving`, what is on its way out is looked at as well.
    pub async fn look(&self, moving: bool) -> Inside {
        if let Some((at, inside)) = &self.memory().seen
            && at.elapsed() < FRESH
            // No watch tells of what is on its way out.
            && !moving
            && !self.state.unseen.load(Ordering::Acquire)
            && matches!(inside, Inside::Reachable { .. })
        {
            return inside.clone();
        }
        self.state.unseen.store(false, Ordering::Release);
        let looked =
            tokio::time::timeout(PATIENCE, look::inside(&self.client, &self.engine, moving));
        let inside = match looked.await {
            Ok(Ok(inside)) => inside,
            Ok(Err(error)) => {
                self.denied.fetch_or(error.is_denied(), Ordering::AcqRel);
                let (cause, reason) = error.unreached(&self.endpoint);
                Inside::Unreachable { reason, cause }
            }
            Err(_) => Inside::Unreachable {
                reason: format!("{} did not answer within {PATIENCE:?}", self.endpoint),
                cause: Reason::TenantUnreachable,
            },
        };
        self.memory().seen = Some((Instant::now(), inside.clone()));
        inside
    }

    /// Whether exactly this was in order and nothing of ours changed since.
    pub fn settled(&self, objects: &[Object], prune: &Prune) -> bool {
        !self.state.dirty.load(Ordering::Acquire)
            && self.memory().settled.as_deref() == Some(&digest(objects, prune))
    }

    /// Forgets what changed before now: whoever calls this looks at everything next.
    pub fn begin(&self) {
        self.state.dirty.store(false, Ordering::Release);
    }

    /// Remembers that this is in order.
    pub fn finish(&self, objects: &[Object], prune: &Prune) {
        self.memory().settled = Some(digest(objects, prune));
    }

    /// Something went wrong: look at everything again next time.
    pub fn distrust(&self) {
        let mut memory = self.memory();
        memory.settled = None;
        memory.seen = None;
    }

    /// Watches our objects of these kinds, once: metadata only, by label.
    pub fn watch(&self, prune: &Prune) {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        if watches.is_some() || prune.labels.is_empty() {
            return;
        }
        let mut tasks = JoinSet::new();
        for kind in &prune.kinds {
            let state = self.state.clone();
            let ours = Watched {
                client: self.client.clone(),
                resource: kind.api_resource(),
                labels: apply::selector(&prune.labels),
            };
            tasks.spawn(hear::hear(ours, move || state.touch()));
        }
        *watches = Some(tasks);
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of what should be there, and of what may stay.
fn digest(objects: &[Object], prune: &Prune) -> String {
    let kept = prune.keep.iter().map(|key| Value::String(key.to_string()));
    let objects = objects.iter().map(|object| object.body.clone());
    owned::digest(&Value::Array(objects.chain(kept).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_between_a_look_and_the_work_is_heard_of() {
        let (wake, mut woken) = mpsc::unbounded_channel();
        let state = State {
            unseen: AtomicBool::new(false),
            // The work that would clear it is still to come.
            dirty: AtomicBool::new(true),
            key: ("tenants".into(), "t1".into()),
            wake,
        };
        state.touch();
        assert!(woken.try_recv().is_ok());
        state.touch();
        assert!(woken.try_recv().is_err(), "one message is enough");
    }
}
