//! Whether this machine can hold a lab. Looks, and touches nothing but one limit.

use std::{env, fs, path::Path};

use crate::{Error, layout::ROOT, progress::Progress};

/// What a lab takes besides the parts' cache: images unpacked on every node, logs, etcd.
const DISK_FOR_LAB: u64 = 3 << 30;

/// Per worker: its containerd's images.
const DISK_FOR_WORKER: u64 = 1 << 30;

/// The management cluster, with a tenant or two.
const MEMORY_FOR_LAB: u64 = 2 << 30;

/// A kubelet, containerd and a few pods.
const MEMORY_FOR_WORKER: u64 = 256 << 20;

/// How many things one user may watch files with, all programs together.
const WATCHERS: &str = "/proc/sys/fs/inotify/max_user_instances";

/// A kubelet takes seven, a control plane fifteen.
const ENOUGH_WATCHERS: u32 = 2048;

/// The programs of the system that hosts are made with, and where they are from.
const TOOLS: [(&str, &str); 9] = [
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("setpriv", "util-linux"),
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("iptables", "iptables"),
    ("conntrack", "conntrack"),
    ("containerd", "containerd"),
    ("runc", "runc"),
];

/// Says in one sentence why not, if not.
pub(crate) fn check(workers: u8, progress: &Progress) -> Result<(), Error> {
    check_root()?;
    check_kernel(Path::new("/proc"))?;
    check_memory(workers)?;
    check_disk(workers)?;
    allow_watching(Path::new(WATCHERS), progress)
}

/// Lets one user have enough of what programs watch files with. A kubelet or API server that
/// gets none does not end; it hangs, and does not say why.
fn allow_watching(limit: &Path, progress: &Progress) -> Result<(), Error> {
    let allowed = fs::read_to_string(limit).map_err(Error::files("read", limit))?;
    if allowed
        .trim()
        .parse()
        .is_ok_and(|now: u32| now >= ENOUGH_WATCHERS)
    {
        return Ok(());
    }
    fs::write(limit, ENOUGH_WATCHERS.to_string()).map_err(|error| {
        Error::Invalid(format!(
            "{} is {}, which is too little for several kubelets, and can't be raised ({error}): \
             run `sysctl fs.inotify.max_user_instances={ENOUGH_WATCHERS}` where it can",
            limit.display(),
            allowed.trim(),
        ))
    })?;
    progress.note(format_args!(
        "raised fs.inotify.max_user_instances from {} to {ENOUGH_WATCHERS}",
        allowed.trim()
    ));
    Ok(())
}

/// To be called when the parts are there, as they include these programs.
pub(crate) fn check_tools() -> Result<(), Error> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = env::split_paths(&path)
        .chain([Path::new("/usr/sbin").into(), Path::new("/sbin").into()])
        .collect();
    for (tool, package) in TOOLS {
        if !folders.iter().any(|folder| folder.join(tool).is_file()) {
            return Err(Error::Invalid(format!(
                "{tool} is missing: install it with `apt-get install {package}`"
            )));
        }
    }
    Ok(())
}

pub(crate) fn check_root() -> Result<(), Error> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Err(Error::Invalid(
        "a lab needs root, because it makes network namespaces, mounts and cgroups: run it with sudo"
            .into(),
    ))
}

fn check_kernel(proc: &Path) -> Result<(), Error> {
    let lacking =
        |what: &str, hint: &str| Err(Error::Invalid(format!("this kernel lacks {what}: {hint}")));
    for namespace in ["net", "mnt", "uts", "ipc", "pid"] {
        if !proc.join("self/ns").join(namespace).exists() {
            return lacking(
                &format!("{namespace} namespaces"),
                "run the lab on a kernel that has them",
            );
        }
    }
    let filesystems = fs::read_to_string(proc.join("filesystems")).unwrap_or_default();
    if !filesystems
        .lines()
        .any(|line| line.trim().ends_with("overlay"))
    {
        return lacking("overlayfs", "try `modprobe overlay`");
    }
    let mounts = fs::read_to_string(proc.join("self/mountinfo")).unwrap_or_default();
    if !mounts.contains(" - cgroup") {
        return lacking("mounted cgroups", "mount cgroup2 on /sys/fs/cgroup");
    }
    Ok(())
}

fn check_memory(workers: u8) -> Result<(), Error> {
    let needed = MEMORY_FOR_LAB + u64::from(workers) * MEMORY_FOR_WORKER;
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = text.lines().find_map(|line| {
        let kilobytes = line
            .strip_prefix("MemAvailable:")?
            .trim()
            .strip_suffix(" kB")?;
        kilobytes.parse::<u64>().ok().map(|k| k << 10)
    });
    enough(
        "memory",
        available,
        needed,
        "end something else, or ask for fewer --workers",
    )
}

fn check_disk(workers: u8) -> Result<(), Error> {
    let needed = DISK_FOR_LAB + u64::from(workers) * DISK_FOR_WORKER;
    let folder = Path::new(ROOT).parent().unwrap_or(Path::new("/"));
    let free = rustix::fs::statvfs(folder)
        .ok()
        .map(|fs| fs.f_bavail * fs.f_frsize);
    enough(
        "disk below /var/lib",
        free,
        needed,
        "make room, or ask for fewer --workers",
    )
}

fn enough(what: &str, there: Option<u64>, needed: u64, hint: &str) -> Result<(), Error> {
    match there {
        Some(there) if there < needed => Err(Error::Invalid(format!(
            "there is too little {what}: {} MiB free, and {} MiB needed; {hint}",
            there >> 20,
            needed >> 20
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_limit_on_watchers_is_raised_and_told_and_a_high_one_is_left() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (before, after) in [("128\n", "2048"), ("65536\n", "65536\n")] {
            fs::write(file.path(), before).unwrap();
            allow_watching(file.path(), &Progress::silent()).unwrap();
            assert_eq!(fs::read_to_string(file.path()).unwrap(), after);
        }
        let said = allow_watching(Path::new("/proc/version"), &Progress::silent());
        assert!(said.unwrap_err().to_string().contains("sysctl"));
    }

    #[test]
    fn a_kernel_without_a_feature_is_named() {
        let proc = tempfile::tempdir().unwrap();
        let error = check_kernel(proc.path()).unwrap_err().to_string();
        assert!(error.contains("net namespaces"), "{error}");
        for namespace in ["net", "mnt", "uts", "ipc", "pid"] {
            fs::create_dir_all(proc.path().join("self/ns").join(namespace)).unwrap();
        }
        let error = check_kernel(proc.path()).unwrap_err().to_string();
        assert!(error.contains("modprobe overlay"), "{error}");
        fs::write(proc.path().join("filesystems"), "nodev\toverlay\n").unwrap();
        let error = check_kernel(proc.path()).unwrap_err().to_string();
        assert!(error.contains("cgroup2"), "{error}");
        fs::write(
            proc.path().join("self/mountinfo"),
            "1 2 0:1 / /c rw - cgroup2 c rw\n",
        )
        .unwrap();
        check_kernel(proc.path()).unwrap();
    }

    #[test]
    fn too_little_of_something_says_how_much_is_missing() {
        let error = enough("memory", Some(1 << 30), 2 << 30, "end something else").unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("1024 MiB free, and 2048 MiB needed"),
            "{error}"
        );
        assert!(enough("memory", None, 1, "").is_ok());
    }
}
