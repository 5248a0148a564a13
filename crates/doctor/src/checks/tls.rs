//! Who answers on the tenant's name, and is its certificate good?

use super::names::{name, namespace};
use super::{Check, Verdict, seen};
use crate::evidence::{Certificate, Evidence};
use crate::finding::{Group, Severity};

/// A day: the operator renews long before.
const SOON: i64 = 24 * 3600;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "tls-passthrough",
        group: Group::Tls,
        what: "the tenant's own API server answers, unopened on the way",
        why: "something in front that opens TLS can read everything, and client certificates can't pass",
        judge: own,
    },
    Check {
        id: "tls-names",
        group: Group::Tls,
        what: "the certificate names the hostname and kubernetes.default.svc",
        why: "clients refuse a certificate that does not name what they dialled",
        judge: names,
    },
    Check {
        id: "tls-expiry",
        group: Group::Tls,
        what: "the certificate is valid for more than a day",
        why: "nobody gets in with an expired certificate",
        judge: expiry,
    },
    Check {
        id: "clock",
        group: Group::Tls,
        what: "this clock and the API server's agree",
        why: "certificates and tokens are valid by the clock; more than a minute apart they fail",
        judge: clock,
    },
];

fn with(e: &Evidence, judge: impl FnOnce(&Certificate) -> Verdict) -> Verdict {
    if e.tcp.is_err() {
        return Verdict::Skip;
    }
    match seen(&e.certificate, || {
        format!(
            "openssl s_client -connect {}:{} -servername {0} </dev/null",
            e.hostname.as_deref().unwrap_or("ADDRESS"),
            e.port
        )
    }) {
        Ok(found) => judge(found),
        Err(verdict) => verdict,
    }
}

fn own(e: &Evidence) -> Verdict {
    with(e, |c| {
        if c.of_tenant_ca {
            return Verdict::Fine(format!("{} signed by the tenant's CA", c.subject));
        }
        Verdict::Wrong(
            Severity::Problem,
            format!("{} answers, which the tenant's CA did not sign: something on the way opens TLS, or the name leads elsewhere", c.subject),
            "switch the front door to TLS passthrough; where that is impossible set spec.addons.tcpProxy.mode to Terminate".to_owned(),
        )
    })
}

fn names(e: &Evidence) -> Verdict {
    with(e, |c| {
        if !c.of_tenant_ca {
            return Verdict::Skip;
        }
        let wanted = e
            .hostname
            .iter()
            .map(String::as_str)
            .chain(["kubernetes.default.svc"]);
        let missing: Vec<&str> = wanted.filter(|w| !c.sans.iter().any(|s| s == w)).collect();
        if missing.is_empty() {
            return Verdict::Fine(format!("{} names", c.sans.len()));
        }
        Verdict::Wrong(
            Severity::Problem,
            format!("{} missing", missing.join(", ")),
            rotate(e),
        )
    })
}

fn expiry(e: &Evidence) -> Verdict {
    with(e, |c| {
        let left = c.not_after.as_second() - e.now.as_second();
        match left {
            l if l <= 0 => Verdict::Wrong(
                Severity::Problem,
                format!("expired at {}", c.not_after),
                rotate(e),
            ),
            l if l < SOON => Verdict::Wrong(
                Severity::Warning,
                format!("ends at {}", c.not_after),
                rotate(e),
            ),
            l => Verdict::Fine(format!("{} days left", l / 86_400)),
        }
    })
}

fn clock(e: &Evidence) -> Verdict {
    match e.clock_skew {
        Err(_) => Verdict::Skip,
        Ok(skew) if skew.abs() <= 60 => Verdict::Fine(format!("{skew} s apart")),
        Ok(skew) => Verdict::Wrong(
            Severity::Problem,
            format!("{skew} s apart"),
            "timedatectl set-ntp true   # on the machine whose clock is wrong".to_owned(),
        ),
    }
}

fn rotate(e: &Evidence) -> String {
    format!(
        "kubectl annotate secret -n {} {}-api-server-certificate certs.steward.butlerlabs.dev/rotate=",
        namespace(e),
        name(e)
    )
}
