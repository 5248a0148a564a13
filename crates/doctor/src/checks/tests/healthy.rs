//! A tenant that is well in every way, to be broken in one.

use jiff::Timestamp;

use crate::evidence::{
    Addon, Certificate, Condition, Datastore, Evidence, FrontDoor, Inside, Member, Node, Reached,
    Slice, Told, Tunnel, Workload,
};

fn tunnel(pod: &str) -> Tunnel {
    Tunnel {
        pod: pod.into(),
        connected: 1,
    }
}

pub(super) fn healthy() -> Evidence {
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
        deleting: None,
        given_up: Vec::new(),
        cluster_domain: "cluster.local".into(),
        admin_endpoint: Some("t1.example.com:443".into()),
        past_the_door: false,
        konnectivity_servers: vec![tunnel("t1-a"), tunnel("t1-b")],
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
            sans: vec![
                "t1.example.com".into(),
                "kubernetes.default.svc".into(),
                "kubernetes.default.svc.cluster.local".into(),
            ],
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
            members: vec![Member {
                pod: "default-etcd-0".into(),
                health: Some(Ok(())),
                answered_in: 3,
                synced_in: Some(2),
                size: 10,
                quota: 100,
            }],
            ..Datastore::default()
        }),
        reconciler_off: Ok(true),
        inside: Ok(inside()),
        tcp_proxy: Some("240.0.0.1".into()),
        konnectivity: true,
        clock_skew: Ok(0),
    }
}

fn inside() -> Inside {
    let up = || Addon {
        exists: true,
        desired: 1,
        ready: 1,
        missing_on: Vec::new(),
    };
    Inside {
        version: "v1.36.3".into(),
        nodes: vec![Node {
            name: "w1".into(),
            version: "v1.36.3".into(),
            ready: true,
            clock_ahead: Some(0),
            uninitialized: false,
        }],
        agents: vec![Tunnel {
            pod: "agent-a".into(),
            connected: 2,
        }],
        told: vec![Told {
            place: "ConfigMap kube-public/cluster-info".into(),
            endpoint: "t1.example.com:443".into(),
        }],
        proxy_trust: None,
        leftovers: Vec::new(),
        orphaned: Vec::new(),
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
    }
}
