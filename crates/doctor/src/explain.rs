//! From a symptom, as people type it, to the checks that speak of it.

use crate::checks::{Check, all};

/// Words people use, and the checks they mean.
const WORDS: &[(&str, &[&str])] = &[
    (
        "timeout",
        &["tcp-connect", "kubernetes-endpointslice", "tcp-proxy"],
    ),
    (
        "refused",
        &["tcp-connect", "front-door-runs", "service-endpoints"],
    ),
    (
        "x509",
        &["tls-passthrough", "tls-names", "tls-expiry", "clock"],
    ),
    (
        "certificate",
        &["tls-passthrough", "tls-names", "tls-expiry"],
    ),
    ("no such host", &["dns-resolves", "dns-address"]),
    ("dns", &["dns-resolves", "dns-address", "coredns"]),
    (
        "exec",
        &[
            "kubelets-reached",
            "konnectivity-connections",
            "konnectivity",
        ],
    ),
    (
        "logs",
        &[
            "kubelets-reached",
            "konnectivity-connections",
            "konnectivity",
        ],
    ),
    ("webhook", &["extensions", "konnectivity"]),
    ("apiservice", &["extensions", "konnectivity"]),
    (
        "join",
        &[
            "kubeadm-objects",
            "endpoint-told",
            "dns-resolves",
            "tcp-connect",
        ],
    ),
    (
        "kubernetes.default",
        &[
            "kubernetes-endpointslice",
            "tcp-proxy",
            "endpoint-reconciler",
        ],
    ),
    (
        "10.96.0.1",
        &["kubernetes-endpointslice", "tcp-proxy", "kube-proxy-server"],
    ),
    (
        "unauthorized",
        &["admin-credentials", "tls-passthrough", "clock"],
    ),
    (
        "no agent available",
        &[
            "kubelets-reached",
            "konnectivity-connections",
            "konnectivity",
        ],
    ),
    ("terminating", &["deleting", "extensions"]),
    ("delet", &["deleting"]),
    ("uninitialized", &["cloud-provider"]),
    ("cloud", &["cloud-provider"]),
    ("space", &["datastore-space"]),
    ("slow", &["datastore-latency"]),
    ("took too long", &["datastore-latency"]),
    ("leader", &["datastore-latency", "datastore"]),
    ("old address", &["endpoint-told", "kube-proxy-server"]),
    ("imagepull", &["images"]),
    ("quota", &["quota", "datastore"]),
    ("pending", &["quota", "images", "pods"]),
    ("not yet valid", &["clock", "node-clocks"]),
    ("expired", &["tls-expiry", "clock", "node-clocks"]),
    (
        "handshake",
        &["tls-answers", "tls-passthrough", "front-door-runs"],
    ),
    (
        "unrecognized name",
        &["tls-answers", "front-door-object", "front-door-class"],
    ),
    (
        "etcd",
        &[
            "datastore",
            "datastore-credentials",
            "datastore-space",
            "datastore-latency",
        ],
    ),
    ("not ready", &["pods", "nodes", "datastore"]),
    (
        "ingress",
        &[
            "front-door-class",
            "front-door-object",
            "front-door-passthrough",
        ],
    ),
    ("gateway", &["front-door-accepted", "front-door-object"]),
];

/// Checks that speak of a symptom: by the words above, by name, or by what they say.
pub fn explain(symptom: &str) -> Vec<&'static Check> {
    let symptom = symptom.to_lowercase();
    let wanted: Vec<&str> = WORDS
        .iter()
        .filter(|(word, _)| symptom.contains(word))
        .flat_map(|(_, ids)| ids.iter().copied())
        .collect();
    let mut found: Vec<&Check> = all()
        .filter(|c| {
            wanted.contains(&c.id)
                || c.id == symptom
                || (symptom.len() > 3 && c.what.contains(&symptom))
        })
        .collect();
    found.sort_by_key(|c| wanted.iter().position(|w| *w == c.id).unwrap_or(usize::MAX));
    found
}
