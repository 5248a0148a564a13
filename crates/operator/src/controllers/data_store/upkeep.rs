//! When upkeep of a managed datastore is due, and telling what came of it.

use kube::{Resource, ResourceExt};
use steward_api::{DataStore, conditions::Reason};

use super::Found;
use crate::{
    context::Context,
    datastore::upkeep::{self, Done, Thrift},
};

/// Starts what is due, beside reconciles: it may take minutes. Each look asks one member, whichever answers;
/// over time that is every one of them.
pub(super) fn consider(context: &Context, store: &DataStore, found: &Found) {
    let (Some(access), Some(health)) = (&found.access, &found.health) else {
        return;
    };
    let thrift = match &found.trouble {
        None => Thrift::Usual(context.defragment_above),
        Some((Reason::DatastoreFull, _)) => Thrift::Desperate,
        Some(_) => return,
    };
    let due = thrift == Thrift::Desperate || thrift.worth_it(health.bytes, health.in_use);
    if store.spec.managed.is_none() || context.defragment_above == 0 || !due {
        return;
    }
    let name = store.name_any();
    let Some(running) = context.upkeep.begin(&name) else {
        return;
    };
    let (access, health) = (access.clone(), health.clone());
    let (events, wake) = (context.events.clone(), context.wake_datastore.clone());
    let reference = store.object_ref(&());
    tokio::spawn(async move {
        let outcome = upkeep::step(&access, &health, thrift).await;
        drop(running);
        let (warning, reason, action, note) = match outcome {
            Ok(None) => return,
            Ok(Some(done)) => (false, reason(&done), action(&done), sentence(&done)),
            Err(error) => (
                true,
                "DefragmentationFailed",
                "Defragment".into(),
                error.to_string(),
            ),
        };
        tracing::info!(datastore = name, reason, note, "upkeep");
        events
            .publish(&reference, warning, reason, &action, &note)
            .await;
        if !warning {
            // The next member, if another one needs it.
            let _ = wake.send(name);
        }
    });
}

const fn reason(done: &Done) -> &'static str {
    match done {
        Done::Defragmented { .. } => "Defragmented",
        Done::AlarmDisarmed => "AlarmDisarmed",
    }
}

/// Events that differ in nothing but their note become one: each member's gets an action of its own.
fn action(done: &Done) -> String {
    match done {
        Done::Defragmented { before, .. } => {
            let member = before.endpoint.split('.').next().unwrap_or_default();
            format!("Defragment {member}")
        }
        Done::AlarmDisarmed => "Disarm".into(),
    }
}

fn sentence(done: &Done) -> String {
    const MEBI: u64 = 1 << 20;
    match done {
        Done::Defragmented { before, bytes } => format!(
            "{} gave back {} MiB: its file had {} MiB, of which {} were in use",
            before.endpoint,
            before.bytes.saturating_sub(*bytes) / MEBI,
            before.bytes / MEBI,
            before.in_use / MEBI,
        ),
        Done::AlarmDisarmed => {
            "there is room again after defragmentation: the NOSPACE alarm is off".into()
        }
    }
}
