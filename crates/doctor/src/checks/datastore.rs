//! Does the datastore answer, and may the tenant use it?

use super::{Check, Verdict, fix, seen};
use crate::evidence::{Datastore, Evidence, Member, Unseen};
use crate::finding::Group;

/// Milliseconds: etcd's members beat their hearts ten times a second, and choose another
/// leader after a second of silence.
const SLOW: u64 = 100;
const TOO_SLOW: u64 = 1000;

/// Milliseconds of a read, with the way there through the management cluster.
const SLOW_READ: u64 = 1000;

/// Percent of the quota: at a hundred, nothing is written any more.
const FILLING: u64 = 80;
const FULL: u64 = 95;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "datastore",
        group: Group::ControlPlane,
        what: "the datastore is ready",
        why: "an API server without its datastore answers nothing",
        follows: &[],
        judge: datastore,
    },
    Check {
        id: "datastore-credentials",
        group: Group::ControlPlane,
        what: "the tenant's credentials for the datastore are good",
        why: "a datastore that does not know its API server refuses it, and it never starts",
        follows: &[],
        judge: credentials,
    },
    Check {
        id: "datastore-latency",
        group: Group::ControlPlane,
        what: "the datastore answers and writes quickly",
        why: "every write of every tenant waits for its disk; a slow one loses its leader again and again",
        follows: &["datastore"],
        judge: latency,
    },
    Check {
        id: "datastore-space",
        group: Group::ControlPlane,
        what: "the datastore has room",
        why: "at its quota it refuses every write of every tenant until it is made room",
        follows: &[],
        judge: space,
    },
];

fn datastore(e: &Evidence) -> Verdict {
    match seen(&e.datastore, || "kubectl get datastores".to_owned()) {
        Err(verdict) => verdict,
        Ok(found) => judge(e, found),
    }
}

fn judge(e: &Evidence, found: &Datastore) -> Verdict {
    let name = &found.name;
    // The kubelet restarts a member that does not answer: wait for that, then look why not.
    let members = || {
        let namespace = &found.namespace;
        let pods = format!(
            "-l steward.butlerlabs.dev/datastore={name},steward.butlerlabs.dev/component=etcd"
        );
        format!(
            "kubectl wait -n {namespace} pod {pods} --for=condition=Ready --timeout=4m || kubectl describe pods -n {namespace} {pods}"
        )
    };
    if !found.unready.is_empty() {
        return Verdict::problem(format!("{name}: {}", found.unready.join("; ")), members());
    }
    if let Some(c) = found
        .conditions
        .iter()
        .find(|c| c.kind == "Ready" && c.status != "True")
    {
        return Verdict::problem(
            format!("{name}: {}: {}", c.reason, c.message),
            format!("kubectl describe datastore {name}"),
        );
    }
    let ill = found.members.iter().find_map(|m| {
        let why = m.health.as_ref()?.as_ref().err()?;
        (!why.contains(NO_SPACE)).then(|| format!("{name}: {} says {why}", m.pod))
    });
    if let Some(ill) = ill {
        return Verdict::problem(ill, members());
    }
    if let Err(Unseen::Failed(why)) = &e.ready
        && why.contains("etcd")
    {
        return Verdict::problem(
            format!("{name}: the API server does not get an answer from it: {why}"),
            members(),
        );
    }
    let own = e
        .conditions
        .iter()
        .find(|c| c.kind == "DatastoreReady" && c.status == "False");
    match own {
        Some(c) => Verdict::problem(format!("{}: {}", c.reason, c.message), fix::describe(e)),
        None => Verdict::fine(format!("{name} is ready")),
    }
}

/// The alarm of a member that has reached its quota.
const NO_SPACE: &str = "NOSPACE";

/// Judges what the members of a managed datastore say of themselves.
fn with(e: &Evidence, judge: impl FnOnce(&Datastore, &[Member]) -> Verdict) -> Verdict {
    match &e.datastore {
        Ok(found) if !found.members.is_empty() => judge(found, &found.members),
        _ => Verdict::Skip,
    }
}

fn latency(e: &Evidence) -> Verdict {
    with(e, |store, members| {
        let asked = members.iter().filter(|m| m.health.is_some());
        let Some(slowest) = asked.max_by_key(|m| (m.synced_in, m.answered_in)) else {
            return Verdict::Skip;
        };
        let synced = slowest.synced_in.map_or_else(String::new, |ms| {
            format!(", a write is on disk after {ms} ms")
        });
        let seen = format!(
            "{} answers in {} ms{synced}",
            slowest.pod, slowest.answered_in
        );
        let fix = || {
            format!(
                "kubectl get pods -n {} -o wide | grep {}; kubectl top node   # a disk of its own, or less beside it",
                store.namespace, slowest.pod
            )
        };
        match slowest.synced_in.unwrap_or_default() {
            TOO_SLOW.. => Verdict::problem(seen, fix()),
            SLOW.. => Verdict::warning(seen, fix()),
            _ if slowest.answered_in >= SLOW_READ => Verdict::warning(seen, fix()),
            _ => Verdict::fine(seen),
        }
    })
}

fn space(e: &Evidence) -> Verdict {
    with(e, |store, members| {
        let alarmed = members.iter().find(|m| {
            let said = m.health.as_ref().and_then(|h| h.as_ref().err());
            said.is_some_and(|why| why.contains(NO_SPACE))
        });
        let used = |m: &Member| m.size.saturating_mul(100) / m.quota.max(1);
        let known = || members.iter().filter(|m| m.quota > 0);
        let Some(fullest) = alarmed.or_else(|| known().max_by_key(|m| used(m))) else {
            return Verdict::Skip;
        };
        let mib = |bytes: u64| bytes / (1 << 20);
        let seen = format!(
            "{}: {} of {} MiB, {} %{}",
            fullest.pod,
            mib(fullest.size),
            mib(fullest.quota),
            used(fullest),
            if alarmed.is_some() {
                ", and it refuses to write"
            } else {
                ""
            }
        );
        let more = || {
            format!(
                "kubectl patch datastore {} --type merge -p '{{\"spec\":{{\"managed\":{{\"quotaBackendBytes\":{}}}}}}}'   # if its volume has that much",
                store.name,
                fullest.quota.saturating_mul(2)
            )
        };
        match used(fullest) {
            _ if alarmed.is_some() => Verdict::problem(seen, more()),
            ..FILLING => Verdict::fine(seen),
            FILLING..FULL => Verdict::warning(seen, more()),
            FULL.. => Verdict::problem(seen, more()),
        }
    })
}

fn credentials(e: &Evidence) -> Verdict {
    let anew = || {
        let (namespace, name) = (e.namespace(), e.name());
        format!(
            "kubectl delete secret -n {namespace} {name}-datastore-certificate   # the operator issues it anew"
        )
    };
    match seen(&e.datastore_credentials, || fix::repaired(e, anew)) {
        Err(verdict) => verdict,
        Ok(()) => Verdict::fine("of the datastore's CA, and valid"),
    }
}
