//! Who answers on the tenant's name, and is its certificate good?

use super::{Check, Verdict, fix, seen};
use crate::evidence::{Certificate, Evidence};
use crate::finding::{Act, Group, Remedy, Side};

/// A day: the operator renews long before.
const SOON: i64 = 24 * 3600;

/// Seconds that clocks may differ: beyond, tokens and fresh certificates fail.
pub(super) const APART: i64 = 60;

const ROTATE: &str = "certs.steward.butlerlabs.dev/rotate";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "tls-answers",
        group: Group::Tls,
        what: "somebody answers with TLS for the hostname",
        why: "a front door that knows no route for the name, or no pod behind it, ends the handshake",
        follows: &[
            "hostname-unique",
            "spec-accepted",
            "dns-address",
            "front-door-class",
            "front-door-object",
            "front-door-runs",
            "front-door-accepted",
            "front-door-leftovers",
            "datastore",
            "datastore-credentials",
            "quota",
            "images",
            "pods",
            "service-endpoints",
        ],
        judge: answers,
    },
    Check {
        id: "tls-passthrough",
        group: Group::Tls,
        what: "the tenant's own API server answers, unopened on the way",
        why: "something in front that opens TLS can read everything, and client certificates can't pass",
        follows: &[
            "keys",
            "hostname-unique",
            "spec-accepted",
            "dns-address",
            "front-door-passthrough",
            "front-door-leftovers",
        ],
        judge: own,
    },
    Check {
        id: "tls-names",
        group: Group::Tls,
        what: "the certificate names the hostname and kubernetes.default.svc",
        why: "clients refuse a certificate that does not name what they dialled",
        follows: &[],
        judge: names,
    },
    Check {
        id: "tls-expiry",
        group: Group::Tls,
        what: "the certificate is valid for more than a day",
        why: "nobody gets in with an expired certificate",
        follows: &["keys", "clock"],
        judge: expiry,
    },
    Check {
        id: "clock",
        group: Group::Tls,
        what: "this clock and the API server's agree",
        why: "certificates and tokens are valid by the clock; more than a minute apart they fail",
        follows: &[],
        judge: clock,
    },
];

fn with(e: &Evidence, judge: impl FnOnce(&Certificate) -> Verdict) -> Verdict {
    match &e.certificate {
        Ok(found) => judge(found),
        Err(_) => Verdict::Skip,
    }
}

fn answers(e: &Evidence) -> Verdict {
    if e.tcp.is_err() {
        return Verdict::Skip;
    }
    let look = || {
        let host = e.hostname.as_deref().unwrap_or("ADDRESS");
        format!(
            "openssl s_client -connect {host}:{} -servername {host} </dev/null",
            e.port
        )
    };
    match seen(&e.certificate, look) {
        Ok(found) => Verdict::fine(&found.subject),
        Err(verdict) => verdict,
    }
}

fn own(e: &Evidence) -> Verdict {
    with(e, |c| {
        if c.of_tenant_ca {
            return Verdict::fine(format!("{}, signed by the tenant's CA", c.subject));
        }
        let seen = if c.speaks_kubernetes {
            format!(
                "{} answers, which the tenant's CA did not sign, and passes requests on: it opens the TLS",
                c.subject
            )
        } else {
            format!(
                "{} answers, which the tenant's CA did not sign: something on the way opens TLS, or the name leads elsewhere",
                c.subject
            )
        };
        Verdict::problem(seen, unopened(e))
    })
}

/// A name that leads to a proxy can lead past it. Where it leads to the front door itself,
/// that one opens the TLS, and pods at least can do with it.
fn unopened(e: &Evidence) -> String {
    let elsewhere = |found: &Vec<_>| {
        !e.front_door_addresses.is_empty()
            && found.iter().all(|a| !e.front_door_addresses.contains(a))
    };
    if e.resolved.as_ref().is_ok_and(elsewhere) {
        return format!(
            "{} past what opens TLS, or switch that to passthrough",
            fix::records(e)
        );
    }
    let terminate = fix::patch(e, "{\"addons\":{\"tcpProxy\":{\"mode\":\"Terminate\"}}}");
    format!(
        "{terminate}   # where it must be opened; better: switch what is in front to TLS passthrough"
    )
}

fn names(e: &Evidence) -> Verdict {
    with(e, |c| {
        if !c.of_tenant_ca {
            return Verdict::Skip;
        }
        let service = "kubernetes.default.svc".to_owned();
        let whole = format!("{service}.{}", e.cluster_domain);
        let wanted = e.hostname.iter().cloned().chain([service, whole]);
        let missing: Vec<String> = wanted.filter(|w| !c.sans.contains(w)).collect();
        if missing.is_empty() {
            return Verdict::fine(format!("{} names", c.sans.len()));
        }
        rotate(
            e,
            Verdict::problem(format!("{} missing", missing.join(", ")), rotation(e)),
        )
    })
}

fn expiry(e: &Evidence) -> Verdict {
    with(e, |c| {
        if !c.of_tenant_ca {
            return Verdict::Skip;
        }
        match c.not_after.as_second() - e.now.as_second() {
            left if left <= 0 => rotate(
                e,
                Verdict::problem(format!("expired at {}", c.not_after), rotation(e)),
            ),
            left if left < SOON => rotate(
                e,
                Verdict::warning(format!("ends at {}", c.not_after), rotation(e)),
            ),
            left => Verdict::fine(format!("{} days left", left / 86_400)),
        }
    })
}

fn clock(e: &Evidence) -> Verdict {
    match e.clock_skew {
        Err(_) => Verdict::Skip,
        Ok(skew) if skew.abs() <= APART => Verdict::fine(format!("{} s apart", skew.abs())),
        Ok(skew) => {
            let word = if skew > 0 { "ahead of" } else { "behind" };
            Verdict::problem(
                format!("this machine is {} s {word} the API server", skew.abs()),
                "timedatectl set-ntp true   # on the machine whose clock is wrong",
            )
        }
    }
}

fn rotation(e: &Evidence) -> String {
    let anew = || {
        let (namespace, name) = (e.namespace(), e.name());
        format!(
            "kubectl annotate secret -n {namespace} {name}-api-server-certificate {ROTATE}= --overwrite"
        )
    };
    fix::repaired(e, anew)
}

fn rotate(e: &Evidence, found: Verdict) -> Verdict {
    found.safely(
        e,
        Remedy {
            side: Side::Management,
            api_version: "v1",
            kind: "Secret",
            namespace: e.namespace().to_owned(),
            name: format!("{}-api-server-certificate", e.name()),
            act: Act::Annotate(ROTATE, String::new()),
        },
    )
}
