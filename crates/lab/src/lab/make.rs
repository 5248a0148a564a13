//! Making a lab, step by step.
//!
//! Checks come first and touch nothing. From the first thing that is made on, a
//! failure removes all of it again.

use std::{
    fs, io,
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use rustix::fs::{FlockOperation, flock};

use super::{Lab, Owner, Record, builder::Builder};
use crate::{
    Error, Host, HostId, LabName, Layout, Unit, cgroup, cloud, cluster, dns,
    host::MARK,
    init::{HostRecord, write_atomically},
    layout::{CGROUPS, MOUNT_POINTS, ROOT},
    machine, net, node, poll,
    supplies::{self, Supplies},
    sweep,
};

/// A host's first process mounts a dozen folders and says hello.
const HOST_READY: Duration = Duration::from_mins(1);

/// CoreDNS starts when the node is ready and its image is there.
const DNS_READY: Duration = Duration::from_mins(4);

/// All labs together get the processor time of so many processes. They are a cluster
/// each; weighed as one process, they would starve beside a compiler and miss every deadline.
const WEIGHT: u32 = 16;

pub(super) async fn up(builder: Builder, name: LabName) -> Result<Lab, Error> {
    let layout = Layout::new(name);
    machine::check(builder.workers, &builder.progress)?;
    refuse_name_in_use(&layout)?;
    let release = builder.kubernetes.parse()?;
    let options = supplies::options(builder.bin_dir.as_deref())?;
    let supplies = Supplies::gather(release, options, &builder.progress).await?;
    machine::check_tools()?;
    let owner = begin(&layout, &builder, &supplies)?;
    let lab = Lab {
        layout: layout.clone(),
        record: record(&builder, &supplies, false),
        owner,
    };
    match build(&lab, &builder, &supplies).await {
        Ok(()) => {
            record(&builder, &supplies, true).write(&layout)?;
            Ok(lab)
        }
        Err(error) => {
            let error = with_logs(&lab, error);
            drop(lab);
            tokio::task::spawn_blocking(move || sweep::sweep(&layout))
                .await
                .ok();
            Err(error)
        }
    }
}

fn record(builder: &Builder, supplies: &Supplies, complete: bool) -> Record {
    Record {
        workers: builder.workers,
        kubernetes: supplies.version().to_owned(),
        maker: std::process::id(),
        complete,
    }
}

fn refuse_name_in_use(layout: &Layout) -> Result<(), Error> {
    if !layout.folder().exists() {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "there is a lab {0:?} already: use another --name, or remove it with `steward-lab down --name {0}`",
        layout.name().as_str()
    )))
}

/// Makes the lab's folder, which is what claims the name, and writes the record.
fn begin(layout: &Layout, builder: &Builder, supplies: &Supplies) -> Result<Option<Owner>, Error> {
    let machine = lock_machine()?;
    fs::create_dir_all(ROOT).map_err(Error::files("make", ROOT))?;
    match fs::create_dir(layout.folder()) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => refuse_name_in_use(layout)?,
        other => other.map_err(Error::files("make", layout.folder()))?,
    }
    record(builder, supplies, false).write(layout)?;
    sweep::make_mount_points()?;
    drop(machine);
    supplies::link(supplies.programs(), &layout.bin())?;
    // A copy: the original may be built anew while the lab runs.
    let program = layout.bin().join("steward-lab");
    let original = crate::programs::own_program()?;
    fs::copy(&original, &program).map_err(Error::files("copy", &original))?;
    if builder.stays {
        Ok(None)
    } else {
        Owner::take(layout, &program).map(Some)
    }
}

/// Labs that come and go at once must agree on who makes and removes the folders
/// that all of them mount on.
pub(crate) fn lock_machine() -> Result<fs::File, Error> {
    let folder = Path::new(ROOT).parent().unwrap_or(Path::new("/"));
    let lock = fs::File::open(folder).map_err(Error::files("open", folder))?;
    flock(&lock, FlockOperation::LockExclusive)
        .map_err(|e| Error::files("lock", folder)(e.into()))?;
    Ok(lock)
}

async fn build(lab: &Lab, builder: &Builder, supplies: &Supplies) -> Result<(), Error> {
    let progress = &builder.progress;
    let task = progress.task("hosts");
    let hosts = lab.hosts();
    for host in &hosts {
        start_host(&lab.layout, host)?;
    }
    for host in &hosts {
        wait_host(host).await?;
    }
    net::plug(&hosts).await?;
    dns::start(lab)?;
    let nodes: Vec<&Host> = hosts.iter().filter(|host| host.id().is_node()).collect();
    futures::future::try_join_all(nodes.iter().map(|host| node::start(&lab.layout, host))).await?;
    task.done(format!("{} running", hosts.len()));

    let task = progress.task("management cluster");
    let version = format!("v{}", supplies.version());
    let loads = futures::future::try_join_all(nodes.iter().map(|host| supplies.load(host)));
    let mgmt = lab.mgmt();
    let making = async {
        let cluster = cluster::start_control_plane(&mgmt, &version).await?;
        cluster::furnish(&cluster).await?;
        cluster.wait_node(HostId::Mgmt, true).await?;
        Ok(cluster)
    };
    let (cluster, _) = futures::future::try_join(making, loads).await?;
    cloud::start(lab)?;
    cluster
        .wait_deployment("kube-system", "coredns", DNS_READY)
        .await?;
    task.done(format!("Kubernetes {version} ready"));
    Ok(())
}

/// Prepares a host's files and cgroups, and starts its first process.
fn start_host(layout: &Layout, host: &Host) -> Result<(), Error> {
    let files = layout.host(host.id());
    for folder in MOUNT_POINTS.into_iter().chain(["/run/lock", "/etc"]) {
        let folder = files.path(folder);
        fs::create_dir_all(&folder).map_err(Error::files("make", &folder))?;
    }
    write_own_files(host)?;
    for hierarchy in cgroup::hierarchies().map_err(Error::files("read", "/proc/self/mountinfo"))? {
        for part in ["system", "pods"] {
            let path = layout.host_cgroup(host.id()).join(part);
            hierarchy
                .make(&path)
                .map_err(Error::files("make cgroup", &path))?;
        }
        hierarchy.weigh(Path::new(CGROUPS), WEIGHT);
    }
    let record = HostRecord {
        lab: layout.name().to_string(),
        host: host.id().to_string(),
        search_path: host.search_path(),
    };
    write_atomically(
        &files.record(),
        &serde_json::to_string(&record).unwrap_or_default(),
    )?;
    let log = files.log("init");
    fs::create_dir_all(log.parent().unwrap_or(&log)).map_err(Error::files("make", &log))?;
    let out = fs::File::create(&log).map_err(Error::files("make", &log))?;
    let errors = out.try_clone().map_err(Error::files("open", &log))?;
    Command::new("setsid")
        .args([
            "unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--fork",
        ])
        .args(["--propagation", "private", "--"])
        .arg(layout.bin().join("steward-lab"))
        .arg("init")
        .arg(files.folder())
        // Only what is named: nothing of the caller's secrets or proxies.
        .env_clear()
        .env("PATH", host.search_path())
        .env("HOME", "/root")
        .env(MARK, layout.name().as_str())
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(errors)
        .process_group(0)
        .spawn()
        .map(|_| ())
        .map_err(Error::files("start", "unshare"))
}

fn write_own_files(host: &Host) -> Result<(), Error> {
    let id = host.id();
    let gateway = id.network().gateway();
    let texts = [
        ("/etc/hostname", format!("{id}\n")),
        (
            "/etc/hosts",
            format!(
                "127.0.0.1 localhost\n::1 localhost\n{} {id} {id}.lab\n",
                id.address()
            ),
        ),
        (
            "/etc/resolv.conf",
            format!("nameserver {gateway}\nsearch lab\noptions timeout:2\n"),
        ),
    ];
    for (path, text) in texts {
        let path = host.path(path);
        fs::write(&path, text).map_err(Error::files("write", &path))?;
    }
    Ok(())
}

async fn wait_host(host: &Host) -> Result<(), Error> {
    poll(HOST_READY, async || host.units().map(|_| ()))
        .await
        .map_err(|error| Error::Timeout {
            what: format!("host {}", host.id()),
            allowed: HOST_READY.as_secs(),
            last: format!("{error}; {}", crate::logs::tail(&host.log("init"), 5)),
        })
}

/// The lab is about to be removed, so what its logs say has to be said now.
fn with_logs(lab: &Lab, error: Error) -> Error {
    match error {
        Error::Timeout {
            what,
            allowed,
            last,
        } => {
            let last = format!("{last}\n{}", crate::logs::digest(&lab.hosts()));
            Error::Timeout {
                what,
                allowed,
                last,
            }
        }
        other => other,
    }
}

/// A program of the lab itself, run on a host.
pub(crate) fn own_unit(layout: &Layout, name: &str, arguments: &[&str]) -> Unit {
    let program = layout.bin().join("steward-lab").display().to_string();
    let mut command = vec![program, name.to_owned()];
    command.extend(arguments.iter().map(|&word| word.to_owned()));
    Unit {
        name: name.into(),
        command,
        restart: true,
        when: None,
    }
}

impl Supplies {
    /// Makes this release's images known to a node.
    async fn load(&self, host: &Host) -> Result<(), Error> {
        for image in self.images_for(host.id()) {
            node::load(host, image).await?;
        }
        Ok(())
    }
}
