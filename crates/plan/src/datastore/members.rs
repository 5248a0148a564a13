//! The members: Service, `StatefulSet` and budget.

use serde_json::{Value, json};
use steward_api::datastore::DEFAULT_QUOTA_BACKEND_BYTES;

use super::{CLIENT_PORT, Etcd, selector};
use crate::{
    build::{
        meta::{extend, object},
        network_policy::{self, EtcdPorts},
    },
    object::{Kind, Object, Stage},
    secret::checksum,
};

const PEER_PORT: u16 = 2380;
/// Plain HTTP, because kubelets ask it for readiness. A `NetworkPolicy` keeps other pods away from it.
const METRICS_PORT: u16 = 2381;
const DATA: &str = "/var/lib/etcd";
const PKI: &str = "/etc/etcd/pki";

pub(super) fn objects(etcd: &Etcd<'_>, authority: &str) -> Vec<Object> {
    let mut all = vec![service(etcd), stateful_set(etcd, authority)];
    all.extend(network_policy::managed_etcd(
        etcd.settings,
        &etcd.name,
        etcd.meta(etcd.set()),
        EtcdPorts {
            clients: CLIENT_PORT,
            peers: PEER_PORT,
            metrics: Some(METRICS_PORT),
        },
    ));
    if etcd.replicas() > 1 {
        let body = json!({
            "metadata": etcd.meta(etcd.set()),
            "spec": {
                "maxUnavailable": 1,
                "selector": {"matchLabels": selector(&etcd.name)},
            },
        });
        let because = "maintenance of nodes takes one member at a time";
        all.push(object(
            Kind::PodDisruptionBudget,
            Stage::Workload,
            because,
            &body,
        ));
    }
    all
}

/// Names of the members. They are there before the members are ready: that is how
/// members find each other.
fn service(etcd: &Etcd<'_>) -> Object {
    let port = |name: &str, number: u16| json!({"name": name, "port": number, "targetPort": number, "protocol": "TCP"});
    let body = json!({
        "metadata": etcd.meta(etcd.set()),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": selector(&etcd.name),
            "ports": [
                port("client", CLIENT_PORT),
                port("peer", PEER_PORT),
                port("metrics", METRICS_PORT),
            ],
        },
    });
    object(
        Kind::Service,
        Stage::Expose,
        "members are found by their names",
        &body,
    )
}

fn stateful_set(etcd: &Etcd<'_>, authority: &str) -> Object {
    let mut spec = json!({
        "replicas": etcd.replicas(),
        "serviceName": etcd.set(),
        // Members need each other to become ready.
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "RollingUpdate"},
        "selector": {"matchLabels": selector(&etcd.name)},
        "template": {"metadata": pod_metadata(etcd, authority), "spec": pod(etcd)},
    });
    if let Some(claim) = claim(etcd) {
        spec["volumeClaimTemplates"] = json!([claim]);
    }
    let body = json!({"metadata": etcd.meta(etcd.set()), "spec": spec});
    object(
        Kind::StatefulSet,
        Stage::Workload,
        "it keeps the tenants' data",
        &body,
    )
}

/// Certificates are followed by etcd itself; a new authority is not.
fn pod_metadata(etcd: &Etcd<'_>, authority: &str) -> Value {
    let mut metadata = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
        labels: Some(selector(&etcd.name)),
        annotations: Some(
            [(
                "steward.butlerlabs.dev/authority".to_owned(),
                checksum(&authority),
            )]
            .into_iter()
            .chain(etcd.peering().note())
            .collect(),
        ),
        ..Default::default()
    };
    extend(&mut metadata, etcd.spec.pod_additional_metadata.as_ref());
    json!(metadata)
}

/// The claim for each member's volume. One that exists can't be changed: it stays.
fn claim(etcd: &Etcd<'_>) -> Option<Value> {
    let live = etcd
        .observed
        .live
        .get(Kind::StatefulSet, &etcd.settings.namespace, &etcd.set());
    if let Some(live) = live {
        let found = live.pointer("/spec/volumeClaimTemplates/0")?;
        return Some(json!({
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": found.pointer("/spec/accessModes"),
                "resources": found.pointer("/spec/resources"),
                "storageClassName": found.pointer("/spec/storageClassName"),
            },
        }));
    }
    if etcd.spec.empty_dir.is_some() {
        return None;
    }
    let storage = etcd.spec.storage.clone().unwrap_or_default();
    Some(json!({
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": storage.size}},
            "storageClassName": storage.storage_class_name,
        },
    }))
}

fn pod(etcd: &Etcd<'_>) -> Value {
    let spec = etcd.spec;
    let mut volumes = vec![json!({"name": "pki", "projected": {
        "defaultMode": 0o440,
        "sources": certificates(etcd),
    }})];
    if claim(etcd).is_none() {
        let folder = spec.empty_dir.clone().unwrap_or_default();
        let mut source = json!({"sizeLimit": folder.size_limit});
        if folder.memory {
            source["medium"] = json!("Memory");
        }
        volumes.push(json!({"name": "data", "emptyDir": source}));
    }
    let affinity = spec.affinity.as_ref().map_or_else(
        || {
            json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
                "weight": 100,
                "podAffinityTerm": {
                    "labelSelector": {"matchLabels": selector(&etcd.name)},
                    "topologyKey": "kubernetes.io/hostname",
                },
            }]}})
        },
        |given| json!(given),
    );
    let list = |given: &[k8s_openapi::api::core::v1::Toleration]| {
        (!given.is_empty()).then(|| json!(given))
    };
    json!({
        "affinity": affinity,
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "nodeSelector": (!spec.node_selector.is_empty()).then(|| json!(spec.node_selector)),
        "tolerations": list(&spec.tolerations),
        "priorityClassName": spec.priority_class_name,
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "fsGroup": 65532,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container(etcd)],
        "volumes": volumes,
    })
}

/// What is mounted: trust, the server's certificate, the members' own.
fn certificates(etcd: &Etcd<'_>) -> Vec<Value> {
    let secret = |what: &str, items: Value| json!({"secret": {"name": etcd.secret_name(what), "items": items}});
    let mut sources = vec![
        secret("ca", json!([{"key": "ca.crt", "path": "ca.crt"}])),
        secret(
            "server",
            json!([
                {"key": "tls.crt", "path": "tls.crt"},
                {"key": "tls.key", "path": "tls.key"},
            ]),
        ),
    ];
    let peers = etcd.peering().files();
    if !peers.is_empty() {
        sources.push(secret("peer", json!(peers)));
    }
    sources
}

fn container(etcd: &Etcd<'_>) -> Value {
    let port =
        |name: &str, number: u16| json!({"name": name, "containerPort": number, "protocol": "TCP"});
    let probe = |path: &str, period: u16, failures: u16| {
        json!({
            "httpGet": {"path": path, "port": METRICS_PORT, "scheme": "HTTP"},
            "periodSeconds": period,
            "timeoutSeconds": 5,
            "failureThreshold": failures,
        })
    };
    let image = etcd
        .spec
        .image
        .as_ref()
        .unwrap_or(&etcd.settings.etcd_image);
    json!({
        "name": "etcd",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["etcd"],
        "args": args(etcd),
        "env": [{"name": "POD_NAME", "valueFrom": {
            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"},
        }}],
        "ports": [
            port("client", CLIENT_PORT),
            port("peer", PEER_PORT),
            port("metrics", METRICS_PORT),
        ],
        "startupProbe": probe("/readyz", 2, 150),
        "readinessProbe": probe("/readyz", 5, 3),
        "livenessProbe": probe("/livez", 10, 8),
        "resources": etcd.spec.resources.as_ref().map_or_else(
            || json!({"requests": {"cpu": "100m", "memory": "128Mi"}}),
            |given| json!(given),
        ),
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
        },
        "volumeMounts": [
            {"name": "data", "mountPath": DATA},
            {"name": "pki", "mountPath": PKI, "readOnly": true},
        ],
    })
}

fn args(etcd: &Etcd<'_>) -> Vec<String> {
    let set = etcd.set();
    let domain = &etcd.settings.cluster_domain;
    let own = format!("$(POD_NAME).{set}.{}.svc.{domain}", etcd.settings.namespace);
    let cluster: Vec<String> = (0..etcd.replicas())
        .map(|index| format!("{set}-{index}=https://{}:{PEER_PORT}", etcd.member(index)))
        .collect();
    let quota = etcd
        .spec
        .quota_backend_bytes
        .unwrap_or(DEFAULT_QUOTA_BACKEND_BYTES);
    let retention = etcd.spec.compaction_retention.as_deref().unwrap_or("5m");
    let mut args = vec![
        "--name=$(POD_NAME)".into(),
        // In a folder of its own: a volume's root may hold lost+found.
        format!("--data-dir={DATA}/data"),
        format!("--listen-client-urls=https://0.0.0.0:{CLIENT_PORT}"),
        format!("--advertise-client-urls=https://{own}:{CLIENT_PORT}"),
        format!("--listen-peer-urls=https://0.0.0.0:{PEER_PORT}"),
        format!("--initial-advertise-peer-urls=https://{own}:{PEER_PORT}"),
        format!("--initial-cluster={}", cluster.join(",")),
        "--initial-cluster-state=new".into(),
        format!("--initial-cluster-token={}", etcd.name),
        format!("--listen-metrics-urls=http://0.0.0.0:{METRICS_PORT}"),
        "--client-cert-auth=true".into(),
        format!("--trusted-ca-file={PKI}/ca.crt"),
        format!("--cert-file={PKI}/tls.crt"),
        format!("--key-file={PKI}/tls.key"),
        // All tenants at once: no tenant's API server compacts for itself.
        // Tenants share the revisions but not the keys, and may not ask how far their watches are
        // (etcd lets only root find out its version). So they are told, sooner than an API server
        // gives up waiting (3 s): a watch from now on would fail with "Too large resource version".
        "--watch-progress-notify-interval=2s".into(),
        "--auto-compaction-mode=periodic".into(),
        format!("--auto-compaction-retention={retention}"),
        format!("--quota-backend-bytes={quota}"),
    ];
    let name = format!("{}.{domain}", etcd.service_name());
    args.extend(etcd.peering().args(PKI, &name));
    args
}
