use jiff::Timestamp;

use super::*;
use crate::evidence::{Addon, Certificate, Condition, FrontDoor, Inside, Slice};

fn healthy() -> Evidence {
    let up = || Addon {
        exists: true,
        desired: 1,
        ready: 1,
    };
    Evidence {
        tenant: "tenants/t1".into(),
        now: Timestamp::from_second(1_000_000).unwrap(),
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
        }),
        ready: Ok(()),
        front_door: Some(Ok(FrontDoor {
            kind: "Ingress".into(),
            object_exists: true,
            class: Some(("steward".into(), true)),
            passthrough: true,
            accepted: None,
            leftovers: Vec::new(),
        })),
        service_endpoints: Ok(2),
        unready_pods: Ok(Vec::new()),
        datastore: Ok(("default".into(), Vec::new())),
        reconciler_off: Ok(true),
        inside: Ok(Inside {
            version: "v1.36.3".into(),
            nodes: vec![("w1".into(), "v1.36.3".into(), true)],
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

/// One fault and the check that must name it first.
#[test]
fn each_fault_is_named_first_with_a_fix() {
    type Break = fn(&mut Evidence);
    let cases: &[(&str, Break)] = &[
        ("hostname-unique", |e| e.rivals.push("tenants/t0".into())),
        ("dns-resolves", |e| {
            e.resolved = Err(Unseen::Failed("no such host".into()))
        }),
        ("dns-address", |e| {
            e.resolved = Ok(vec!["192.0.2.99".parse().unwrap()])
        }),
        ("tcp-connect", |e| {
            e.tcp = Err(Unseen::Failed("connection refused".into()))
        }),
        ("front-door-class", |e| {
            front(e).class = Some(("nobody".into(), false))
        }),
        ("front-door-object", |e| front(e).object_exists = false),
        ("front-door-passthrough", |e| front(e).passthrough = false),
        ("front-door-accepted", |e| front(e).accepted = Some(false)),
        ("front-door-leftovers", |e| {
            front(e).leftovers.push("ingressroutetcp/t1".into())
        }),
        ("tls-passthrough", |e| cert(e).of_tenant_ca = false),
        ("tls-names", |e| {
            cert(e).sans.retain(|s| s != "t1.example.com")
        }),
        ("tls-expiry", |e| {
            cert(e).not_after = Timestamp::from_second(1).unwrap()
        }),
        ("clock", |e| e.clock_skew = Ok(3600)),
        ("datastore", |e| {
            e.datastore = Err(Unseen::Failed("does not answer".into()))
        }),
        ("pods", |e| {
            e.unready_pods = Ok(vec!["t1-abc: kube-apiserver ErrImagePull".into()])
        }),
        ("service-endpoints", |e| e.service_endpoints = Ok(0)),
        ("endpoint-reconciler", |e| e.reconciler_off = Ok(false)),
        ("kubernetes-endpointslice", |e| {
            within(e).slice = Some(Slice {
                addresses: vec!["10.0.0.1".into()],
                port: Some(6443),
            })
        }),
        ("tcp-proxy", |e| within(e).tcp_proxy.ready = 0),
        ("konnectivity", |e| within(e).konnectivity.ready = 0),
        ("kube-proxy-server", |e| {
            within(e).kube_proxy_server = Some("https://old:6443".into())
        }),
        ("kubeadm-objects", |e| {
            within(e)
                .missing_kubeadm
                .push("ConfigMap kube-system/kubeadm-config".into())
        }),
    ];
    for (check, fault) in cases {
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
