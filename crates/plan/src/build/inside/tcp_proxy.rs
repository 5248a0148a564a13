//! The proxy on the tenant's nodes, through which pods reach the API server behind a
//! shared front door.
//!
//! It starts on a node with no pod network, no name server and no cloud controller:
//! nothing in it refers to any of them.

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use steward_api::tenant_control_plane::TcpProxyMode;

use super::{
    Inputs, SYSTEM, labelled, make, named,
    rbac::{account, role_ref, rule},
};
use crate::{
    names::{TCP_PROXY_PORT, TERMINATE_PORT},
    object::{Kind, Object, ObjectKey},
    secret::checksum,
    validate::NodeProxy,
    way::{Way, authority},
};

const BECAUSE: &str = "pods reach the API server through it";
pub(super) const NAME: &str = "steward-tcp-proxy";
const APP: (&str, &str) = ("app", NAME);
const TLS_SECRET: &str = "steward-tcp-proxy-tls";
const TRUST: &str = "/etc/steward/trust";
const IDENTITY: &str = "/etc/steward/tls";
/// Where a proxy finds the container that keeps its listeners while it is started again.
const HOLD: &str = "/run/steward";
const HOLDER: &str = "/run/steward/hold";

/// How long a proxy that is told to stop goes on accepting: until every kube-proxy has heard
/// where connections go instead.
const LEAVE_SECONDS: u32 = 15;
/// How long connections may then take to finish.
const DRAIN_SECONDS: u32 = 60;

pub(super) fn objects(inputs: &Inputs<'_>, proxy: &NodeProxy) -> Vec<Object> {
    let mut all = vec![trust(inputs)];
    match proxy.mode {
        TcpProxyMode::EndToEnd => all.push(daemon_set(inputs, proxy)),
        TcpProxyMode::Terminate => all.extend(terminating(inputs, proxy)),
    }
    all
}

/// What a proxy of this mode consists of: all of it stays while pods still go through it.
pub(crate) fn keys(mode: TcpProxyMode) -> Vec<ObjectKey> {
    let system = |kind, name| ObjectKey::new(kind, SYSTEM, name);
    let mut all = vec![system(Kind::ConfigMap, NAME)];
    match mode {
        TcpProxyMode::EndToEnd => all.push(system(Kind::DaemonSet, NAME)),
        TcpProxyMode::Terminate => all.extend([
            system(Kind::Secret, TLS_SECRET),
            system(Kind::ServiceAccount, NAME),
            system(Kind::Deployment, NAME),
            system(Kind::Service, NAME),
            ObjectKey::new(Kind::Role, "default", NAME),
            ObjectKey::new(Kind::RoleBinding, "default", NAME),
        ]),
    }
    all
}

/// Certificate of the authority by which the proxy knows the API server: nothing secret.
fn trust(inputs: &Inputs<'_>) -> Object {
    let body = ConfigMap {
        metadata: labelled(named(SYSTEM, NAME), &[APP]),
        data: Some([("ca.crt".to_owned(), inputs.authority.to_owned())].into()),
        ..ConfigMap::default()
    };
    make(Kind::ConfigMap, BECAUSE, &body)
}

fn daemon_set(inputs: &Inputs<'_>, proxy: &NodeProxy) -> Object {
    let mut args = vec![
        "--mode=end-to-end".to_owned(),
        format!(
            "--listen={}",
            authority(&proxy.address.to_string(), TCP_PROXY_PORT)
        ),
        format!("--address={}", proxy.address),
    ];
    args.extend(shared_args(&inputs.ways.active, proxy));
    // To put the address on the node's own interface.
    let security = json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]},
        "readOnlyRootFilesystem": true,
        "runAsNonRoot": false,
        "runAsUser": 0,
    });
    let body = json!({
        "metadata": labelled(named(SYSTEM, NAME), &[APP]),
        "spec": {
            "selector": {"matchLabels": {"app": NAME}},
            // The new proxy listens before the old one leaves: both share the port.
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
            },
            "template": {
                "metadata": template_metadata(inputs, proxy.mode),
                "spec": pod(inputs, proxy, &args, &security),
            },
        },
    });
    make(Kind::DaemonSet, BECAUSE, &body)
}

fn template_metadata(inputs: &Inputs<'_>, mode: TcpProxyMode) -> Value {
    let mode = match mode {
        TcpProxyMode::EndToEnd => "end-to-end",
        TcpProxyMode::Terminate => "terminate",
    };
    json!({
        "labels": {"app": NAME, "steward.butlerlabs.dev/tcp-proxy": mode},
        "annotations": {
            "kubectl.kubernetes.io/default-container": NAME,
            "steward.butlerlabs.dev/trust": checksum(&inputs.authority),
        },
    })
}

fn shared_args(way: &Way, proxy: &NodeProxy) -> Vec<String> {
    let mut args = vec![
        format!("--upstream={}", way.authority()),
        format!("--ca={TRUST}/ca.crt"),
        format!("--admin=127.0.0.1:{}", admin_port(proxy.mode)),
        format!("--shutdown-delay={LEAVE_SECONDS}"),
        format!("--drain-timeout={DRAIN_SECONDS}"),
        "--restart-in-place".to_owned(),
        format!("--holder={HOLDER}"),
    ];
    if let Some((address, port)) = proxy.internal {
        let target = authority(&address.to_string(), port.unwrap_or(way.port));
        args.push(format!("--internal-endpoint={target}"));
    }
    for (address, names) in &proxy.aliases {
        args.extend(
            names
                .iter()
                .map(|name| format!("--host-alias={name}={address}")),
        );
    }
    if way.by_name() {
        // Works with no name server at all.
        args.extend(
            way.addresses
                .iter()
                .map(|address| format!("--pin={address}")),
        );
    }
    args
}

/// On the node's own network, where a proxy of the other kind may run as well.
const fn admin_port(mode: TcpProxyMode) -> u16 {
    match mode {
        TcpProxyMode::EndToEnd => 7481,
        TcpProxyMode::Terminate => 7482,
    }
}

fn pod(inputs: &Inputs<'_>, proxy: &NodeProxy, args: &[String], security: &Value) -> Value {
    let identity = proxy.mode == TcpProxyMode::Terminate;
    let admin = admin_port(proxy.mode);
    let image = proxy
        .spec
        .image
        .as_ref()
        .unwrap_or(&inputs.settings.tcp_proxy_image);
    let mut mounts = vec![
        json!({"name": "trust", "mountPath": TRUST, "readOnly": true}),
        json!({"name": "hold", "mountPath": HOLD}),
    ];
    let mut volumes = vec![
        json!({"name": "trust", "configMap": {"name": NAME}}),
        json!({"name": "hold", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}),
    ];
    if identity {
        mounts.push(json!({"name": "tls", "mountPath": IDENTITY, "readOnly": true}));
        volumes.push(json!({"name": "tls", "secret": {
            "secretName": TLS_SECRET, "defaultMode": 0o440,
        }}));
    }
    let priority = if identity {
        "system-cluster-critical"
    } else {
        "system-node-critical"
    };
    let probe =
        |path: &str| json!({"host": "127.0.0.1", "path": path, "port": admin, "scheme": "HTTP"});
    json!({
        "priorityClassName": priority,
        "hostNetwork": true,
        "dnsPolicy": "Default",
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": LEAVE_SECONDS + DRAIN_SECONDS + 15,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}, "fsGroup": 65532},
        "containers": [{
            "name": NAME,
            "image": image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["/steward-tcp-proxy"],
            "args": args,
            "resources": proxy.spec.resources.as_ref().map_or_else(
                || json!({"requests": {"cpu": "10m", "memory": "32Mi"}}),
                |given| json!(given),
            ),
            // Readiness tells whether the way to the API server is open; losing it is no
            // reason to be killed.
            "readinessProbe": {
                "httpGet": probe("/readyz"), "periodSeconds": 5, "failureThreshold": 3,
                "timeoutSeconds": 5,
            },
            "livenessProbe": {
                "httpGet": probe("/livez"), "periodSeconds": 10, "failureThreshold": 6,
                "timeoutSeconds": 5,
            },
            "securityContext": security,
            "volumeMounts": mounts,
        }, holder(image, security)],
        "volumes": volumes,
    })
}

/// Has handles of the proxy's listeners and does nothing: while the proxy's container is started
/// again, clients wait instead of being refused.
fn holder(image: &str, proxy: &Value) -> Value {
    // The same user, as the socket between them is only for that one; nothing else of it.
    let mut security = proxy.clone();
    security["capabilities"] = json!({"drop": ["ALL"]});
    json!({
        "name": "hold",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/steward-tcp-proxy"],
        "args": ["hold", HOLDER],
        "resources": {"requests": {"cpu": "1m", "memory": "4Mi"}, "limits": {"memory": "32Mi"}},
        "securityContext": security,
        "volumeMounts": [{"name": "hold", "mountPath": HOLD}],
    })
}

/// The proxy that opens TLS itself, with a certificate of its own.
fn terminating(inputs: &Inputs<'_>, proxy: &NodeProxy) -> Vec<Object> {
    let mut args = vec![
        "--mode=terminate".to_owned(),
        format!("--listen=0.0.0.0:{TERMINATE_PORT}"),
        format!("--cert={IDENTITY}/tls.crt"),
        format!("--key={IDENTITY}/tls.key"),
    ];
    args.extend(shared_args(&inputs.ways.active, proxy));
    let security = json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": true,
        "runAsNonRoot": true,
        "runAsUser": 65532,
        "runAsGroup": 65532,
    });
    let mut pod = pod(inputs, proxy, &args, &security);
    pod["serviceAccountName"] = json!(NAME);
    pod["affinity"] = json!({"podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{
            "weight": 100,
            "podAffinityTerm": {
                "labelSelector": {"matchLabels": {"app": NAME}},
                "topologyKey": "kubernetes.io/hostname",
            },
        }],
    }});
    let deployment = json!({
        "metadata": labelled(named(SYSTEM, NAME), &[APP]),
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": NAME}},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
            },
            "template": {"metadata": template_metadata(inputs, proxy.mode), "spec": pod},
        },
    });
    let mut all = vec![secret(inputs)];
    all.extend(permissions());
    all.push(make(Kind::Deployment, BECAUSE, &deployment));
    all.push(service());
    all
}

fn secret(inputs: &Inputs<'_>) -> Object {
    use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
    let text = |pick: fn(&steward_pki::Pair) -> &String| {
        BASE64.encode(
            inputs
                .proxy_certificate
                .map(pick)
                .map_or("", String::as_str),
        )
    };
    let body = json!({
        "metadata": labelled(named(SYSTEM, TLS_SECRET), &[APP]),
        "type": "kubernetes.io/tls",
        "data": {"tls.crt": text(|pair| &pair.certificate), "tls.key": text(|pair| &pair.key)},
    });
    make(Kind::Secret, BECAUSE, &body)
}

/// The one EndpointSlice, and nothing else.
fn permissions() -> Vec<Object> {
    let account_body = json!({
        "metadata": labelled(named(SYSTEM, NAME), &[APP]),
        "automountServiceAccountToken": false,
    });
    let role = json!({
        "metadata": labelled(named("default", NAME), &[APP]),
        "rules": [rule(
            &["discovery.k8s.io"], &["endpointslices"], &["get", "update", "patch"], &["kubernetes"],
        )],
    });
    let bound = json!({
        "metadata": labelled(named("default", NAME), &[APP]),
        "roleRef": role_ref("Role", NAME),
        "subjects": [account(NAME)],
    });
    vec![
        make(Kind::ServiceAccount, BECAUSE, &account_body),
        make(Kind::Role, BECAUSE, &role),
        make(Kind::RoleBinding, BECAUSE, &bound),
    ]
}

fn service() -> Object {
    let body = json!({
        "metadata": labelled(named(SYSTEM, NAME), &[APP]),
        "spec": {
            "type": "ClusterIP",
            "selector": {"app": NAME},
            "ports": [{
                "name": "https", "port": 6443, "targetPort": TERMINATE_PORT, "protocol": "TCP",
            }],
        },
    });
    make(Kind::Service, BECAUSE, &body)
}
