//! The parts there are, by name.
//!
//! Only names and versions; how a part is made stands in its recipe.

use std::{fmt, str::FromStr};

use super::{Error, Release, recipe::Recipe};

/// Something the lab runs that others wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// Kubernetes itself, every program of it.
    Kubernetes(Release),
    /// etcd, etcdctl and etcdutl.
    Etcd,
    /// konnectivity's proxy-server and proxy-agent.
    Konnectivity,
    /// `CoreDNS` with the plugins a cluster and the lab's name server need.
    CoreDns,
    /// The program of a pod's sandbox.
    Pause,
    /// Helm.
    Helm,
    /// kine, with NATS built in.
    Kine,
    /// The haproxy-ingress controller, with its templates.
    HaproxyIngress,
    /// The CRDs of Gateway API and Traefik.
    Crds,
    /// Traefik.
    Traefik,
    /// Envoy.
    Envoy,
    /// The NATS server.
    Nats,
    /// What a node needs of the system: containerd, runc, CNI plugins, nft and so on.
    Node,
    /// What the image for test pods is made of: busybox, curl, openssl.
    Toolbox,
    /// HAProxy of the system.
    Haproxy,
    /// nginx of the system, with its stream module.
    Nginx,
    /// The system of a machine with a kernel of its own.
    Guest,
    /// The time server such a machine asks.
    Chrony,
}

impl Part {
    /// Every part, in the order in which they are most often needed.
    pub const ALL: [Self; 23] = [
        Self::Kubernetes(Release::V1_36),
        Self::Etcd,
        Self::Konnectivity,
        Self::CoreDns,
        Self::Pause,
        Self::Node,
        Self::Toolbox,
        Self::Helm,
        Self::Kubernetes(Release::V1_35),
        Self::Kubernetes(Release::V1_34),
        Self::Kubernetes(Release::V1_33),
        Self::Kubernetes(Release::V1_32),
        Self::Kubernetes(Release::V1_31),
        Self::HaproxyIngress,
        Self::Kine,
        Self::Crds,
        Self::Traefik,
        Self::Envoy,
        Self::Nats,
        Self::Haproxy,
        Self::Nginx,
        Self::Guest,
        Self::Chrony,
    ];

    /// What a lab needs to come up.
    pub const LAB: [Self; 8] = [
        Self::Kubernetes(Release::V1_36),
        Self::Etcd,
        Self::Konnectivity,
        Self::CoreDns,
        Self::Pause,
        Self::Node,
        Self::Toolbox,
        Self::Helm,
    ];

    /// The part's name, as the command line and the cache spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kubernetes(Release::V1_36) => "kubernetes-1.36",
            Self::Kubernetes(Release::V1_35) => "kubernetes-1.35",
            Self::Kubernetes(Release::V1_34) => "kubernetes-1.34",
            Self::Kubernetes(Release::V1_33) => "kubernetes-1.33",
            Self::Kubernetes(Release::V1_32) => "kubernetes-1.32",
            Self::Kubernetes(Release::V1_31) => "kubernetes-1.31",
            Self::Etcd => "etcd",
            Self::Konnectivity => "konnectivity",
            Self::CoreDns => "coredns",
            Self::Pause => "pause",
            Self::Helm => "helm",
            Self::Kine => "kine",
            Self::HaproxyIngress => "haproxy-ingress",
            Self::Crds => "crds",
            Self::Traefik => "traefik",
            Self::Envoy => "envoy",
            Self::Nats => "nats",
            Self::Node => "node",
            Self::Toolbox => "toolbox",
            Self::Haproxy => "haproxy",
            Self::Nginx => "nginx",
            Self::Guest => "guest",
            Self::Chrony => "chrony",
        }
    }

    /// The version of its programs, without `v`.
    pub fn version(self) -> &'static str {
        Recipe::of(self).version
    }

    /// A name for everything that goes into the part: it changes with any of it.
    pub fn fingerprint(self) -> String {
        Recipe::of(self).hash()
    }

    pub(super) fn served() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kubernetes(release) => write!(f, "kubernetes {}", release.version()),
            Self::Crds => f.write_str(self.name()),
            other => write!(f, "{} {}", other.name(), other.version()),
        }
    }
}

impl FromStr for Part {
    type Err = Error;

    fn from_str(given: &str) -> Result<Self, Error> {
        if let Some(version) = given.strip_prefix("kubernetes") {
            let version = version.trim_start_matches('-');
            if version.is_empty() {
                return Ok(Self::Kubernetes(Release::default()));
            }
            return version.parse().map(Self::Kubernetes);
        }
        Self::ALL
            .into_iter()
            .find(|part| part.name() == given)
            .ok_or_else(|| Error::UnknownPart {
                given: given.to_owned(),
                served: Self::served(),
            })
    }
}
