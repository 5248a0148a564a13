//! Watches that only wake someone up: metadata, filtered by label, nothing kept.
//!
//! Owns: turning "an object of this kind changed" into a call of a closure, for ever, through
//! disconnections. Refuses: caching objects. What is needed is read when it is needed, so memory does
//! not grow with what is watched.

use futures::{StreamExt, TryStreamExt};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ObjectMeta},
    core::PartialObjectMeta,
    runtime::{
        WatchStreamExt,
        watcher::{Config, Event, watcher},
    },
};

/// What happened to the watched objects.
#[derive(Debug)]
pub enum Change {
    /// This object was made, changed or removed.
    One(Box<ObjectMeta>),
    /// The watch had to start anew: anything may have happened meanwhile.
    Any,
    /// The watch broke off; it goes on by itself. Told once until it is back.
    Lost,
}

/// Watches objects of a kind, everywhere, those that `filter` selects, until dropped.
///
/// `ready` is called once, when the first list is complete.
pub async fn changes(
    client: Client,
    resource: ApiResource,
    filter: Config,
    ready: impl FnOnce() + Send,
    mut changed: impl FnMut(Change) + Send,
) {
    let api: Api<PartialObjectMeta<DynamicObject>> = Api::all_with(client, &resource);
    let mut events = watcher(api, filter).default_backoff().boxed();
    let mut ready = Some(ready);
    let mut restarted = false;
    let mut broken = false;
    loop {
        let event = events.try_next().await;
        let failed = event.is_err();
        match event {
            Ok(Some(Event::Apply(object) | Event::Delete(object))) => {
                changed(Change::One(Box::new(object.metadata)));
            }
            // The first list holds nothing new: whoever watches looks at everything at its start anyway.
            Ok(Some(Event::InitApply(_))) => {}
            Ok(Some(Event::Init)) => restarted = ready.is_none(),
            Ok(Some(Event::InitDone)) => {
                if let Some(ready) = ready.take() {
                    ready();
                }
                if std::mem::take(&mut restarted) {
                    changed(Change::Any);
                }
            }
            Ok(None) => return,
            Err(error) => {
                tracing::debug!(%error, kind = resource.kind, "watch interrupted; it goes on by itself");
                if !broken {
                    changed(Change::Lost);
                }
            }
        }
        broken = failed;
    }
}
