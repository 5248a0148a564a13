//! Do the front door's objects exist, and does it answer?

use super::names::{name, namespace};
use super::{Check, Verdict, seen};
use crate::evidence::{Evidence, FrontDoor};
use crate::finding::{Group, Severity};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "front-door-class",
        group: Group::FrontDoor,
        what: "the class the tenant names is installed",
        why: "an Ingress of a class that nobody serves routes nothing",
        judge: class,
    },
    Check {
        id: "front-door-object",
        group: Group::FrontDoor,
        what: "the route's object exists",
        why: "the front door learns of a tenant from this object only",
        judge: object,
    },
    Check {
        id: "front-door-accepted",
        group: Group::FrontDoor,
        what: "the front door's controller has taken the route",
        why: "a route that is refused carries nothing",
        judge: accepted,
    },
    Check {
        id: "front-door-passthrough",
        group: Group::FrontDoor,
        what: "the route passes TLS through",
        why: "a front door that opens TLS breaks client certificates, kubeadm and the pods' tunnel",
        judge: passthrough,
    },
    Check {
        id: "front-door-leftovers",
        group: Group::FrontDoor,
        what: "no objects of another mode are left",
        why: "two objects for one name make it a matter of chance which is used",
        judge: leftovers,
    },
    Check {
        id: "tcp-connect",
        group: Group::FrontDoor,
        what: "the endpoint accepts connections",
        why: "nothing else can work before this does",
        judge: tcp,
    },
];

fn with(e: &Evidence, judge: impl FnOnce(&FrontDoor) -> Verdict) -> Verdict {
    let Some(front_door) = &e.front_door else {
        return Verdict::Skip;
    };
    match seen(front_door, || {
        format!("kubectl get events -n {}", namespace(e))
    }) {
        Ok(found) => judge(found),
        Err(verdict) => verdict,
    }
}

fn class(e: &Evidence) -> Verdict {
    with(e, |f| {
        match &f.class {
        None => Verdict::Skip,
        Some((class, true)) => Verdict::Fine(format!("class {class} is there")),
        Some((class, false)) => Verdict::Wrong(
            Severity::Problem,
            format!("class {class} is not installed"),
            "kubectl get ingressclass,gatewayclass   # install the controller, or name a class that is there".to_owned(),
        ),
    }
    })
}

fn object(e: &Evidence) -> Verdict {
    with(e, |f| {
        if f.object_exists {
            return Verdict::Fine(format!("{} {} is there", f.kind, name(e)));
        }
        Verdict::Wrong(
            Severity::Problem,
            format!("there is no {} {}", f.kind, name(e)),
            "kubectl logs -n steward-system -l app.kubernetes.io/component=controller-manager --tail=50".to_owned(),
        )
    })
}

fn accepted(e: &Evidence) -> Verdict {
    with(e, |f| match f.accepted {
        None => Verdict::Skip,
        Some(true) => Verdict::Fine("accepted".to_owned()),
        Some(false) => Verdict::Wrong(
            Severity::Problem,
            format!("{} {} is not accepted", f.kind, name(e)),
            format!(
                "kubectl describe {} -n {} {}",
                f.kind.to_lowercase(),
                namespace(e),
                name(e)
            ),
        ),
    })
}

fn passthrough(e: &Evidence) -> Verdict {
    with(e, |f| {
        if !f.object_exists {
            Verdict::Skip
        } else if f.passthrough {
            Verdict::Fine("asked for in the controller's own words".to_owned())
        } else {
            Verdict::Wrong(
                Severity::Problem,
                format!("{} {} does not ask for TLS passthrough", f.kind, name(e)),
                format!(
                    "kubectl delete {} -n {} {}   # the operator writes it anew",
                    f.kind.to_lowercase(),
                    namespace(e),
                    name(e)
                ),
            )
        }
    })
}

fn leftovers(e: &Evidence) -> Verdict {
    with(e, |f| {
        if f.leftovers.is_empty() {
            return Verdict::Fine("none".to_owned());
        }
        let fix = f
            .leftovers
            .iter()
            .map(|o| format!("kubectl delete -n {} {o}", namespace(e)));
        Verdict::Wrong(
            Severity::Warning,
            f.leftovers.join(", "),
            fix.collect::<Vec<_>>().join("; "),
        )
    })
}

fn tcp(e: &Evidence) -> Verdict {
    match seen(&e.tcp, || {
        "kubectl get pods,services -A -l app.kubernetes.io/component=gateway   # does the front door run, and on this port?".to_owned()
    }) {
        Ok(()) => Verdict::Fine("it does".to_owned()),
        Err(verdict) => verdict,
    }
}
