//! The foreign images of the lab, under the names and tags that manifests ask for.
//!
//! An item is one archive with the images of one part. It is made when first asked
//! for, out of the part's programs and, where those need them, tools of the system
//! with their libraries; then it is kept under `images/` in the cache. What is
//! inside differs from the released images only in what the programs never use.

mod recipes;

use std::{collections::BTreeMap, fmt, str::FromStr};

use super::{Archive, Error, cached};
use crate::{
    parts::{self, Options, Part, Release},
    progress::Progress,
};

/// One archive of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Item {
    /// The programs of a control plane; kube-proxy too where the release has it.
    Kubernetes(Release),
    /// etcd with its two tools.
    Etcd,
    /// konnectivity's two ends, also under the tags that older tenants ask for.
    Konnectivity,
    /// `CoreDNS`.
    CoreDns,
    /// The sandbox of every pod.
    Pause,
    /// A shell, curl, openssl and a small web server, for pods of tests.
    Toolbox,
    /// kine.
    Kine,
    /// The haproxy-ingress controller on Debian's HAProxy.
    HaproxyIngress,
    /// Traefik.
    Traefik,
    /// Envoy.
    Envoy,
    /// The NATS server.
    Nats,
}

/// The name of the image for pods of tests.
pub const TOOLBOX: &str = "steward.lab/toolbox:1";

/// The name of the sandbox image.
pub const PAUSE: &str = "registry.k8s.io/pause:3.10.2";

/// Makes sure that an item's archive is there, and says where and what is in it.
pub fn ensure(item: Item, options: &Options, progress: &Progress) -> Result<Archive, Error> {
    let parts: BTreeMap<_, _> = parts::ensure_all(&item.parts(), options, progress)?;
    let images = recipes::images(item, &parts)?;
    cached(&images, &item.to_string(), &options.cache.join("images"))
}

impl Item {
    /// Every item.
    pub const ALL: [Self; 16] = [
        Self::Kubernetes(Release::V1_36),
        Self::Kubernetes(Release::V1_35),
        Self::Kubernetes(Release::V1_34),
        Self::Kubernetes(Release::V1_33),
        Self::Kubernetes(Release::V1_32),
        Self::Kubernetes(Release::V1_31),
        Self::Etcd,
        Self::Konnectivity,
        Self::CoreDns,
        Self::Pause,
        Self::Toolbox,
        Self::Kine,
        Self::HaproxyIngress,
        Self::Traefik,
        Self::Envoy,
        Self::Nats,
    ];

    /// What the nodes of a lab need before anybody asks for a tenant.
    pub const NODE: [Self; 4] = [
        Self::Pause,
        Self::CoreDns,
        Self::Kubernetes(Release::V1_36),
        Self::Toolbox,
    ];

    /// The parts it is made of.
    pub fn parts(self) -> Vec<Part> {
        match self {
            // kube-proxy needs nft and conntrack beside it.
            Self::Kubernetes(release) => vec![Part::Kubernetes(release), Part::Node],
            Self::Etcd => vec![Part::Etcd],
            Self::Konnectivity => vec![Part::Konnectivity],
            Self::CoreDns => vec![Part::CoreDns],
            Self::Pause => vec![Part::Pause],
            Self::Toolbox => vec![Part::Toolbox],
            Self::Kine => vec![Part::Kine],
            Self::HaproxyIngress => {
                vec![
                    Part::HaproxyIngress,
                    Part::Haproxy,
                    Part::Toolbox,
                    Part::Node,
                ]
            }
            Self::Traefik => vec![Part::Traefik],
            Self::Envoy => vec![Part::Envoy],
            Self::Nats => vec![Part::Nats],
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Kubernetes(release) => Part::Kubernetes(release).name(),
            Self::Etcd => "etcd",
            Self::Konnectivity => "konnectivity",
            Self::CoreDns => "coredns",
            Self::Pause => "pause",
            Self::Toolbox => "toolbox",
            Self::Kine => "kine",
            Self::HaproxyIngress => "haproxy-ingress",
            Self::Traefik => "traefik",
            Self::Envoy => "envoy",
            Self::Nats => "nats",
        }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Item {
    type Err = Error;

    fn from_str(given: &str) -> Result<Self, Error> {
        let unknown = || parts::Error::UnknownPart {
            given: given.to_owned(),
            served: Self::ALL.map(Self::name).join(", "),
        };
        Self::ALL
            .into_iter()
            .find(|item| item.name() == given)
            .ok_or_else(|| unknown().into())
    }
}
