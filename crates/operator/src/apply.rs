//! The one place that writes objects, in the management cluster and inside tenants.
//!
//! Owns: server-side apply with our field manager and force, leaving out writes that
//! would change nothing, removal of what is no longer wanted. Refuses: deciding, and touching what belongs to
//! somebody else: an object with an owner is written only over one of the same owner. It does what a plan
//! says, in the plan's order, and tells what came of it.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::AtomicUsize},
};

use futures::future::{join_all, try_join_all};
use kube::{
    Client,
    api::{DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy},
    core::Request,
};
use serde_json::{Value, json};
use steward_plan::{Kind, Live, Object, ObjectKey, Owner, Prune, Standing};

use crate::{
    error::Error,
    metrics::Metrics,
    pages::{self, List},
};

mod guarded;
pub mod owned;
mod versions;

pub use versions::Versions;

/// Writes at the same time within one stage: the API server answers one in a few milliseconds, most of
/// them spent waiting for its datastore.
const PARALLEL: usize = 16;

/// Objects of one kind with our label inside a tenant: there are a few dozen in all.
const INSIDE: usize = 500;

/// What the metadata of all of them may take in memory: usually two or three megabytes.
const INSIDE_MEMORY: usize = 32 << 20;

/// Kinds that are listed inside a tenant at the same time.
const INSIDE_PARALLEL: usize = 4;

/// What became of one object.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It was as it should be; nothing was sent, or the API server saw no difference.
    Unchanged,
    /// It was not there.
    Created(Value),
    /// It differed.
    Updated(Value),
}

/// Which cluster an engine writes to; the word is the metric's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cluster {
    /// Where the operator runs.
    Management,
    /// Inside a tenant.
    Tenant,
}

impl Cluster {
    const fn label(self) -> &'static str {
        match self {
            Self::Management => "management",
            Self::Tenant => "tenant",
        }
    }

    /// What is kept of an answer: of a tenant's nothing but the version, since it may be anything.
    fn keep(self, mut after: Value) -> Value {
        match self {
            Self::Management => after,
            Self::Tenant => {
                let version = after["metadata"]["resourceVersion"].take();
                json!({"metadata": {"resourceVersion": version}})
            }
        }
    }
}

/// Applies, lists and removes objects of one cluster.
#[derive(Clone)]
pub struct Engine {
    client: Client,
    cluster: Cluster,
    metrics: Metrics,
    versions: Versions,
}

impl Engine {
    /// An engine that writes through this client. Its lists are the newest there is.
    pub fn new(client: Client, cluster: Cluster, metrics: Metrics) -> Self {
        Self {
            client,
            cluster,
            metrics,
            versions: Versions::default(),
        }
    }

    /// The same, but its lists are only as new as these know they have to be.
    #[must_use]
    pub fn with_versions(self, versions: Versions) -> Self {
        Self { versions, ..self }
    }

    /// Makes all objects so, several at a time. Results are in the order of `objects`.
    pub async fn apply_all(&self, objects: &[&Object], live: &Live) -> Vec<Result<Outcome, Error>> {
        let mut results = Vec::with_capacity(objects.len());
        for chunk in objects.chunks(PARALLEL) {
            results.extend(
                join_all(
                    chunk
                        .iter()
                        .map(|object| self.apply(object, live.0.get(&object.key).map(Arc::as_ref))),
                )
                .await,
            );
        }
        results
    }

    /// Makes one object so. `live` is how it was when it was last read.
    pub async fn apply(&self, object: &Object, live: Option<&Value>) -> Result<Outcome, Error> {
        let mut body = object.body.clone();
        owned::seal(&mut body);
        let owner = Owner::of(&body);
        let ours = |live: &Value| match &owner {
            Some(owner) => owner.standing(live) == Standing::Ours,
            None => true,
        };
        if live.is_some_and(|live| ours(live) && owned::settled(&body, live)) {
            self.metrics.skipped.inc();
            return Ok(Outcome::Unchanged);
        }
        let after = match &owner {
            Some(owner) => self.write_owned(object, &body, owner, live).await?,
            None => self.patch(object, &body).await?,
        };
        let outcome = match live {
            None => Outcome::Created(after),
            Some(live) if version(live) == version(&after) => Outcome::Unchanged,
            Some(_) => Outcome::Updated(after),
        };
        let plural = object.key.kind.names().3;
        if let Outcome::Created(after) | Outcome::Updated(after) = &outcome {
            self.versions.wrote(plural, version(after));
        }
        let result = match outcome {
            Outcome::Unchanged => "unchanged",
            Outcome::Created(_) => "created",
            Outcome::Updated(_) => "updated",
        };
        self.note(object.key.kind, result);
        tracing::debug!(object = %object.key, because = object.because, result, "applied");
        Ok(outcome)
    }

    async fn patch(&self, object: &Object, body: &Value) -> Result<Value, Error> {
        let params = PatchParams::apply(owned::MANAGER).force();
        let request = Request::new(path(object.key.kind, object.key.namespace.as_deref()))
            .patch(&object.key.name, &params, &Patch::Apply(body))
            .map_err(|error| self.failed(object, kube::Error::BuildRequest(error)))?;
        let after = self.client.request(request).await;
        after
            .map(|after| self.cluster.keep(after))
            .map_err(|error| self.failed(object, error))
    }

    fn failed(&self, object: &Object, error: kube::Error) -> Error {
        self.note(object.key.kind, "failed");
        Error::Write {
            what: object.key.to_string(),
            because: object.because.to_owned(),
            error,
        }
    }

    fn note(&self, kind: Kind, result: &'static str) {
        self.metrics
            .wrote(self.cluster.label(), kind.names().2, result);
    }

    /// Reads all objects of these kinds with these labels. A kind that is not served has none.
    pub async fn list(
        &self,
        kinds: &[Kind],
        namespace: Option<&str>,
        labels: &str,
    ) -> Result<Live, Error> {
        let lists = join_all(
            kinds
                .iter()
                .map(|kind| self.list_kind(*kind, namespace, labels)),
        )
        .await;
        let mut live = Live::default();
        for (kind, list) in kinds.iter().zip(lists) {
            for item in list? {
                if let Some(key) = key_of(*kind, &item) {
                    live.insert(key, item);
                }
            }
        }
        Ok(live)
    }

    /// As [`Engine::list`], inside a tenant: only metadata, which is enough to know whether a write is needed, and no
    /// more of it than there should be.
    ///
    /// # Errors
    /// The client's; [`Error::TooMuchInside`].
    pub async fn list_inside(&self, kinds: &[Kind], labels: &str) -> Result<Live, Error> {
        let budget = AtomicUsize::new(INSIDE_MEMORY);
        let mut live = Live::default();
        for some in kinds.chunks(INSIDE_PARALLEL) {
            let lists = some
                .iter()
                .map(|kind| self.list_kind_inside(*kind, labels, &budget));
            for (key, item) in try_join_all(lists).await?.into_iter().flatten() {
                live.insert(key, item);
            }
        }
        Ok(live)
    }

    async fn list_kind_inside(
        &self,
        kind: Kind,
        labels: &str,
        budget: &AtomicUsize,
    ) -> Result<Vec<(ObjectKey, Value)>, Error> {
        let list = List {
            path: path(kind, None),
            labels: Some(labels),
            metadata: true,
            what: kind.names().3,
            most: INSIDE,
            budget: Some(budget),
        };
        let mut found = Vec::new();
        pages::each(&self.client, &list, |item| {
            found.extend(key_of(kind, &item).map(|key| (key, item)));
        })
        .await?;
        Ok(found)
    }

    async fn list_kind(
        &self,
        kind: Kind,
        namespace: Option<&str>,
        labels: &str,
    ) -> Result<Vec<Value>, Error> {
        let read = |error| Error::Read {
            what: format!("{} with labels {labels}", kind.names().3),
            error,
        };
        let plural = kind.names().3;
        let namespace = namespace.filter(|_| kind.namespaced());
        let request = Request::new(path(kind, namespace));
        let mut items = Vec::new();
        let mut params = self.versions.list(plural, labels);
        loop {
            let built = request
                .list(&params)
                .map_err(|error| read(kube::Error::BuildRequest(error)))?;
            let mut page: Value = match self.client.request(built).await {
                Ok(page) => page,
                Err(kube::Error::Api(status)) if status.code == 404 => return Ok(items),
                // A datastore that was restored knows less than we do.
                Err(kube::Error::Api(_)) if params.version_match.is_some() => {
                    self.versions.forget(plural);
                    params = self.versions.list(plural, labels);
                    continue;
                }
                Err(error) => return Err(read(error)),
            };
            self.versions.reached(plural, version(&page));
            if let Value::Array(found) = page["items"].take() {
                items.extend(found);
            }
            match page["metadata"]["continue"]
                .as_str()
                .filter(|token| !token.is_empty())
            {
                Some(token) => params = params.continue_token(token),
                None => return Ok(items),
            }
        }
    }

    /// Reads one object, if it is there.
    pub async fn get(&self, key: &ObjectKey) -> Result<Option<Value>, Error> {
        let read = |error| Error::Read {
            what: key.to_string(),
            error,
        };
        let request = Request::new(path(key.kind, key.namespace.as_deref()))
            .get(&key.name, &kube::api::GetParams::default())
            .map_err(|error| read(kube::Error::BuildRequest(error)))?;
        match self.client.request(request).await {
            Ok(found) => Ok(Some(found)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(read(error)),
        }
    }

    /// Removes what a plan no longer has. Returns what was removed and what could not be.
    pub async fn prune(
        &self,
        prune: &Prune,
        planned: &[Object],
        live: &Live,
    ) -> Vec<Result<ObjectKey, Error>> {
        let mut removed = Vec::new();
        for (key, uid) in unwanted(prune, planned, live) {
            removed.push(self.delete(&key, uid).await.map(|()| key));
        }
        removed
    }

    /// Removes one object, if it is still the one that was seen. Its dependents follow in the background.
    pub async fn delete(&self, key: &ObjectKey, uid: Option<String>) -> Result<(), Error> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid,
                resource_version: None,
            }),
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteParams::default()
        };
        let failed = |error| Error::Write {
            what: key.to_string(),
            because: "it is no longer wanted".into(),
            error,
        };
        let request = Request::new(path(key.kind, key.namespace.as_deref()))
            .delete(&key.name, &params)
            .map_err(|error| failed(kube::Error::BuildRequest(error)))?;
        match self.client.request::<Value>(request).await {
            Ok(_) => {
                self.note(key.kind, "deleted");
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => {
                self.note(key.kind, "failed");
                Err(failed(error))
            }
        }
    }
}

/// What of `live` is ours, and neither planned nor kept. Where what is planned has an owner, only what has the
/// same one is ours.
fn unwanted(prune: &Prune, planned: &[Object], live: &Live) -> Vec<(ObjectKey, Option<String>)> {
    let owner = planned.iter().find_map(|object| Owner::of(&object.body));
    // An empty selector would select everything of everyone.
    if prune.labels.is_empty() {
        return Vec::new();
    }
    let wanted: BTreeSet<&ObjectKey> = planned
        .iter()
        .map(|object| &object.key)
        .chain(&prune.keep)
        .collect();
    live.0
        .iter()
        .filter(|(key, _)| prune.kinds.contains(&key.kind) && !wanted.contains(key))
        .filter(|(key, _)| {
            key.namespace
                .as_ref()
                .is_none_or(|namespace| prune.namespaces.contains(namespace))
        })
        .filter(|(_, object)| {
            let labels = &object["metadata"]["labels"];
            prune
                .labels
                .iter()
                .all(|(label, value)| labels[label].as_str() == Some(value))
        })
        // Kubernetes copies labels, for example from a Service to its EndpointSlices: what is not of our making
        // is not ours, whatever its labels say.
        .filter(|(_, object)| owned::our_fields(object).is_some())
        .filter(|(_, object)| {
            let standing = owner.as_ref().map(|owner| owner.standing(object));
            standing.is_none_or(|standing| standing == Standing::Ours)
        })
        .filter(|(_, object)| object["metadata"]["deletionTimestamp"].is_null())
        .map(|(key, object)| {
            (
                key.clone(),
                object["metadata"]["uid"].as_str().map(str::to_owned),
            )
        })
        .collect()
}

fn version(object: &Value) -> Option<&str> {
    object["metadata"]["resourceVersion"].as_str()
}

fn key_of(kind: Kind, object: &Value) -> Option<ObjectKey> {
    let name = object["metadata"]["name"].as_str()?;
    Some(if kind.namespaced() {
        ObjectKey::new(kind, object["metadata"]["namespace"].as_str()?, name)
    } else {
        ObjectKey::cluster(kind, name)
    })
}

/// URL of a kind, in a namespace or everywhere.
pub fn path(kind: Kind, namespace: Option<&str>) -> String {
    let (group, version, _, plural) = kind.names();
    let root = if group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{group}/{version}")
    };
    match namespace {
        Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}"),
        None => format!("{root}/{plural}"),
    }
}

/// `a=b,c=d`, as selectors are written.
pub fn selector<'a>(labels: impl IntoIterator<Item = (&'a String, &'a String)>) -> String {
    let pairs: Vec<String> = labels
        .into_iter()
        .map(|(label, value)| format!("{label}={value}"))
        .collect();
    pairs.join(",")
}

#[cfg(test)]
mod tests;
