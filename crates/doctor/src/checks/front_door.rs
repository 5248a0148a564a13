//! Do the front door's objects exist, and does it answer?

use super::{Check, Verdict, fix, seen};
use crate::evidence::{Evidence, FrontDoor};
use crate::finding::{Act, Group, Remedy, Side};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "front-door-class",
        group: Group::FrontDoor,
        what: "the class the tenant names is installed",
        why: "an Ingress of a class that nobody serves routes nothing",
        follows: &[],
        judge: class,
    },
    Check {
        id: "front-door-object",
        group: Group::FrontDoor,
        what: "the route's object exists",
        why: "the front door learns of a tenant from this object only",
        follows: &[
            "hostname-unique",
            "spec-accepted",
            "operator",
            "datastore",
            "front-door-class",
            "quota",
            "images",
            "pods",
        ],
        judge: object,
    },
    Check {
        id: "front-door-runs",
        group: Group::FrontDoor,
        what: "the front door runs",
        why: "every tenant behind it is cut off when it does not",
        follows: &[],
        judge: runs,
    },
    Check {
        id: "front-door-accepted",
        group: Group::FrontDoor,
        what: "the front door's controller has taken the route",
        why: "a route that is refused carries nothing",
        follows: &["front-door-class", "front-door-runs"],
        judge: accepted,
    },
    Check {
        id: "front-door-passthrough",
        group: Group::FrontDoor,
        what: "the route passes TLS through",
        why: "a front door that opens TLS breaks client certificates, kubeadm and the pods' tunnel",
        follows: &[],
        judge: passthrough,
    },
    Check {
        id: "front-door-leftovers",
        group: Group::FrontDoor,
        what: "no other route leads the same name elsewhere",
        why: "two objects for one name make it a matter of chance which is used",
        follows: &[],
        judge: leftovers,
    },
    Check {
        id: "tcp-connect",
        group: Group::FrontDoor,
        what: "the endpoint accepts connections",
        why: "nothing else can work before this does",
        follows: &[
            "dns-address",
            "front-door-runs",
            "service-endpoints",
            "pods",
            "images",
            "quota",
        ],
        judge: tcp,
    },
];

fn with(e: &Evidence, judge: impl FnOnce(&FrontDoor) -> Verdict) -> Verdict {
    match &e.front_door {
        Some(Ok(found)) => judge(found),
        _ => Verdict::Skip,
    }
}

fn class(e: &Evidence) -> Verdict {
    with(e, |f| match &f.class {
        None => Verdict::Skip,
        Some((class, true)) => Verdict::fine(format!("class {class} is there")),
        Some((class, false)) if f.ours => Verdict::problem(
            format!("IngressClass {class} is not there"),
            format!(
                "echo '{{\"apiVersion\":\"networking.k8s.io/v1\",\"kind\":\"IngressClass\",\"metadata\":{{\"name\":\"{class}\"}},\"spec\":{{\"controller\":\"steward.butlerlabs.dev/gateway\"}}}}' | kubectl apply -f -"
            ),
        ),
        Some((class, false)) => Verdict::problem(
            format!("class {class} is not there"),
            "kubectl get ingressclass,gatewayclass   # install the controller, or name a class that is there",
        ),
    })
}

/// The first check on the objects also tells that they could not be read.
fn object(e: &Evidence) -> Verdict {
    let Some(front_door) = &e.front_door else {
        return Verdict::Skip;
    };
    match seen(front_door, fix::operator_log) {
        Err(verdict) => verdict,
        Ok(f) if f.object_exists => Verdict::fine(format!("{} {} is there", f.kind, e.name())),
        Ok(f) => Verdict::problem(
            format!("there is no {} {}", f.kind, e.name()),
            fix::repaired(e, fix::operator_log),
        ),
    }
}

fn runs(e: &Evidence) -> Verdict {
    with(e, |f| match &f.gateway {
        None => Verdict::Skip,
        Some(w) if w.ready == 0 => Verdict::problem(
            format!(
                "{} in {}: 0 of {} pods ready",
                w.object, w.namespace, w.desired
            ),
            fix::start(w, 2),
        ),
        Some(w) if w.ready < w.desired => Verdict::warning(
            format!(
                "{} in {}: {} of {} pods ready",
                w.object, w.namespace, w.ready, w.desired
            ),
            fix::start(w, 2),
        ),
        Some(w) => Verdict::fine(format!("{} of {} pods ready", w.ready, w.desired)),
    })
}

fn accepted(e: &Evidence) -> Verdict {
    with(e, |f| match f.accepted {
        None => Verdict::Skip,
        Some(true) => Verdict::fine("accepted"),
        Some(false) => Verdict::problem(
            format!("{} {} is not accepted", f.kind, e.name()),
            format!(
                "kubectl describe {} -n {} {}",
                f.kind.to_lowercase(),
                e.namespace(),
                e.name()
            ),
        ),
    })
}

fn passthrough(e: &Evidence) -> Verdict {
    with(e, |f| {
        if !f.object_exists {
            return Verdict::Skip;
        }
        if f.passthrough {
            return Verdict::fine("asked for in the controller's own words");
        }
        let object = f.kind.to_lowercase();
        let anew = || {
            format!(
                "kubectl delete {object} -n {} {}   # the operator writes it anew",
                e.namespace(),
                e.name()
            )
        };
        let found = Verdict::problem(
            format!("{} {} does not ask for TLS passthrough", f.kind, e.name()),
            fix::repaired(e, anew),
        );
        let (api_version, kind) = match f.kind.as_str() {
            "Ingress" => ("networking.k8s.io/v1", "Ingress"),
            "IngressRouteTCP" => ("traefik.io/v1alpha1", "IngressRouteTCP"),
            _ => return found,
        };
        found.safely(
            e,
            Remedy {
                side: Side::Management,
                api_version,
                kind,
                namespace: e.namespace().to_owned(),
                name: e.name().to_owned(),
                act: Act::Delete,
            },
        )
    })
}

fn leftovers(e: &Evidence) -> Verdict {
    with(e, |f| {
        if f.leftovers.is_empty() {
            return Verdict::fine("none");
        }
        let commands: Vec<String> = f
            .leftovers
            .iter()
            .map(|o| format!("kubectl delete {o}"))
            .collect();
        Verdict::problem(
            format!("{} leads the same name elsewhere", f.leftovers.join(", ")),
            commands.join("; "),
        )
    })
}

fn tcp(e: &Evidence) -> Verdict {
    let look = || {
        "kubectl get pods,services -A -l app.kubernetes.io/component=gateway   # does the front door run, and on this port?".to_owned()
    };
    match seen(&e.tcp, look) {
        Ok(()) => Verdict::fine("it does"),
        Err(verdict) => verdict,
    }
}
