//! kube-proxy on every node, as kubeadm installs it.

use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use serde_json::{Value, json};
use steward_api::{TenantControlPlane, tenant_control_plane::ImageOverride};

use super::{
    Inputs, SYSTEM, labelled, make, named,
    rbac::{account, binding, joining, reader},
    yaml,
};
use crate::{
    names::KUBE_PROXY_ANNOTATION,
    object::{Kind, Object},
    problem::Problem,
    secret::checksum,
    validate::Network,
};

const BECAUSE: &str = "Services work on nodes through it";
const APP: (&str, &str) = ("k8s-app", "kube-proxy");

/// What is wrong with the user's changes to the configuration, if anything.
pub(crate) fn check(tenant: &TenantControlPlane) -> Option<Problem> {
    let text = tenant
        .metadata
        .annotations
        .as_ref()?
        .get(KUBE_PROXY_ANNOTATION)?;
    let fault = match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(_)) => return None,
        Ok(_) => "it is not an object".to_owned(),
        Err(error) => error.to_string(),
    };
    let field = format!("metadata.annotations[{KUBE_PROXY_ANNOTATION}]");
    let message = format!(
        "is no JSON merge patch of a KubeProxyConfiguration ({fault}): write it like \
         {{\"mode\":\"iptables\"}}"
    );
    Some(Problem::invalid(field, message))
}

pub(super) fn objects(inputs: &Inputs<'_>, addon: &ImageOverride) -> Vec<Object> {
    let tenant = inputs.tenant;
    let service_account = ServiceAccount {
        metadata: named(SYSTEM, "kube-proxy"),
        ..ServiceAccount::default()
    };
    let configuration = configuration(inputs);
    let data = [
        ("config.conf".to_owned(), yaml(&configuration)),
        (
            "kubeconfig.conf".to_owned(),
            yaml(&kubeconfig(&inputs.ways.active.url())),
        ),
    ];
    let config = ConfigMap {
        metadata: labelled(named(SYSTEM, "kube-proxy"), &[("app", "kube-proxy")]),
        data: Some(data.clone().into()),
        ..ConfigMap::default()
    };
    let registry = &tenant
        .spec
        .control_plane
        .deployment
        .registry_settings
        .registry;
    let repository = addon.image_repository.as_ref().unwrap_or(registry);
    let tag = addon
        .image_tag
        .clone()
        .unwrap_or_else(|| tenant.version.tag());
    let mut all = vec![
        make(Kind::ServiceAccount, BECAUSE, &service_account),
        binding(
            "kubeadm:node-proxier",
            "system:node-proxier",
            account("kube-proxy"),
        ),
    ];
    all.extend(reader(SYSTEM, "kube-proxy", "kube-proxy", vec![joining()]));
    all.push(make(Kind::ConfigMap, BECAUSE, &config));
    all.push(daemon_set(
        &format!("{repository}/kube-proxy:{tag}"),
        &checksum(&data),
        probe(&configuration).as_ref(),
    ));
    all
}

fn kubeconfig(server: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "default", "cluster": {
            "certificate-authority": "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
            "server": server,
        }}],
        "contexts": [{"name": "default", "context": {
            "cluster": "default", "namespace": "default", "user": "default",
        }}],
        "current-context": "default",
        "users": [{"name": "default", "user": {
            "tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
        }}],
    })
}

/// kubeadm's configuration with two differences, both open to the user's merge patch:
/// nftables where it is stable, and the node's own limit of tracked connections (the
/// kernel sets it by memory; nodes that are containers can't change it).
fn configuration(inputs: &Inputs<'_>) -> Value {
    let tenant = inputs.tenant;
    let bind = if tenant
        .network
        .service_cidrs
        .iter()
        .any(|range| range.addr().is_ipv4())
    {
        "0.0.0.0"
    } else {
        "::"
    };
    let mode = if tenant.version.minor() >= 33 {
        "nftables"
    } else {
        ""
    };
    let mut config = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "bindAddress": bind,
        "clientConnection": {"kubeconfig": "/var/lib/kube-proxy/kubeconfig.conf"},
        "clusterCIDR": Network::join(&tenant.network.pod_cidrs),
        "conntrack": {"maxPerCore": 0},
        "mode": mode,
    });
    let annotations = inputs.observed.tenant.metadata.annotations.as_ref();
    let patch = annotations
        .and_then(|all| all.get(KUBE_PROXY_ANNOTATION))
        .and_then(|text| serde_json::from_str::<Value>(text).ok());
    if let Some(patch) = patch {
        json_patch::merge(&mut config, &patch);
    }
    config
}

/// Ready is one that has written its rules: the next node's is replaced only then. Where the
/// user moved its health port there is none.
fn probe(config: &Value) -> Option<Value> {
    config.get("healthzBindAddress").is_none().then(|| {
        json!({
            "httpGet": {"path": "/healthz", "port": 10256, "scheme": "HTTP"},
            "periodSeconds": 2,
        })
    })
}

fn daemon_set(image: &str, config: &str, probe: Option<&Value>) -> Object {
    let body = json!({
        "metadata": labelled(named(SYSTEM, "kube-proxy"), &[APP]),
        "spec": {
            "selector": {"matchLabels": {"k8s-app": "kube-proxy"}},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {
                "metadata": {
                    "labels": {"k8s-app": "kube-proxy"},
                    // kube-proxy reads its configuration once.
                    "annotations": {"steward.butlerlabs.dev/config": config},
                },
                "spec": {
                    "priorityClassName": "system-node-critical",
                    "hostNetwork": true,
                    "serviceAccountName": "kube-proxy",
                    "nodeSelector": {"kubernetes.io/os": "linux"},
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{
                        "name": "kube-proxy",
                        "image": image,
                        "imagePullPolicy": "IfNotPresent",
                        "command": [
                            "/usr/local/bin/kube-proxy",
                            "--config=/var/lib/kube-proxy/config.conf",
                            "--hostname-override=$(NODE_NAME)",
                        ],
                        "env": [{"name": "NODE_NAME", "valueFrom": {
                            "fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"},
                        }}],
                        "readinessProbe": probe,
                        "securityContext": {"privileged": true},
                        "volumeMounts": [
                            {"name": "kube-proxy", "mountPath": "/var/lib/kube-proxy"},
                            {"name": "xtables-lock", "mountPath": "/run/xtables.lock"},
                            {"name": "lib-modules", "mountPath": "/lib/modules", "readOnly": true},
                        ],
                    }],
                    "volumes": [
                        {"name": "kube-proxy", "configMap": {"name": "kube-proxy"}},
                        {"name": "xtables-lock", "hostPath": {
                            "path": "/run/xtables.lock", "type": "FileOrCreate",
                        }},
                        {"name": "lib-modules", "hostPath": {"path": "/lib/modules"}},
                    ],
                },
            },
        },
    });
    make(Kind::DaemonSet, BECAUSE, &body)
}
