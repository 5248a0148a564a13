//! What a host sees in place of the machine's own files, and how its kernel side
//! is set: mounts, hostname, loopback, forwarding.

use std::{fs, path::Path, process::Command};

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};

use crate::{
    Error, HostId,
    layout::{HostLayout, MOUNT_POINTS},
};

/// Files the host has of its own, besides folders.
pub(crate) const OWN_FILES: [&str; 3] = ["/etc/hosts", "/etc/hostname", "/etc/resolv.conf"];

/// Mounts the host's own files over the machine's.
pub(super) fn mount_all(files: &HostLayout) -> Result<(), Error> {
    for target in MOUNT_POINTS.into_iter().chain(OWN_FILES).chain(["/run"]) {
        let source = files.path(target);
        mount_bind(&source, target).map_err(|e| Error::files("mount over", target)(e.into()))?;
    }
    mount("proc", "/proc", "proc", MountFlags::empty(), None)
        .map_err(|e| Error::files("mount", "/proc")(e.into()))?;
    // Pods that mount for others (CSI, kube-proxy) ask for shared mounts. The
    // machine's own mounts were cut off before, so nothing travels back to it.
    mount_change(
        "/",
        MountPropagationFlags::SHARED | MountPropagationFlags::REC,
    )
    .map_err(|e| Error::files("share mounts below", "/")(e.into()))
}

/// Hostname, loopback and forwarding.
pub(super) fn settle(host: HostId) -> Result<(), Error> {
    rustix::system::sethostname(host.to_string().as_bytes())
        .map_err(|e| Error::files("set hostname of", host.to_string())(e.into()))?;
    let status = Command::new("ip")
        .args(["link", "set", "lo", "up"])
        .status();
    if !status.is_ok_and(|s| s.success()) {
        return Err(Error::Command {
            what: format!("bringing up loopback on {host}"),
            status: "ip link set lo up".into(),
            output: "is iproute2 installed?".into(),
        });
    }
    write("/proc/sys/net/ipv4/ip_forward", "1")?;
    // Some machines do not have these; then nothing needs to be set.
    let _ = write("/proc/sys/net/ipv4/conf/all/rp_filter", "0");
    let _ = write("/proc/sys/net/ipv4/conf/default/rp_filter", "0");
    if host.is_node() {
        let _ = write("/proc/sys/net/bridge/bridge-nf-call-iptables", "1");
    }
    Ok(())
}

fn write(path: &str, value: &str) -> Result<(), Error> {
    fs::write(Path::new(path), value).map_err(Error::files("set", path))
}
