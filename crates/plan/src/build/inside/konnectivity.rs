//! Konnectivity's agents: the ends of the API server's way into the tenant.

use k8s_openapi::api::core::v1::ServiceAccount;
use serde_json::{Value, json};
use steward_api::{
    flags,
    tenant_control_plane::{Konnectivity, KonnectivityAgent, KonnectivityAgentMode},
};

use super::{
    Inputs, SYSTEM, labelled, make, named,
    rbac::{binding, user},
};
use crate::{
    names::KONNECTIVITY_ALPN,
    object::{Kind, Object},
};

const BECAUSE: &str = "the API server reaches nodes and pods through it";
const NAME: &str = "konnectivity-agent";
const APP: (&str, &str) = ("k8s-app", NAME);
const TOKENS: &str = "/var/run/secrets/tokens";

pub(super) fn objects(inputs: &Inputs<'_>, addon: &Konnectivity) -> Vec<Object> {
    let account = ServiceAccount {
        metadata: named(SYSTEM, NAME),
        ..ServiceAccount::default()
    };
    vec![
        make(Kind::ServiceAccount, BECAUSE, &account),
        binding(
            "system:konnectivity-server",
            "system:auth-delegator",
            user("system:konnectivity-server"),
        ),
        workload(inputs, &addon.agent),
    ]
}

fn workload(inputs: &Inputs<'_>, agent: &KonnectivityAgent) -> Object {
    let mut body = json!({
        "metadata": labelled(named(SYSTEM, NAME), &[APP]),
        "spec": {
            "selector": {"matchLabels": {"k8s-app": NAME}},
            "template": {
                "metadata": {"labels": {"k8s-app": NAME}},
                "spec": pod(inputs, agent),
            },
        },
    });
    match agent.mode {
        KonnectivityAgentMode::DaemonSet => make(Kind::DaemonSet, BECAUSE, &body),
        KonnectivityAgentMode::Deployment => {
            body["spec"]["replicas"] = json!(agent.replicas.unwrap_or(1));
            make(Kind::Deployment, BECAUSE, &body)
        }
    }
}

fn pod(inputs: &Inputs<'_>, agent: &KonnectivityAgent) -> Value {
    let version = agent.version.clone().filter(|version| !version.is_empty());
    let tag = version.unwrap_or_else(|| inputs.tenant.version.konnectivity_tag());
    let tolerations = agent.tolerations.as_ref().map_or_else(
        || json!([{"key": "CriticalAddonsOnly", "operator": "Exists"}]),
        |given| json!(given),
    );
    // Behind a shared front door the agents' way must not depend on the pod network's
    // name server, which itself waits for the API server.
    let host_network = agent.host_network;
    json!({
        "priorityClassName": "system-cluster-critical",
        "serviceAccountName": NAME,
        "hostNetwork": host_network,
        "dnsPolicy": "Default",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": tolerations,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [{
            "name": NAME,
            "image": format!("{}:{tag}", agent.image),
            "imagePullPolicy": "IfNotPresent",
            "command": ["/proxy-agent"],
            "args": args(inputs, agent),
            "resources": agent.resources.as_ref().map_or_else(
                || json!({"requests": {"cpu": "10m", "memory": "32Mi"}}),
                |given| json!(given),
            ),
            "livenessProbe": {
                "httpGet": {"path": "/healthz", "port": 8134, "scheme": "HTTP"},
                "initialDelaySeconds": 15,
                "timeoutSeconds": 15,
                "failureThreshold": 8,
            },
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": true,
            },
            "volumeMounts": [{"name": "konnectivity-agent-token", "mountPath": TOKENS}],
        }],
        "volumes": [{
            "name": "konnectivity-agent-token",
            "projected": {"sources": [{"serviceAccountToken": {
                "audience": "system:konnectivity-server",
                "expirationSeconds": 3600,
                "path": "konnectivity-agent-token",
            }}]},
        }],
    })
}

/// Ours, unless the user names the same flag: at the agent he may know better.
fn args(inputs: &Inputs<'_>, agent: &KonnectivityAgent) -> Vec<String> {
    let way = &inputs.ways.active;
    let mut ours = vec![
        ("--admin-server-port", "8133".to_owned()),
        (
            "--ca-cert",
            "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt".to_owned(),
        ),
        ("--health-server-port", "8134".to_owned()),
        // The server refuses less than 30 seconds; load balancers cut at minutes.
        ("--keepalive-time", "30s".to_owned()),
        ("--logtostderr", "true".to_owned()),
        ("--proxy-server-host", way.konnectivity_host.clone()),
        ("--proxy-server-port", way.konnectivity_port.to_string()),
        (
            "--service-account-token-path",
            format!("{TOKENS}/konnectivity-agent-token"),
        ),
        // Servers come and go with the control plane's pods.
        ("--sync-forever", "true".to_owned()),
    ];
    if way.by_name() && way.konnectivity_host == way.host {
        // One name for all: the gate tells agents by this.
        ours.push(("--alpn-proto", KONNECTIVITY_ALPN.to_owned()));
    }
    let given = |flag: &str| agent.extra_args.iter().any(|arg| flags::same(arg, flag));
    let kept = ours.into_iter().filter(|(flag, _)| !given(flag));
    let mut all: Vec<String> = kept
        .map(|(flag, value)| format!("{flag}={value}"))
        .collect();
    all.extend(agent.extra_args.iter().cloned());
    all
}
