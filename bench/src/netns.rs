//! The namespace of a run: own loopback, own `TIME_WAIT` table, own processes.
//!
//! `enter` starts this program again under `unshare`; `prepare` is what the
//! inner one does first. Everything started inside dies with it, because it is
//! process 1 of its own process namespace; nothing here touches the host's network.

use std::{
    ffi::OsString,
    fs,
    io::Read as _,
    path::Path,
    process::{Command, ExitCode, Stdio},
    thread,
};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Settings of the namespace. Reno, because BBR's pacing would put timers of
/// the kernel into every number; the port range leaves room below for listeners.
const SYSCTLS: [(&str, &str); 3] = [
    ("/proc/sys/net/ipv4/tcp_congestion_control", "reno"),
    ("/proc/sys/net/ipv4/ip_local_port_range", "16000 65000"),
    ("/proc/sys/net/core/somaxconn", "8192"),
];

/// Runs this program again in its own namespaces, with these arguments and
/// `--work DIR`, and waits for it.
pub(crate) fn enter(arguments: &[OsString], work: &Path) -> Result<ExitCode> {
    let program = std::env::current_exe().context("finding this program")?;
    let mut command = Command::new("unshare");
    command.args(["--net", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    if !rustix::process::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command
        .arg("--")
        .arg(program)
        .args(arguments)
        .arg("--work")
        .arg(work);
    // The inner program ends when this pipe closes, so it never outlives us.
    let mut child = command
        .stdin(Stdio::piped())
        .spawn()
        .context("starting `unshare` (package util-linux); is it installed?")?;
    // Held until the run is over: waiting would close it at once.
    let lifeline = child.stdin.take();
    let status = child.wait().context("waiting for the run")?;
    drop(lifeline);
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// A directory for a run, gone with the returned value.
pub(crate) fn work() -> Result<tempfile::TempDir> {
    let made = tempfile::Builder::new().prefix("steward-bench-").tempdir();
    made.context("making a directory for this run")
}

/// Brings loopback up, sets congestion control, raises the descriptor limit.
pub(crate) fn prepare() -> Result<()> {
    end_with_parent();
    let up = Command::new("ip")
        .args(["link", "set", "lo", "up"])
        .status()
        .context("starting `ip` (package iproute2); is it installed?")?;
    if !up.success() {
        bail!("`ip link set lo up` failed inside the namespace");
    }
    for (path, value) in SYSCTLS {
        fs::write(path, value).with_context(|| format!("setting {path} to `{value}`"))?;
    }
    let limit = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    )
    .context("raising the limit of open files")
}

/// Process 1 ignores an interrupt from the terminal, but its parent does not:
/// when the parent is gone, standard input ends and so do we.
fn end_with_parent() {
    thread::spawn(|| {
        let mut byte = [0_u8; 1];
        while matches!(std::io::stdin().read(&mut byte), Ok(1)) {}
        std::process::exit(130);
    });
}
