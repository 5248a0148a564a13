use jiff::Timestamp;

use super::*;
use crate::evidence::{
    Addon, Certificate, Condition, Datastore, FrontDoor, Inside, Node, Reached, Rival, Slice,
    Workload,
};

fn healthy() -> Evidence {
    let up = || Addon {
        exists: true,
        desired: 1,
        ready: 1,
        missing_on: Vec::new(),
    };
    let workload = |object: &str| Workload {
        object: object.into(),
        namespace: "steward-system".into(),
        desired: 1,
        ready: 1,
    };
    Evidence {
        tenant: "tenants/t1".into(),
        now: Timestamp::from_second(1_000_000).unwrap(),
        paused: false,
        installed_version: Some("v1.36.3".into()),
        operator: Ok(workload("deployment/steward")),
        admitted: Some(true),
        missing_images: Vec::new(),
        refused_pods: None,
        datastore_credentials: Ok(()),
        conditions: vec![Condition {
            kind: "Accepted".into(),
            status: "True".into(),
            ..Condition::default()
        }],
        hostname: Some("t1.example.com".into()),
        port: 443,
        endpoint: Some("t1.example.com:443".into()),
        rivals: Vec::new(),
        front_door_addresses: vec!["192.0.2.10".parse().unwrap()],
        resolved: Ok(vec!["192.0.2.10".parse().unwrap()]),
        tcp: Ok(()),
        certificate: Ok(Certificate {
            subject: "CN=kube-apiserver".into(),
            sans: vec!["t1.example.com".into(), "kubernetes.default.svc".into()],
            not_after: Timestamp::from_second(1_000_000 + 90 * 86_400).unwrap(),
            of_tenant_ca: true,
            speaks_kubernetes: true,
        }),
        ready: Ok(()),
        front_door: Some(Ok(FrontDoor {
            kind: "Ingress".into(),
            object_exists: true,
            class: Some(("steward".into(), true)),
            ours: true,
            gateway: Some(workload("deployment/steward-gateway")),
            passthrough: true,
            accepted: None,
            leftovers: Vec::new(),
        })),
        service_endpoints: Ok(2),
        unready_pods: Ok(Vec::new()),
        datastore: Ok(Datastore {
            name: "default".into(),
            ..Datastore::default()
        }),
        reconciler_off: Ok(true),
        inside: Ok(Inside {
            version: "v1.36.3".into(),
            nodes: vec![Node {
                name: "w1".into(),
                version: "v1.36.3".into(),
                ready: true,
                clock_ahead: Some(0),
            }],
            other_slices: Vec::new(),
            kube_proxy: up(),
            kubelets: vec![Reached {
                node: "w1".into(),
                outcome: Ok(()),
            }],
            slice: Some(Slice {
                addresses: vec!["240.0.0.1".into()],
                port: Some(6443),
            }),
            missing_kubeadm: Vec::new(),
            kube_proxy_server: Some("https://t1.example.com:443".into()),
            konnectivity: up(),
            tcp_proxy: up(),
            coredns: up(),
        }),
        tcp_proxy: Some("240.0.0.1".into()),
        konnectivity: true,
        clock_skew: Ok(0),
    }
}

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
    ("hostname-unique", |e| {
        e.rivals.push(Rival {
            tenant: "tenants/t0".into(),
            older: true,
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
        older: false,
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
