//! From a symptom, as people type it, to the checks that speak of it.

use crate::checks::{Check, all};

/// Words people use, and the checks they mean.
const WORDS: &[(&str, &[&str])] = &[
    (
        "timeout",
        &["tcp-connect", "kubernetes-endpointslice", "tcp-proxy"],
    ),
    ("refused", &["tcp-connect", "service-endpoints"]),
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
    ("exec", &["konnectivity"]),
    ("logs", &["konnectivity"]),
    ("webhook", &["konnectivity"]),
    ("join", &["kubeadm-objects", "dns-resolves", "tcp-connect"]),
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
    ("unauthorized", &["tls-passthrough", "clock"]),
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
