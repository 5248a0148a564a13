//! Is the tenant's name its own, and does it lead to the front door?

use super::{Check, Verdict, seen};
use crate::evidence::Evidence;
use crate::finding::{Group, Severity};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "hostname-unique",
        group: Group::Spec,
        what: "no other tenant claims this hostname",
        why: "the front door can send a name to one tenant only; the older one keeps it",
        judge: unique,
    },
    Check {
        id: "spec-accepted",
        group: Group::Spec,
        what: "the specification can be followed",
        why: "the operator changes nothing while it can't follow the specification",
        judge: accepted,
    },
    Check {
        id: "dns-resolves",
        group: Group::Dns,
        what: "the hostname resolves",
        why: "clients and nodes dial the hostname; without a record they find nothing",
        judge: resolves,
    },
    Check {
        id: "dns-address",
        group: Group::Dns,
        what: "the hostname leads to the front door",
        why: "connections that arrive elsewhere never reach the tenant",
        judge: address,
    },
];

fn unique(e: &Evidence) -> Verdict {
    let Some(hostname) = &e.hostname else {
        return Verdict::Skip;
    };
    if e.rivals.is_empty() {
        return Verdict::Fine(format!("{hostname} is claimed by this tenant alone"));
    }
    let rivals = e.rivals.join(", ");
    Verdict::Wrong(
        Severity::Problem,
        format!("{hostname} is also claimed by {rivals}"),
        format!(
            "kubectl edit tenantcontrolplane -n {}   # give one of them another hostname",
            namespace(e)
        ),
    )
}

fn accepted(e: &Evidence) -> Verdict {
    match e.conditions.iter().find(|c| c.kind == "Accepted") {
        None => Verdict::Skip,
        Some(c) if c.status == "True" => Verdict::Fine("accepted".to_owned()),
        Some(c) => Verdict::Wrong(
            Severity::Problem,
            format!("{}: {}", c.reason, c.message),
            format!(
                "kubectl edit tenantcontrolplane -n {} {}",
                namespace(e),
                name(e)
            ),
        ),
    }
}

fn resolves(e: &Evidence) -> Verdict {
    let Some(hostname) = &e.hostname else {
        return Verdict::Skip;
    };
    match seen(&e.resolved, || dns_fix(e)) {
        Err(verdict) => verdict,
        Ok(found) if found.is_empty() => Verdict::Wrong(
            Severity::Problem,
            format!("{hostname} has no address"),
            dns_fix(e),
        ),
        Ok(found) => Verdict::Fine(format!("{hostname} → {}", list(found))),
    }
}

fn address(e: &Evidence) -> Verdict {
    let (Some(hostname), Ok(found)) = (&e.hostname, &e.resolved) else {
        return Verdict::Skip;
    };
    if found.is_empty() || e.front_door_addresses.is_empty() {
        return Verdict::Skip;
    }
    let wrong: Vec<_> = found
        .iter()
        .filter(|a| !e.front_door_addresses.contains(a))
        .copied()
        .collect();
    if wrong.is_empty() {
        return Verdict::Fine("it is the front door's address".to_owned());
    }
    Verdict::Wrong(
        Severity::Problem,
        format!(
            "{hostname} → {}, but the front door is at {}",
            list(&wrong),
            list(&e.front_door_addresses)
        ),
        dns_fix(e),
    )
}

fn dns_fix(e: &Evidence) -> String {
    format!(
        "steward dns {} -n {}   # the records to make",
        name(e),
        namespace(e)
    )
}

fn list(addresses: &[std::net::IpAddr]) -> String {
    addresses
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

pub(super) fn namespace(e: &Evidence) -> &str {
    e.tenant.split('/').next().unwrap_or_default()
}

pub(super) fn name(e: &Evidence) -> &str {
    e.tenant.split('/').nth(1).unwrap_or_default()
}
