//! Does the datastore answer, and may the tenant use it?

use super::{Check, Verdict, fix, seen};
use crate::evidence::{Datastore, Evidence, Unseen};
use crate::finding::Group;

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
        why: "a datastore that does not know the tenant lets its API server in for nothing",
        follows: &[],
        judge: credentials,
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
    let members = || {
        format!(
            "kubectl describe pods -n {} -l steward.butlerlabs.dev/datastore={name},steward.butlerlabs.dev/component=etcd",
            found.namespace
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
