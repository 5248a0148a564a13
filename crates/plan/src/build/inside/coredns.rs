//! CoreDNS, as kubeadm installs it.

use k8s_openapi::api::{
    core::v1::{ConfigMap, ServiceAccount},
    rbac::v1::ClusterRole,
};
use serde_json::json;
use steward_api::tenant_control_plane::ImageOverride;

use super::{
    SYSTEM, cluster_wide, labelled, make, named,
    rbac::{account, binding, rule},
};
use crate::{
    object::{Kind, Object},
    validate::Validated,
};

const BECAUSE: &str = "names inside the tenant are resolved by it";
const APP: (&str, &str) = ("k8s-app", "kube-dns");

pub(super) fn objects(tenant: &Validated, addon: &ImageOverride) -> Vec<Object> {
    let role = ClusterRole {
        metadata: cluster_wide("system:coredns"),
        rules: Some(vec![
            rule(
                &[""],
                &["endpoints", "services", "pods", "namespaces"],
                &["list", "watch"],
                &[],
            ),
            rule(
                &["discovery.k8s.io"],
                &["endpointslices"],
                &["list", "watch"],
                &[],
            ),
        ]),
        ..ClusterRole::default()
    };
    let service_account = ServiceAccount {
        metadata: named(SYSTEM, "coredns"),
        ..ServiceAccount::default()
    };
    let config = ConfigMap {
        metadata: named(SYSTEM, "coredns"),
        data: Some([("Corefile".to_owned(), corefile(&tenant.network.domain))].into()),
        ..ConfigMap::default()
    };
    vec![
        make(Kind::ServiceAccount, BECAUSE, &service_account),
        make(Kind::ClusterRole, BECAUSE, &role),
        binding("system:coredns", "system:coredns", account("coredns")),
        make(Kind::ConfigMap, BECAUSE, &config),
        deployment(tenant, addon),
        service(tenant),
    ]
}

/// As kubeadm's, without what only new versions of CoreDNS understand.
fn corefile(domain: &str) -> String {
    let lines = [
        ".:53 {".to_owned(),
        "    errors".into(),
        "    health {".into(),
        "       lameduck 5s".into(),
        "    }".into(),
        "    ready".into(),
        format!("    kubernetes {domain} in-addr.arpa ip6.arpa {{"),
        "       pods insecure".into(),
        "       fallthrough in-addr.arpa ip6.arpa".into(),
        "       ttl 30".into(),
        "    }".into(),
        "    prometheus :9153".into(),
        "    forward . /etc/resolv.conf {".into(),
        "       max_concurrent 1000".into(),
        "    }".into(),
        "    cache 30".into(),
        "    loop".into(),
        "    reload".into(),
        "    loadbalance".into(),
        "}\n".into(),
    ];
    lines.join("\n")
}

fn service(tenant: &Validated) -> Object {
    let metadata = labelled(
        named(SYSTEM, "kube-dns"),
        &[
            APP,
            ("kubernetes.io/cluster-service", "true"),
            ("kubernetes.io/name", "CoreDNS"),
        ],
    );
    let addresses: Vec<String> = tenant
        .network
        .dns_ips
        .iter()
        .map(ToString::to_string)
        .collect();
    let port = |name: &str, port: u16, protocol: &str| json!({"name": name, "port": port, "protocol": protocol, "targetPort": port});
    let mut body = json!({
        "metadata": metadata,
        "spec": {
            "clusterIP": addresses.first(),
            "selector": {"k8s-app": "kube-dns"},
            "ports": [
                port("dns", 53, "UDP"),
                port("dns-tcp", 53, "TCP"),
                port("metrics", 9153, "TCP"),
            ],
        },
    });
    body["metadata"]["annotations"] =
        json!({"prometheus.io/port": "9153", "prometheus.io/scrape": "true"});
    if addresses.len() == 2 && tenant.network.service_cidrs.len() == 2 {
        body["spec"]["clusterIPs"] = json!(addresses);
        body["spec"]["ipFamilyPolicy"] = json!("RequireDualStack");
    }
    make(Kind::Service, BECAUSE, &body)
}

fn deployment(tenant: &Validated, addon: &ImageOverride) -> Object {
    let repository = addon
        .image_repository
        .as_deref()
        .unwrap_or("registry.k8s.io/coredns");
    let tag = addon
        .image_tag
        .as_deref()
        .unwrap_or(tenant.version.coredns_tag());
    let port = |name: &str, number: u16, protocol: &str| json!({"name": name, "containerPort": number, "protocol": protocol});
    let mut tolerations = vec![
        json!({"key": "CriticalAddonsOnly", "operator": "Exists"}),
        json!({"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}),
    ];
    if !tenant.version.has_control_plane_taint() {
        tolerations.push(json!({"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}));
    }
    let body = json!({
        "metadata": labelled(named(SYSTEM, "coredns"), &[APP]),
        "spec": {
            "replicas": 2,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "selector": {"matchLabels": {"k8s-app": "kube-dns"}},
            "template": {
                "metadata": {"labels": {"k8s-app": "kube-dns"}},
                "spec": {
                    "priorityClassName": "system-cluster-critical",
                    "serviceAccountName": "coredns",
                    "affinity": {"podAntiAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [{
                            "weight": 100,
                            "podAffinityTerm": {
                                "labelSelector": {"matchExpressions": [{
                                    "key": "k8s-app", "operator": "In", "values": ["kube-dns"],
                                }]},
                                "topologyKey": "kubernetes.io/hostname",
                            },
                        }],
                    }},
                    "tolerations": tolerations,
                    "nodeSelector": {"kubernetes.io/os": "linux"},
                    "dnsPolicy": "Default",
                    "containers": [{
                        "name": "coredns",
                        "image": format!("{repository}/coredns:{tag}"),
                        "imagePullPolicy": "IfNotPresent",
                        "args": ["-conf", "/etc/coredns/Corefile"],
                        "resources": {
                            "limits": {"memory": "170Mi"},
                            "requests": {"cpu": "100m", "memory": "70Mi"},
                        },
                        "ports": [
                            port("dns", 53, "UDP"),
                            port("dns-tcp", 53, "TCP"),
                            port("metrics", 9153, "TCP"),
                            port("liveness-probe", 8080, "TCP"),
                            port("readiness-probe", 8181, "TCP"),
                        ],
                        "livenessProbe": {
                            "httpGet": {
                                "path": "/health", "port": "liveness-probe", "scheme": "HTTP",
                            },
                            "initialDelaySeconds": 60,
                            "timeoutSeconds": 5,
                            "successThreshold": 1,
                            "failureThreshold": 5,
                        },
                        "readinessProbe": {
                            "httpGet": {
                                "path": "/ready", "port": "readiness-probe", "scheme": "HTTP",
                            },
                        },
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
                            "readOnlyRootFilesystem": true,
                        },
                        "volumeMounts": [{
                            "name": "config-volume", "mountPath": "/etc/coredns", "readOnly": true,
                        }],
                    }],
                    "volumes": [{
                        "name": "config-volume",
                        "configMap": {
                            "name": "coredns",
                            "items": [{"key": "Corefile", "path": "Corefile"}],
                        },
                    }],
                },
            },
        },
    });
    make(Kind::Deployment, BECAUSE, &body)
}
