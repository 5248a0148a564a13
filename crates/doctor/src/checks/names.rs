//! Is the tenant's name its own, and does it lead to the front door?

use std::net::IpAddr;

use super::{Check, Verdict, fix, seen};
use crate::evidence::{Condition, Evidence};
use crate::finding::Group;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "keys",
        group: Group::Spec,
        what: "the keys that can't be made again are there",
        why: "every node, kubeconfig and token hangs on them: without one nothing is renewed and no pod starts",
        follows: &[],
        judge: keys,
    },
    Check {
        id: "hostname-unique",
        group: Group::Spec,
        what: "no other tenant claims this hostname",
        why: "the front door can send a name to one tenant only; the one that claimed it first keeps it",
        follows: &[],
        judge: unique,
    },
    Check {
        id: "spec-accepted",
        group: Group::Spec,
        what: "the specification can be followed",
        why: "the operator changes nothing while it can't follow the specification",
        follows: &["hostname-unique"],
        judge: accepted,
    },
    Check {
        id: "paused",
        group: Group::Spec,
        what: "the operator looks after this tenant",
        why: "while it is paused nothing is repaired, renewed or upgraded",
        follows: &[],
        judge: paused,
    },
    Check {
        id: "deleting",
        group: Group::Spec,
        what: "nobody waits for this tenant's deletion",
        why: "it stays until everything of it is removed, its data in the datastore last",
        follows: &["datastore", "operator"],
        judge: deleting,
    },
    Check {
        id: "management",
        group: Group::Spec,
        what: "the management cluster answers in time",
        why: "what it did not tell in time was not judged: look again when it is less busy",
        follows: &[],
        judge: management,
    },
    Check {
        id: "dns-resolves",
        group: Group::Dns,
        what: "the hostname resolves",
        why: "clients and nodes dial the hostname; without a record they find nothing",
        follows: &[],
        judge: resolves,
    },
    Check {
        id: "dns-address",
        group: Group::Dns,
        what: "the hostname leads to the front door",
        why: "connections that arrive elsewhere never reach the tenant",
        follows: &[],
        judge: address,
    },
];

/// The condition itself says how to put a key back.
fn keys(e: &Evidence) -> Verdict {
    let lost = |c: &&Condition| c.kind == "CertificatesReady" && c.reason == "KeyLost";
    match e.conditions.iter().find(lost) {
        Some(c) if c.status == "False" => Verdict::problem(&c.message, fix::describe(e)),
        _ => Verdict::fine("they are"),
    }
}

fn unique(e: &Evidence) -> Verdict {
    let Some(hostname) = &e.hostname else {
        return Verdict::Skip;
    };
    if e.rivals.is_empty() {
        return Verdict::fine(format!("{hostname} is claimed by this tenant alone"));
    }
    let holders: Vec<&str> = e
        .rivals
        .iter()
        .filter(|r| r.holds)
        .map(|r| r.tenant.as_str())
        .collect();
    if holders.is_empty() {
        let waiting: Vec<&str> = e.rivals.iter().map(|r| r.tenant.as_str()).collect();
        let seen = format!(
            "{hostname} is also wanted by {}, which waits for it",
            waiting.join(", ")
        );
        return Verdict::warning(
            seen,
            "steward doctor -A   # says it of the other tenant too",
        );
    }
    let (_, domain) = hostname.split_once('.').unwrap_or(("", hostname));
    let other = format!("{}-{}.{domain}", e.namespace(), e.name());
    let patch = fix::patch(
        e,
        &format!("{{\"controlPlane\":{{\"ingress\":{{\"hostname\":\"{other}\"}}}}}}"),
    );
    Verdict::problem(
        format!(
            "{hostname} belongs to {}, which was there first",
            holders.join(", ")
        ),
        format!("{patch}   # or another name that nobody has"),
    )
}

fn accepted(e: &Evidence) -> Verdict {
    match e.conditions.iter().find(|c| c.kind == "Accepted") {
        None => Verdict::Skip,
        Some(c) if c.status == "True" => Verdict::fine("accepted"),
        Some(c) => Verdict::problem(
            format!("{}: {}", c.reason, c.message),
            format!(
                "kubectl edit tenantcontrolplane -n {} {}",
                e.namespace(),
                e.name()
            ),
        ),
    }
}

fn paused(e: &Evidence) -> Verdict {
    if !e.paused {
        return Verdict::fine("it does");
    }
    Verdict::warning(
        "the annotation steward.butlerlabs.dev/paused is set",
        fix::repaired(e, String::new),
    )
}

fn management(e: &Evidence) -> Verdict {
    if e.given_up.is_empty() {
        return Verdict::fine("it does");
    }
    Verdict::warning(
        format!(
            "no answer within three seconds to: {}",
            e.given_up.join(", ")
        ),
        "kubectl get --raw '/readyz?verbose'   # of the management cluster",
    )
}

/// A deletion takes a moment; one that takes minutes waits for something.
fn deleting(e: &Evidence) -> Verdict {
    match &e.deleting {
        None => Verdict::fine("nobody does"),
        Some((seconds, finalizers)) if *seconds > 120 => Verdict::problem(
            format!(
                "deletion was asked for {seconds} s ago and waits for {}",
                finalizers.join(", ")
            ),
            fix::repaired(e, fix::operator_log),
        ),
        Some((seconds, _)) => Verdict::warning(
            format!("deletion was asked for {seconds} s ago"),
            fix::describe(e),
        ),
    }
}

fn resolves(e: &Evidence) -> Verdict {
    let Some(hostname) = &e.hostname else {
        return Verdict::Skip;
    };
    match seen(&e.resolved, || fix::records(e)) {
        Err(verdict) => verdict,
        Ok(found) if found.is_empty() => {
            Verdict::problem(format!("{hostname} has no address"), fix::records(e))
        }
        Ok(found) => Verdict::fine(format!("{hostname} → {}", list(found))),
    }
}

/// Another address than the front door's is fine as long as the tenant itself answers
/// there, unopened: a load balancer or NAT in front. Where somebody opens the TLS who
/// speaks Kubernetes, the name is right and the proxy is the news.
fn address(e: &Evidence) -> Verdict {
    let (Some(hostname), Ok(found)) = (&e.hostname, &e.resolved) else {
        return Verdict::Skip;
    };
    if found.is_empty() || e.front_door_addresses.is_empty() {
        return Verdict::Skip;
    }
    let strange: Vec<IpAddr> = found
        .iter()
        .filter(|a| !e.front_door_addresses.contains(a))
        .copied()
        .collect();
    if strange.is_empty() {
        return Verdict::fine("it is the front door's address");
    }
    if e.certificate
        .as_ref()
        .is_ok_and(|c| c.of_tenant_ca || c.speaks_kubernetes)
    {
        return Verdict::fine(format!("through {}, which passes it on", list(&strange)));
    }
    Verdict::problem(
        format!(
            "{hostname} → {}, but the front door is at {}",
            list(&strange),
            list(&e.front_door_addresses)
        ),
        fix::records(e),
    )
}

fn list(addresses: &[IpAddr]) -> String {
    addresses
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}
