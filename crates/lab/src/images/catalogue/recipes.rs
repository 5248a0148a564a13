//! What is in each image of the catalogue: tables and paths, nothing clever.

use std::{collections::BTreeMap, path::Path, process::Command, sync::Arc};

use super::{Item, PAUSE, TOOLBOX};
use crate::{
    images::{Builder, Error, Image, Layer, error::io},
    parts::{Part, Programs, Release},
};

/// Certificates of the public authorities, where Debian and most others keep them.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Tells glibc to ask /etc/hosts first and then the name server.
const NSSWITCH: &str = "hosts: files dns\n";

/// Without it nft prints numbers where kube-proxy expects names: one that starts beside the rules
/// of its predecessor takes them for somebody else's and empties them.
const PROTOCOLS: &str = "tcp 6 TCP\nudp 17 UDP\nsctp 132 SCTP\n";

/// What iptables loads at run time for every match and target, where Debian keeps it.
const XTABLES: &str = "/usr/lib/x86_64-linux-gnu/xtables";

/// The names kube-proxy calls iptables by: one program, which looks at its name.
const IPTABLES: [&str; 6] = [
    "iptables",
    "iptables-save",
    "iptables-restore",
    "ip6tables",
    "ip6tables-save",
    "ip6tables-restore",
];

const USERS: &str = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n";

/// haproxy-ingress loads a JSON library for external authentication, which no
/// route of ours uses: whoever does use it is told.
const LUA_JSON: &str = r#"local function missing() error("the lab's image has no JSON library") end
return { encode = missing, decode = missing }
"#;

/// Tags under which tenants of older releases ask for konnectivity.
const KONNECTIVITY_TAGS: [&str; 6] = [
    "v0.36.0", "v0.35.0", "v0.34.0", "v0.33.0", "v0.32.0", "v0.31.0",
];

type Parts = BTreeMap<Part, Programs>;

/// The images of an item, made of these parts.
pub(super) fn images(item: Item, parts: &Parts) -> Result<Vec<Image>, Error> {
    match item {
        Item::Kubernetes(release) => kubernetes(release, parts),
        Item::Etcd => Ok(vec![etcd(parts)?]),
        Item::Konnectivity => konnectivity(parts),
        Item::CoreDns => Ok(vec![coredns(parts)?]),
        Item::Pause => Ok(vec![pause(parts)?]),
        Item::Toolbox => Ok(vec![toolbox(parts)?]),
        Item::Kine => Ok(vec![kine(parts)?]),
        Item::HaproxyIngress => Ok(vec![haproxy_ingress(parts)?]),
        Item::Traefik => Ok(vec![traefik(parts)?]),
        Item::Envoy => Ok(vec![envoy(parts)?]),
        Item::Nats => Ok(vec![nats(parts)?]),
    }
}

/// The path of a part's program.
fn path<'a>(parts: &'a Parts, part: Part, program: &str) -> Result<&'a Path, Error> {
    let programs = parts.get(&part).ok_or_else(|| missing(part, program))?;
    Ok(programs.path(program)?)
}

fn missing(part: Part, program: &str) -> crate::parts::Error {
    crate::parts::Error::UnknownProgram {
        part: part.to_string(),
        program: program.to_owned(),
        held: "nothing".to_owned(),
    }
}

/// Several programs as one layer. Those that are one file under several names go
/// in once, with links; those of a foreign folder go in one by one.
fn programs(parts: &Parts, part: Part, names: &[&str], folder: &str) -> Result<Arc<Layer>, Error> {
    let mut layer = Layer::default();
    for name in names {
        let from = path(parts, part, name)?;
        let real = from.canonicalize().map_err(io("read", from))?;
        let file = real.file_name().unwrap_or_default().to_string_lossy();
        layer = layer.program(&real, &format!("{folder}/{file}"))?;
        if file != *name {
            layer = layer.link(&format!("{folder}/{name}"), &file);
        }
    }
    Ok(Arc::new(layer))
}

fn kubernetes(release: Release, parts: &Parts) -> Result<Vec<Image>, Error> {
    const CONTROL_PLANE: [&str; 3] = [
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
    ];
    let part = Part::Kubernetes(release);
    let names = [&CONTROL_PLANE[..], &["kube-proxy"]].concat();
    let layer = programs(parts, part, &names, "/usr/local/bin")?;
    let image = |name: &str| {
        Image::builder(format!("registry.k8s.io/{name}:{release}"))
            .layer(&layer)
            .entrypoint([name])
    };
    let mut images = CONTROL_PLANE
        .iter()
        .map(|name| image(name).build())
        .collect::<Result<Vec<_>, _>>()?;
    images.push(
        image("kube-proxy")
            .layer(&packet_filters(parts)?)
            .folder("/tmp", 0o1777)
            .build()?,
    );
    Ok(images)
}

/// What kube-proxy rules packets with: nft, and iptables, which is its choice before 1.33.
fn packet_filters(parts: &Parts) -> Result<Arc<Layer>, Error> {
    let iptables = path(parts, Part::Node, "iptables")?;
    let iptables = iptables.canonicalize().map_err(io("read", iptables))?;
    let mut layer = Layer::default()
        .program(path(parts, Part::Node, "nft")?, "/usr/sbin/nft")?
        .program(path(parts, Part::Node, "conntrack")?, "/usr/sbin/conntrack")?
        .program(&iptables, "/usr/sbin/xtables")?
        .tree(Path::new(XTABLES), XTABLES)?
        .text(PROTOCOLS, "/etc/protocols", 0o644);
    for name in IPTABLES {
        layer = layer.link(&format!("/usr/sbin/{name}"), "xtables");
    }
    Ok(Arc::new(layer))
}

fn etcd(parts: &Parts) -> Result<Image, Error> {
    let names = ["etcd", "etcdctl", "etcdutl"];
    let layer = programs(parts, Part::Etcd, &names, "/usr/local/bin")?;
    Image::builder(format!("quay.io/coreos/etcd:v{}", Part::Etcd.version()))
        .layer(&layer)
        .folder("/tmp", 0o1777)
        .entrypoint(["etcd"])
        .build()
}

fn konnectivity(parts: &Parts) -> Result<Vec<Image>, Error> {
    let names = ["proxy-server", "proxy-agent"];
    let layer = programs(parts, Part::Konnectivity, &names, "")?;
    let image = |name: &str| {
        let full = |tag| format!("registry.k8s.io/kas-network-proxy/{name}:{tag}");
        let [first, others @ ..] = KONNECTIVITY_TAGS;
        let mut builder = Image::builder(full(first)).layer(&layer);
        for tag in others {
            builder = builder.tag(full(tag));
        }
        builder.entrypoint([format!("/{name}").as_str()]).build()
    };
    names.into_iter().map(image).collect()
}

fn coredns(parts: &Parts) -> Result<Image, Error> {
    let version = Part::CoreDns.version();
    Image::builder(format!("registry.k8s.io/coredns/coredns:v{version}"))
        .program(path(parts, Part::CoreDns, "coredns")?, "/coredns")?
        .file(CERTIFICATES, CERTIFICATES, 0o644)
        .entrypoint(["/coredns"])
        .build()
}

fn pause(parts: &Parts) -> Result<Image, Error> {
    Image::builder(PAUSE)
        .tag("registry.k8s.io/pause:3.10.1")
        .tag("registry.k8s.io/pause:3.10")
        .program(path(parts, Part::Pause, "pause")?, "/pause")?
        .entrypoint(["/pause"])
        .user("65535:65535")
        .build()
}

fn toolbox(parts: &Parts) -> Result<Image, Error> {
    shell(Image::builder(TOOLBOX), parts)?
        .program(path(parts, Part::Toolbox, "curl")?, "/usr/bin/curl")?
        .program(path(parts, Part::Toolbox, "openssl")?, "/usr/bin/openssl")?
        .file(CERTIFICATES, CERTIFICATES, 0o644)
        .command(["sh"])
        .build()
}

/// Adds busybox under all its names, and what a shell expects around it.
fn shell(mut builder: Builder, parts: &Parts) -> Result<Builder, Error> {
    let busybox = path(parts, Part::Toolbox, "busybox")?;
    builder = builder.program(busybox, "/bin/busybox")?;
    for applet in applets(busybox)? {
        // These come as programs of their own where they are wanted.
        if !["busybox", "openssl"].contains(&applet.as_str()) {
            builder = builder.link(&format!("/bin/{applet}"), "busybox");
        }
    }
    Ok(builder
        .text(NSSWITCH, "/etc/nsswitch.conf", 0o644)
        .text(USERS, "/etc/passwd", 0o644)
        .folder("/root", 0o700)
        .folder("/tmp", 0o1777)
        .folder("/www", 0o755))
}

/// The names busybox answers to.
fn applets(busybox: &Path) -> Result<Vec<String>, Error> {
    let output = Command::new(busybox)
        .arg("--list")
        .output()
        .map_err(io("run", busybox))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().map(str::to_owned).collect())
}

fn kine(parts: &Parts) -> Result<Image, Error> {
    let version = Part::Kine.version();
    Image::builder(format!("docker.io/rancher/kine:v{version}"))
        .program(path(parts, Part::Kine, "kine")?, "/bin/kine")?
        .folder("/tmp", 0o1777)
        .folder("/db", 0o777)
        .entrypoint(["/bin/kine"])
        .build()
}

/// The controller starts HAProxy through shell scripts it brings itself.
fn haproxy_ingress(parts: &Parts) -> Result<Image, Error> {
    let part = Part::HaproxyIngress;
    let version = part.version();
    let programs = parts.get(&part).ok_or_else(|| missing(part, part.name()))?;
    let share = programs.share().ok_or_else(|| missing(part, "rootfs"))?;
    let files = Arc::new(Layer::default().tree(share, "/")?);
    let builder = Image::builder(format!("quay.io/jcmoraisjr/haproxy-ingress:v{version}"))
        .layer(&files)
        .program(programs.path(part.name())?, "/haproxy-ingress-controller")?
        .program(
            path(parts, Part::Haproxy, "haproxy")?,
            "/usr/local/sbin/haproxy",
        )?
        .program(path(parts, Part::Node, "socat")?, "/usr/bin/socat")?
        .program(path(parts, Part::Toolbox, "openssl")?, "/usr/bin/openssl")?;
    shell(builder, parts)?
        .text(
            format!("{USERS}haproxy:x:1001:1001:haproxy:/:/bin/false\n"),
            "/etc/passwd",
            0o644,
        )
        .text(LUA_JSON, "/usr/local/share/lua/5.3/json.lua", 0o644)
        .text("root:x:0:\nhaproxy:x:1001:\n", "/etc/group", 0o644)
        .folder("/etc/haproxy", 0o777)
        .folder("/var/lib/haproxy", 0o777)
        .folder("/var/run/haproxy", 0o777)
        .folder("/var/empty", 0o755)
        .entrypoint(["/start.sh"])
        .build()
}

fn traefik(parts: &Parts) -> Result<Image, Error> {
    let version = Part::Traefik.version();
    Image::builder(format!("docker.io/library/traefik:v{version}"))
        .program(
            path(parts, Part::Traefik, "traefik")?,
            "/usr/local/bin/traefik",
        )?
        .file(CERTIFICATES, CERTIFICATES, 0o644)
        .folder("/tmp", 0o1777)
        .entrypoint(["/usr/local/bin/traefik"])
        .build()
}

fn envoy(parts: &Parts) -> Result<Image, Error> {
    let version = Part::Envoy.version();
    Image::builder(format!("docker.io/envoyproxy/envoy:v{version}"))
        .program(path(parts, Part::Envoy, "envoy")?, "/usr/local/bin/envoy")?
        .file(CERTIFICATES, CERTIFICATES, 0o644)
        .text(NSSWITCH, "/etc/nsswitch.conf", 0o644)
        .folder("/tmp", 0o1777)
        .entrypoint(["/usr/local/bin/envoy"])
        .build()
}

fn nats(parts: &Parts) -> Result<Image, Error> {
    let version = Part::Nats.version();
    Image::builder(format!("docker.io/library/nats:{version}"))
        .program(path(parts, Part::Nats, "nats-server")?, "/nats-server")?
        .folder("/tmp", 0o1777)
        .entrypoint(["/nats-server"])
        .build()
}
