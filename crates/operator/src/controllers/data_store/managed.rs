//! A `DataStore` that the operator runs itself: its objects, and the way in once it serves.
//!
//! Owns: carrying out `steward_plan::datastore`. Refuses: deciding what the etcd looks like.

use jiff::Timestamp;
use steward_api::{DataStore, conditions::Reason, datastore::ManagedEtcdStatus};
use steward_pki::SystemKeys;
use steward_plan::{
    Kind, Live, Object, ObjectKey, Stage,
    datastore::{self as plan, Observed, Plan},
};

use super::Complaint;
use crate::{
    apply::{self, Versions},
    context::Context,
    datastore::etcd::Access,
    error::Error,
    trouble,
};

const STAGES: [Stage; 5] = [
    Stage::Expose,
    Stage::Pki,
    Stage::Config,
    Stage::Workload,
    Stage::FrontDoor,
];

/// What is known of a managed datastore after making it so.
pub(super) struct Managed {
    pub(super) status: ManagedEtcdStatus,
    pub(super) next_check: Option<Timestamp>,
    /// The way in, and the authority's key; or why it can't be used yet.
    pub(super) way: Result<(Access, String), Complaint>,
}

/// Makes the objects what they should be. Standbys only look.
pub(super) async fn run(
    context: &Context,
    store: &DataStore,
    name: &str,
) -> Result<Managed, Error> {
    let labels = apply::selector(&plan::selector(name));
    let namespace = context.settings.namespace.clone();
    let live = context
        .engine
        .list(&plan::managed_kinds(), Some(&namespace), &labels)
        .await?;
    let observed = Observed {
        now: Timestamp::now(),
        store: store.clone(),
        live,
    };
    let planned = match plan::plan(&context.settings, &observed, &SystemKeys) {
        Ok(Some(planned)) => planned,
        Ok(None) => {
            return Ok(Managed::unusable(
                Reason::Invalid,
                "spec.managed is not set".into(),
            ));
        }
        Err(plan::Error::Unusable(problem)) => {
            return Ok(Managed::unusable(problem.reason, problem.to_string()));
        }
        Err(error) => return Err(Error::PlanStore(error)),
    };
    if context.leads() {
        carry_out(context, &planned, &observed.live).await?;
    } else if secrets_missing(&planned, &observed.live) {
        return Ok(Managed::unusable(
            Reason::MembersNotReady,
            "the leading replica has not made it yet".into(),
        ));
    }
    let way = if planned.serving {
        let access = planned.access;
        let ca_key = access.authority.key;
        Ok((
            Access {
                endpoints: access.endpoints,
                ca: access.authority.certificate,
                certificate: access.root.certificate,
                key: access.root.key,
            },
            ca_key,
        ))
    } else {
        Err(not_serving(context, &namespace, &labels, &planned, &observed.live).await?)
    };
    Ok(Managed {
        status: planned.status,
        next_check: planned.next_check,
        way,
    })
}

impl Managed {
    fn unusable(reason: Reason, message: String) -> Self {
        Self {
            status: ManagedEtcdStatus::default(),
            next_check: None,
            way: Err((reason, message)),
        }
    }
}

async fn carry_out(context: &Context, planned: &Plan, live: &Live) -> Result<(), Error> {
    for stage in STAGES {
        let objects: Vec<&Object> = planned
            .objects
            .iter()
            .filter(|object| object.stage == stage)
            .collect();
        for applied in context.engine.apply_all(&objects, live).await {
            applied?;
        }
    }
    for removed in context
        .engine
        .prune(&planned.prune, &planned.objects, live)
        .await
    {
        removed?;
    }
    Ok(())
}

/// A plan that would make new certificates tells nothing about the way in.
fn secrets_missing(planned: &Plan, live: &Live) -> bool {
    planned
        .objects
        .iter()
        .any(|object| object.key.kind == Kind::Secret && !live.0.contains_key(&object.key))
}

async fn not_serving(
    context: &Context,
    namespace: &str,
    labels: &str,
    planned: &Plan,
    live: &Live,
) -> Result<Complaint, Error> {
    let set = planned.status.stateful_set.clone().unwrap_or_default();
    let (ready, wanted) = (
        planned.status.ready_replicas.unwrap_or(0),
        planned.status.replicas.unwrap_or(0),
    );
    let found = match live
        .0
        .get(&ObjectKey::new(Kind::StatefulSet, namespace, &set))
    {
        Some(set) => {
            trouble::find(
                &context.client,
                &Versions::default(),
                namespace,
                labels,
                set,
            )
            .await?
        }
        None => None,
    };
    Ok(match found {
        Some(trouble) => (trouble.reason, trouble.message),
        None => (
            Reason::MembersNotReady,
            format!("{ready} of {wanted} members of StatefulSet {namespace}/{set} are ready"),
        ),
    })
}
