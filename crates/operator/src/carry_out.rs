//! The fourth step: making a plan come true, stage by stage, and telling what came of it.
//!
//! Owns: the order of writes between Kubernetes, datastore and tenant, and where to stop when one fails.
//! Refuses: deciding what to write.

use std::sync::Arc;

use steward_api::{
    TenantControlPlane,
    conditions::{ConditionType, Reason},
};
use steward_plan::{
    Applied, Change, DatastoreWish, Failure, Inside, InsideApplied, Live, Object, Plan, Stage,
};

use crate::{
    accounts,
    apply::{self, Engine, Outcome},
    context::Context,
    datastore::{self, Datastore, claims::Account},
    error::Error,
    events::clip,
    tenant::Session,
};

/// What came of it, and the first error as such, which decides when to try again.
#[derive(Default)]
pub struct Done {
    /// For the report.
    pub applied: Applied,
    /// The first thing that failed.
    pub error: Option<Error>,
}

/// What pods need before they start; the datastore is made ready meanwhile. What is made with keys comes after
/// all keys: it always shows that they have been there.
const KEYS: [Stage; 2] = [Stage::Expose, Stage::Keys];
const MADE_WITH_KEYS: [Stage; 2] = [Stage::Pki, Stage::Config];
const PODS: [Stage; 2] = [Stage::Workload, Stage::FrontDoor];

/// Carries out the part of a plan that concerns the management cluster and the datastore. Wishes that are in
/// `fulfilled` are so since a moment ago.
pub async fn outside(
    context: &Context,
    tenant: &TenantControlPlane,
    plan: &Plan,
    live: Live,
    fulfilled: &mut Vec<DatastoreWish>,
) -> Done {
    let mut done = Done {
        applied: Applied {
            live,
            datastore_ready: true,
            ..Applied::default()
        },
        error: None,
    };
    // Before anything that holds credentials of the account.
    match claim_all(context, tenant, &plan.datastore, fulfilled).await {
        Ok(()) => {}
        Err((wish, error @ datastore::Error::Taken { .. })) => {
            done.refused(wish, error);
            return done;
        }
        Err((wish, error)) => {
            // What needs no datastore goes on, renewals among it.
            let known = plan.without_new_credentials(tenant, &done.applied.live);
            done.before_pods(&context.engine, &known).await;
            done.refused(wish, error);
            return done;
        }
    }
    let (well, wished) = futures::join!(
        done.before_pods(&context.engine, &plan.objects),
        fulfil_all(context, tenant, &plan.datastore, fulfilled)
    );
    if let Err((wish, error)) = wished {
        done.refused(wish, error);
        return done;
    }
    if !well || !done.stages(&context.engine, &plan.objects, &PODS).await {
        return done;
    }
    for removed in context
        .engine
        .prune(&plan.prune, &plan.objects, &done.applied.live)
        .await
    {
        match removed {
            Ok(key) => {
                done.applied.live.0.remove(&key);
                done.applied.changes.push(Change::Removed(key));
            }
            Err(error) => done.fail(
                None,
                ConditionType::Progressing,
                reason(&error),
                "removing what is left over".into(),
                error,
            ),
        }
    }
    done
}

impl Done {
    /// Applies what pods need. False when any of it failed.
    async fn before_pods(&mut self, engine: &Engine, objects: &[Object]) -> bool {
        let well = self.stages(engine, objects, &KEYS).await;
        let keyless = |failure: &Failure| failure.stage == Some(Stage::Keys);
        if self.applied.failures.iter().any(keyless) {
            return false;
        }
        self.stages(engine, objects, &MADE_WITH_KEYS).await && well
    }

    /// Applies the objects of these stages. False when any of them failed.
    async fn stages(&mut self, engine: &Engine, objects: &[Object], stages: &[Stage]) -> bool {
        let objects: Vec<&Object> = objects
            .iter()
            .filter(|object| stages.contains(&object.stage))
            .collect();
        let results = engine.apply_all(&objects, &self.applied.live).await;
        let mut well = true;
        for (object, result) in objects.iter().zip(results) {
            match result {
                Ok(outcome) => self.note(object, outcome),
                Err(error) => {
                    well = false;
                    self.fail(
                        Some(object.stage),
                        condition(object.stage),
                        reason(&error),
                        object.key.to_string(),
                        error,
                    );
                }
            }
        }
        well
    }

    fn note(&mut self, object: &Object, outcome: Outcome) {
        let (after, change) = match outcome {
            Outcome::Unchanged => return,
            Outcome::Created(after) => (after, Change::Created(object.key.clone())),
            Outcome::Updated(after) => (after, Change::Updated(object.key.clone())),
        };
        self.applied.live.insert(object.key.clone(), after);
        self.applied.changes.push(change);
    }

    /// The datastore did not grant what the tenant needs.
    fn refused(&mut self, wish: &DatastoreWish, error: datastore::Error) {
        self.applied.datastore_ready = false;
        let reason = error.reason();
        let what = format!("{wish:?}");
        self.fail(
            None,
            ConditionType::DatastoreReady,
            reason,
            what,
            error.into(),
        );
    }

    fn fail(
        &mut self,
        stage: Option<Stage>,
        condition: ConditionType,
        reason: Reason,
        what: String,
        error: Error,
    ) {
        // A tenant's API server may answer with a whole page.
        let message = clip(&error.to_string(), 2048);
        self.applied.failures.push(Failure {
            stage,
            condition,
            reason,
            what,
            message,
        });
        self.error.get_or_insert(error);
    }
}

/// The driver of a wish's store, and the tenant's account in it.
fn driver(
    context: &Context,
    tenant: &TenantControlPlane,
    wish: &DatastoreWish,
) -> Result<(Arc<dyn Datastore>, Account), datastore::Error> {
    let (store, user, schema) = match wish {
        DatastoreWish::Tenant {
            store,
            user,
            schema,
            ..
        }
        | DatastoreWish::Gone {
            store,
            user,
            schema,
        } => (store, user, schema),
    };
    let Some(driver) = context.stores.get(store).and_then(|entry| entry.driver) else {
        return Err(datastore::Error::Unreachable {
            endpoints: store.clone(),
            reason: "the operator has no connection to it; `kubectl describe datastore` says why"
                .into(),
        });
    };
    let account = accounts::account(context, tenant, store, user, schema);
    Ok((driver, account))
}

/// Fulfils one wish with the driver of its store. Returns what was left in the store because it is not the
/// tenant's.
///
/// # Errors
/// When the store is not connected, refuses or does not answer.
pub async fn fulfil(
    context: &Context,
    tenant: &TenantControlPlane,
    wish: &DatastoreWish,
) -> Result<Option<String>, datastore::Error> {
    let (driver, account) = driver(context, tenant, wish)?;
    fenced(context, wish.store(), async {
        match wish {
            DatastoreWish::Tenant { .. } => driver.ensure(&account).await.map(|_| None),
            DatastoreWish::Gone { .. } => driver.remove(&account).await,
        }
    })
    .await
}

/// Lets a call that changes a datastore pass the fence.
async fn fenced<T>(
    context: &Context,
    store: &str,
    call: impl Future<Output = Result<T, datastore::Error>>,
) -> Result<T, datastore::Error> {
    match context.fence.pass(call).await {
        Ok(answer) => answer,
        Err(closed) => Err(datastore::Error::Unreachable {
            endpoints: store.to_owned(),
            reason: closed.to_string(),
        }),
    }
}

/// Records the tenant's accounts as its own.
async fn claim_all<'w>(
    context: &Context,
    tenant: &TenantControlPlane,
    wishes: &'w [DatastoreWish],
    fulfilled: &[DatastoreWish],
) -> Result<(), (&'w DatastoreWish, datastore::Error)> {
    for wish in wishes.iter().filter(|wish| !fulfilled.contains(wish)) {
        let (driver, account) = driver(context, tenant, wish).map_err(|error| (wish, error))?;
        fenced(context, wish.store(), driver.claim(&account))
            .await
            .map_err(|error| (wish, error))?;
    }
    Ok(())
}

/// Fulfils wishes in their order, up to the first that can't be.
async fn fulfil_all<'w>(
    context: &Context,
    tenant: &TenantControlPlane,
    wishes: &'w [DatastoreWish],
    fulfilled: &mut Vec<DatastoreWish>,
) -> Result<(), (&'w DatastoreWish, datastore::Error)> {
    for wish in wishes {
        if !fulfilled.contains(wish) {
            fulfil(context, tenant, wish)
                .await
                .map_err(|error| (wish, error))?;
            fulfilled.push(wish.clone());
        }
    }
    Ok(())
}

/// Carries out the part of a plan that concerns the inside of the tenant. What can't be seen there because it is too
/// much is told, however well the rest goes.
pub async fn inside(plan: &Plan, session: Option<&Session>, seen: &Inside, done: &mut Done) {
    let Some(session) = session else { return };
    bring_in(plan, session, done).await;
    if let Inside::Unreachable { reason, cause } = seen
        && *cause == Reason::TooMuchInside
    {
        done.applied.inside = InsideApplied::Unreachable {
            reason: reason.clone(),
            cause: *cause,
        };
    }
}

async fn bring_in(plan: &Plan, session: &Session, done: &mut Done) {
    if plan.tenant_objects.is_empty() && plan.tenant_prune.labels.is_empty() {
        return;
    }
    if session.settled(&plan.tenant_objects, &plan.tenant_prune) {
        done.applied.inside = InsideApplied::Done {
            changes: Vec::new(),
        };
        return;
    }
    session.begin();
    let labels = apply::selector(&plan.tenant_prune.labels);
    let live = match session
        .engine
        .list_inside(&plan.tenant_prune.kinds, &labels)
        .await
    {
        Ok(live) => live,
        Err(error) => {
            session.distrust();
            let (cause, reason) = error.unreached(&session.endpoint);
            done.applied.inside = InsideApplied::Unreachable {
                reason: reason.clone(),
                cause,
            };
            done.error.get_or_insert(Error::TenantAccess { reason });
            return;
        }
    };
    let failures = done.applied.failures.len();
    let mut changes = Vec::new();
    let objects: Vec<&Object> = plan.tenant_objects.iter().collect();
    for (object, result) in objects
        .iter()
        .zip(session.engine.apply_all(&objects, &live).await)
    {
        match result {
            Ok(Outcome::Unchanged) => {}
            Ok(Outcome::Created(_)) => changes.push(Change::Created(object.key.clone())),
            Ok(Outcome::Updated(_)) => changes.push(Change::Updated(object.key.clone())),
            Err(error) => done.fail(
                None,
                ConditionType::AddonsReady,
                Reason::AddonsIncomplete,
                object.key.to_string(),
                error,
            ),
        }
    }
    if done.applied.failures.len() == failures {
        for removed in session
            .engine
            .prune(&plan.tenant_prune, &plan.tenant_objects, &live)
            .await
        {
            match removed {
                Ok(key) => changes.push(Change::Removed(key)),
                Err(error) => done.fail(
                    None,
                    ConditionType::AddonsReady,
                    Reason::AddonsIncomplete,
                    "removing what is left over".into(),
                    error,
                ),
            }
        }
    }
    if done.applied.failures.len() == failures {
        session.finish(&plan.tenant_objects, &plan.tenant_prune);
        session.watch(&plan.tenant_prune);
    } else {
        session.distrust();
    }
    done.applied.inside = InsideApplied::Done { changes };
}

const fn condition(stage: Stage) -> ConditionType {
    match stage {
        Stage::Expose | Stage::FrontDoor => ConditionType::EndpointReady,
        Stage::Keys | Stage::Pki | Stage::Config => ConditionType::CertificatesReady,
        Stage::Workload => ConditionType::ControlPlaneReady,
    }
}

fn reason(error: &Error) -> Reason {
    if matches!(error, Error::NotOurs { .. }) {
        return Reason::ObjectNotOurs;
    }
    let code = match error {
        Error::Read {
            error: kube::Error::Api(status),
            ..
        }
        | Error::Write {
            error: kube::Error::Api(status),
            ..
        } => status.code,
        _ => 0,
    };
    match code {
        403 if error.namespace_is_terminating() => Reason::NamespaceTerminating,
        403 if error.to_string().contains("exceeded quota") => Reason::QuotaExceeded,
        403 => Reason::Forbidden,
        409 => Reason::Conflict,
        429 => Reason::Throttled,
        _ => Reason::Error,
    }
}
