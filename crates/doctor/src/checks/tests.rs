use jiff::Timestamp;

use self::healthy::healthy;
use super::*;
use crate::evidence::{Addon, Certificate, Condition, FrontDoor, Inside, Member, Rival, Slice};

mod healthy;

fn first(evidence: &Evidence) -> Finding {
    run(evidence).into_iter().next().unwrap()
}

#[test]
fn a_healthy_tenant_has_nothing_to_complain_about() {
    let findings = run(&healthy());
    assert!(
        findings.iter().all(|f| f.severity == Severity::Fine),
        "{findings:#?}"
    );
    assert!(findings.len() > 20);
}

type Break = fn(&mut Evidence);

/// One fault and the check that must name it first.
const FAULTS: &[(&str, Break)] = &[
    ("keys", |e| {
        e.conditions.push(Condition {
            kind: "CertificatesReady".into(),
            status: "False".into(),
            reason: "KeyLost".into(),
            message: "Secret tenants/t1-ca: is gone".into(),
        });
        cert(e).of_tenant_ca = false;
        e.admitted = Some(false);
        e.ready = Err(Unseen::Failed("401".into()));
    }),
    ("hostname-unique", |e| {
        e.rivals.push(Rival {
            tenant: "tenants/t0".into(),
            holds: true,
        });
        cert(e).of_tenant_ca = false;
    }),
    ("dns-resolves", |e| {
        e.resolved = Err(Unseen::Failed("no such host".into()));
    }),
    ("dns-address", |e| {
        e.resolved = Ok(vec!["192.0.2.99".parse().unwrap()]);
        e.tcp = Err(Unseen::Failed("refused".into()));
        e.certificate = Err(Unseen::NotLooked("no connection".into()));
    }),
    ("tls-passthrough", |e| {
        e.resolved = Ok(vec!["192.0.2.99".parse().unwrap()]);
        cert(e).of_tenant_ca = false;
    }),
    ("front-door-runs", |e| {
        front(e).gateway.as_mut().unwrap().ready = 0;
        e.tcp = Err(Unseen::Failed("refused".into()));
    }),
    ("operator", |e| e.operator.as_mut().unwrap().ready = 0),
    ("quota", |e| {
        e.refused_pods = Some("exceeded quota: small, requested: pods=1".into());
        e.service_endpoints = Ok(0);
        e.certificate = Err(Unseen::Failed("handshake".into()));
    }),
    ("images", |e| {
        e.missing_images
            .push("registry.k8s.io/kube-apiserver:v1.99.0: ErrImagePull".into());
        e.unready_pods = Ok(vec!["t1-abc: kube-apiserver ErrImagePull".into()]);
    }),
    ("datastore-credentials", |e| {
        e.datastore_credentials = Err(Unseen::Failed("signed by another CA".into()));
    }),
    ("admin-credentials", |e| {
        e.admitted = Some(false);
        e.ready = Err(Unseen::Failed("401".into()));
    }),
    ("kubelets-reached", |e| {
        within(e).kubelets[0].outcome = Err("No agent available".into());
    }),
    ("node-clocks", |e| {
        within(e).nodes[0].clock_ahead = Some(3600);
    }),
    ("tcp-proxy", |e| {
        within(e).tcp_proxy.missing_on.push("w1".into());
    }),
    ("kubernetes-endpointslice", |e| {
        within(e).other_slices.push("foreign".into());
    }),
    ("tcp-connect", |e| {
        e.tcp = Err(Unseen::Failed("connection refused".into()));
    }),
    ("front-door-class", |e| {
        front(e).class = Some(("nobody".into(), false));
    }),
    ("front-door-object", |e| front(e).object_exists = false),
    ("front-door-passthrough", |e| front(e).passthrough = false),
    ("front-door-accepted", |e| front(e).accepted = Some(false)),
    ("front-door-leftovers", |e| {
        front(e).leftovers.push("ingressroutetcp/t1".into());
    }),
    ("tls-passthrough", |e| cert(e).of_tenant_ca = false),
    ("tls-names", |e| {
        cert(e).sans.retain(|s| s != "t1.example.com");
    }),
    ("tls-expiry", |e| {
        cert(e).not_after = Timestamp::from_second(1).unwrap();
    }),
    ("clock", |e| e.clock_skew = Ok(3600)),
    ("datastore", |e| {
        e.datastore
            .as_mut()
            .unwrap()
            .unready
            .push("default-0: not ready".into());
        e.unready_pods = Ok(vec!["t1-abc: kube-apiserver not ready".into()]);
        e.service_endpoints = Ok(0);
        e.certificate = Err(Unseen::Failed("the front door ended the handshake".into()));
        e.ready = Err(Unseen::Failed("no answer".into()));
        e.inside = Err(Unseen::NotLooked("no answer".into()));
    }),
    ("pods", |e| {
        e.unready_pods = Ok(vec!["t1-abc: kube-apiserver CrashLoopBackOff".into()]);
        e.service_endpoints = Ok(0);
    }),
    ("service-endpoints", |e| e.service_endpoints = Ok(0)),
    ("endpoint-reconciler", |e| e.reconciler_off = Ok(false)),
    ("kubernetes-endpointslice", |e| {
        within(e).slice = Some(Slice {
            addresses: vec!["10.0.0.1".into()],
            port: Some(6443),
        });
    }),
    ("tcp-proxy", |e| within(e).tcp_proxy.ready = 0),
    ("konnectivity", |e| within(e).konnectivity.ready = 0),
    ("kube-proxy-server", |e| {
        within(e).kube_proxy_server = Some("https://old:6443".into());
    }),
    ("kubeadm-objects", |e| {
        within(e)
            .missing_kubeadm
            .push("ConfigMap kube-system/kubeadm-config".into());
    }),
    ("management", |e| {
        e.given_up.push("the datastore".into());
        e.datastore = Err(Unseen::NotLooked("the datastore took too long".into()));
    }),
    ("deleting", |e| {
        e.deleting = Some((600, vec!["finalizer.steward.butlerlabs.dev".into()]));
    }),
    ("tls-names", |e| {
        e.cluster_domain = "corp.internal".into();
    }),
    ("datastore", |e| {
        member(e).health = Some(Err("no leader".into()));
        e.ready = Err(Unseen::Failed("no answer".into()));
    }),
    ("datastore-latency", |e| member(e).synced_in = Some(1500)),
    ("datastore-latency", |e| member(e).synced_in = Some(200)),
    ("datastore-latency", |e| member(e).answered_in = 1200),
    ("datastore-space", |e| member(e).size = 96),
    ("datastore-space", |e| member(e).size = 85),
    ("datastore-space", |e| {
        member(e).health = Some(Err("ALARM NOSPACE".into()));
        e.ready = Err(Unseen::Failed("500".into()));
    }),
    ("konnectivity-connections", |e| {
        e.konnectivity_servers[1].connected = 0;
        within(e).kubelets[0].outcome = Err("no answer".into());
    }),
    ("konnectivity-connections", |e| {
        within(e).agents[0].connected = 1;
    }),
    ("cloud-provider", |e| {
        within(e).nodes[0].uninitialized = true;
    }),
    ("endpoint-told", |e| {
        within(e).told[0].endpoint = "old.example.com:443".into();
    }),
    ("endpoint-told", |e| {
        e.admin_endpoint = Some("old.example.com:443".into());
    }),
    ("tcp-proxy-trust", |e| {
        within(e).proxy_trust = Some("another CA".into());
    }),
    ("inside-leftovers", |e| {
        within(e)
            .leftovers
            .push("daemonset/steward-tcp-proxy".into());
    }),
    ("extensions", |e| {
        within(e)
            .orphaned
            .push("v1.metrics.k8s.io: no endpoints".into());
    }),
    ("version-skew", |e| {
        within(e).nodes[0].version = "v1.37.0".into();
    }),
    ("version-skew", |e| {
        within(e).nodes[0].version = "v1.32.9".into();
    }),
    ("endpoint-reconciler", |e| {
        e.reconciler_off = Ok(false);
        e.tcp_proxy = None;
        within(e).tcp_proxy = Addon::default();
    }),
    // Nobody gets in by name, but past the door everything is seen to be well.
    ("front-door-runs", |e| {
        front(e).gateway.as_mut().unwrap().ready = 0;
        e.tcp = Err(Unseen::Failed("refused".into()));
        e.certificate = Err(Unseen::NotLooked("no connection".into()));
        e.past_the_door = true;
    }),
];

#[test]
fn each_fault_is_named_first_with_a_fix() {
    for (check, fault) in FAULTS {
        let mut evidence = healthy();
        fault(&mut evidence);
        let found = first(&evidence);
        assert_eq!(found.check, *check, "{found:#?}");
        assert!(found.severity > Severity::Fine && found.fix.is_some() && found.why.is_some());
    }
}

fn front(e: &mut Evidence) -> &mut FrontDoor {
    e.front_door.as_mut().unwrap().as_mut().unwrap()
}

fn member(e: &mut Evidence) -> &mut Member {
    &mut e.datastore.as_mut().unwrap().members[0]
}

fn cert(e: &mut Evidence) -> &mut Certificate {
    e.certificate.as_mut().unwrap()
}

fn within(e: &mut Evidence) -> &mut Inside {
    e.inside.as_mut().unwrap()
}

#[test]
fn what_could_not_be_looked_at_is_not_called_broken() {
    let mut evidence = healthy();
    evidence.resolved = Err(Unseen::NotLooked("run from outside".into()));
    assert!(run(&evidence).iter().all(|f| f.severity == Severity::Fine));
}

#[test]
fn every_check_has_a_name_of_its_own_and_words_find_it() {
    let mut ids: Vec<_> = all().map(|c| c.id).collect();
    ids.sort_unstable();
    let count = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), count);
    let found: Vec<_> = crate::explain("x509: certificate signed by unknown authority")
        .iter()
        .map(|c| c.id)
        .collect();
    assert!(found.contains(&"tls-passthrough"), "{found:?}");
}

#[test]
fn what_explains_another_problem_comes_before_it_and_is_named() {
    let mut evidence = healthy();
    evidence.service_endpoints = Ok(0);
    evidence.certificate = Err(Unseen::Failed("the front door ended the handshake".into()));
    let findings = run(&evidence);
    assert_eq!(findings[0].check, "service-endpoints");
    assert_eq!(
        (findings[1].check, &findings[1].follows_from),
        ("tls-answers", &vec!["service-endpoints"])
    );
}

#[test]
fn an_address_in_front_is_no_fault_while_the_tenant_itself_answers_there() {
    let mut evidence = healthy();
    evidence.resolved = Ok(vec!["198.51.100.7".parse().unwrap()]);
    assert_eq!(first(&evidence).severity, Severity::Fine);
}

#[test]
fn what_the_operator_says_is_not_kept_back_and_comes_after_its_cause() {
    let mut evidence = healthy();
    evidence.conditions.push(Condition {
        kind: "EndpointReady".into(),
        status: "False".into(),
        reason: "EndpointUnreachable".into(),
        message: "no answer".into(),
    });
    assert_eq!(first(&evidence).check, "operator-says");
    evidence.resolved = Err(Unseen::Failed("no such host".into()));
    assert_eq!(first(&evidence).check, "dns-resolves");
}

#[test]
fn a_pod_that_comes_up_beside_others_is_no_fault() {
    let mut evidence = healthy();
    evidence.unready_pods = Ok(vec!["t1-abc: kube-apiserver ContainerCreating".into()]);
    assert_eq!(first(&evidence).severity, Severity::Warning);
}

#[test]
fn an_api_server_that_waits_for_etcd_speaks_of_the_datastore() {
    let mut evidence = healthy();
    evidence.ready = Err(Unseen::Failed(
        "/readyz answers 500: not ready are etcd".into(),
    ));
    assert_eq!(first(&evidence).check, "datastore");
}

#[test]
fn a_younger_rival_is_only_worth_a_word() {
    let mut evidence = healthy();
    evidence.rivals.push(Rival {
        tenant: "tenants/t9".into(),
        holds: false,
    });
    assert_eq!(
        (first(&evidence).check, first(&evidence).severity),
        ("hostname-unique", Severity::Warning)
    );
}

#[test]
fn while_paused_the_fix_is_to_go_on_and_nothing_is_called_safe() {
    let mut evidence = healthy();
    within(&mut evidence).slice.as_mut().unwrap().addresses = vec!["10.0.0.1".into()];
    let found = first(&evidence);
    assert!(found.remedy.is_some() && found.fix.unwrap().contains("delete endpointslice"));
    evidence.operator.as_mut().unwrap().ready = 0;
    let slice = run(&evidence)
        .into_iter()
        .find(|f| f.check == "kubernetes-endpointslice");
    assert!(slice.unwrap().remedy.is_none(), "nobody would make it anew");
    evidence.operator.as_mut().unwrap().ready = 1;
    evidence.paused = true;
    let found = first(&evidence);
    assert!(found.remedy.is_none());
    assert!(
        found
            .fix
            .unwrap()
            .contains("steward.butlerlabs.dev/paused-")
    );
}

#[test]
fn what_explains_a_check_is_itself_a_check() {
    let ids: Vec<_> = all().map(|c| c.id).collect();
    for check in all() {
        for cause in check.follows {
            assert!(
                ids.contains(cause) && *cause != check.id,
                "{}: {cause}",
                check.id
            );
        }
    }
}
