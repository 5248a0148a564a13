//! What programs said: for `steward-lab logs`, and for whoever waited in vain.

use std::{fmt::Write as _, fs, path::Path};

use crate::Host;

/// The last lines of a file; nothing if there is no such file.
pub(crate) fn tail(path: &Path, lines: usize) -> String {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// The names of the programs a host has logs of.
pub(crate) fn programs(host: &Host) -> Vec<String> {
    let folder = host.log("x");
    let entries = fs::read_dir(folder.parent().unwrap_or(&folder))
        .into_iter()
        .flatten()
        .flatten();
    let mut names: Vec<String> = entries
        .filter_map(|e| {
            e.file_name()
                .to_str()?
                .strip_suffix(".log")
                .map(str::to_owned)
        })
        .collect();
    names.sort();
    names
}

/// The last errors of every program of some hosts, in a few lines each.
pub(crate) fn digest(hosts: &[Host]) -> String {
    let mut digest = String::new();
    for host in hosts {
        for program in programs(host) {
            let text = fs::read(host.log(&program)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let bad: Vec<&str> = text.lines().filter(|line| is_bad(line)).collect();
            for line in &bad[bad.len().saturating_sub(3)..] {
                let _ = writeln!(digest, "{}/{program}: {line}", host.id());
            }
        }
    }
    digest
}

/// As Kubernetes' programs, containerd and etcd mark what went wrong.
fn is_bad(line: &str) -> bool {
    let klog = line.starts_with('E') || line.starts_with('F');
    let klog = klog && line.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
    klog || [
        "level=error",
        "level=fatal",
        "\"level\":\"error\"",
        "\"level\":\"fatal\"",
        "panic:",
        "Error:",
    ]
    .iter()
    .any(|mark| line.contains(mark))
}
