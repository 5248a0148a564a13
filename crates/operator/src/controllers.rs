//! Both controllers, and the queue that drives them.
//!
//! Owns: what wakes a reconcile, how many run at once, when one is tried again. Refuses: knowing what a
//! reconcile does. The same object is never reconciled twice at the same time.

use std::{fmt::Debug, hash::Hash, sync::Arc, time::Duration};

use futures::{Stream, StreamExt, future::BoxFuture};
use jiff::Timestamp;
use kube::{
    Resource,
    runtime::{
        applier,
        controller::{self, Action},
        reflector::{ObjectRef, Store},
        watcher,
    },
};
use tokio_util::sync::CancellationToken;

use crate::{context::Context, error::Error};

pub mod control_plane;
pub mod data_store;
pub mod status;

/// How a controller is run.
pub(crate) struct Runner<K>
where
    K: Resource + Clone + 'static,
    K::DynamicType: Debug + Eq + Hash + Clone,
{
    /// For logs and metrics.
    pub(crate) name: &'static str,
    /// All objects.
    pub(crate) store: Store<K>,
    /// At the same time.
    pub(crate) concurrency: u16,
    /// Wakes within this time become one.
    pub(crate) debounce: Duration,
}

/// A reconcile, boxed.
pub(crate) type Reconcile<K> =
    fn(Arc<K>, Arc<Context>) -> BoxFuture<'static, Result<Action, Error>>;

impl<K> Runner<K>
where
    K: Resource + Clone + Send + Sync + 'static,
    K::DynamicType: Debug + Eq + Hash + Clone + Unpin + Send + Sync,
{
    /// Runs until `stop`; reconciles that have begun are finished.
    pub(crate) async fn run(
        self,
        wakes: impl Stream<Item = ObjectRef<K>> + Send + 'static,
        reconcile: Reconcile<K>,
        retry: fn(Arc<K>, &Error, Arc<Context>) -> Action,
        context: Arc<Context>,
        stop: CancellationToken,
    ) {
        let name = self.name;
        let queue = wakes
            .map(Ok::<_, watcher::Error>)
            .take_until(stop.cancelled_owned());
        let config = controller::Config::default()
            .concurrency(self.concurrency)
            .debounce(self.debounce);
        applier(
            reconcile,
            retry,
            context,
            self.store,
            Box::pin(queue),
            config,
        )
        .for_each(|done| {
            if let Err(controller::Error::QueueError(error)) = &done {
                tracing::debug!(%error, controller = name, "queue");
            }
            futures::future::ready(())
        })
        .await;
    }
}

/// When to look again: at the planned time, but not later than the resync.
pub(crate) fn requeue<K: Hash>(
    key: &K,
    resync: Duration,
    planned: Option<Timestamp>,
    now: Timestamp,
) -> Action {
    /// A plan that wants to be looked at in the past wants it soon.
    const SOONEST: Duration = Duration::from_secs(1);
    let resync = crate::backoff::spread(key, resync);
    let planned = planned.map(|at| {
        Duration::try_from(at.duration_since(now))
            .unwrap_or_default()
            .max(SOONEST)
    });
    Action::requeue(planned.map_or(resync, |planned| planned.min(resync)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planned_time_comes_before_the_resync_and_never_at_once() {
        let now = Timestamp::UNIX_EPOCH;
        let at = |seconds| Some(now + jiff::SignedDuration::from_secs(seconds));
        let resync = Duration::from_hours(10);
        assert_eq!(
            requeue(&"a", resync, at(60), now),
            Action::requeue(Duration::from_mins(1))
        );
        assert_eq!(
            requeue(&"a", resync, at(-5), now),
            Action::requeue(Duration::from_secs(1))
        );
    }
}
