//! How many connections fit into this process: what it may open, and what it may use of memory.
//!
//! Decides from numbers; reads the kernel's limits where nobody gives one. Enforces nothing.

use std::{fs, path::Path};

/// Memory of a connection that carries data: two sockets with what waits in them, and what one
/// side has not taken yet. An idle one takes about 10 KiB.
const PER_CONNECTION: u64 = 64 * 1024;

/// Memory of the process without connections: tables, threads, the view of a cluster.
const BASE: u64 = 64 * 1024 * 1024;

/// Fewer are no use to anybody.
const FEWEST: u64 = 16;

/// What the engine may open, and how many connections that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Connections that have a route.
    pub connections: u32,
    /// Sockets, with some for clients that have not said where they want to go.
    pub sockets: usize,
}

impl Capacity {
    /// From the sockets that the process may open, the memory that it may use, and the number
    /// that somebody gave.
    pub fn new(sockets: usize, memory: Option<u64>, given: Option<u32>) -> Self {
        // A connection takes two; an eighth is left for those that are not connections yet.
        let by_sockets = sockets as u64 / 2 - sockets as u64 / 16;
        let by_memory = memory.map(|memory| memory.saturating_sub(BASE) / PER_CONNECTION);
        let wanted = given.map(u64::from).or(by_memory).unwrap_or(u64::MAX);
        let connections = by_sockets.min(wanted).max(FEWEST);
        let connections = u32::try_from(connections).unwrap_or(u32::MAX);
        let room = (connections as usize).saturating_mul(9) / 4 + 64;
        Self {
            connections,
            sockets: sockets.min(room),
        }
    }
}

/// What this process may use of memory: the limit of its control group, or all there is.
pub fn memory() -> Option<u64> {
    memory_in(Path::new("/"))
}

fn memory_in(root: &Path) -> Option<u64> {
    let read = |path: &str| fs::read_to_string(root.join(path.trim_start_matches('/'))).ok();
    let groups = read("proc/self/cgroup").unwrap_or_default();
    let mut files = vec![
        "sys/fs/cgroup/memory.max".to_owned(),
        "sys/fs/cgroup/memory/memory.limit_in_bytes".to_owned(),
    ];
    for group in groups.lines() {
        let mut parts = group.splitn(3, ':').skip(1);
        match (parts.next(), parts.next()) {
            (Some(""), Some(path)) => files.push(format!("sys/fs/cgroup{path}/memory.max")),
            (Some(kinds), Some(path)) if kinds.split(',').any(|kind| kind == "memory") => {
                files.push(format!("sys/fs/cgroup/memory{path}/memory.limit_in_bytes"));
            }
            _ => {}
        }
    }
    // A group without a limit says "max", or a number beyond all memory.
    let limits = files
        .iter()
        .filter_map(|file| read(file)?.trim().parse().ok());
    let installed = read("proc/meminfo").and_then(|text| installed(&text));
    limits.chain(installed).min()
}

fn installed(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    #[test]
    fn the_scarcer_of_sockets_and_memory_decides() {
        let of = |sockets, memory, given| Capacity::new(sockets, memory, given).connections;
        assert_eq!(of(1_000_000, Some(1024 * MIB), None), 15_360);
        assert_eq!(of(16_000, Some(1024 * MIB), None), 7_000);
        assert_eq!(of(16_000, None, None), 7_000);
        assert_eq!(of(16_000, Some(1024 * MIB), Some(100)), 100);
        // Who gives a number knows the memory, but can't open more than may be.
        assert_eq!(of(1_000_000, Some(128 * MIB), Some(20_000)), 20_000);
        assert_eq!(of(16_000, None, Some(20_000)), 7_000);
        assert_eq!(of(16, Some(MIB), None), 16);
    }

    #[test]
    fn sockets_are_bounded_where_memory_is_scarcer() {
        let capacity = Capacity::new(1_000_000, Some(1024 * MIB), None);
        assert_eq!(capacity.sockets, 34_624);
        assert_eq!(Capacity::new(200, None, None).sockets, 200);
    }

    #[test]
    fn the_limit_of_a_control_group_is_found_in_both_versions() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(memory_in(dir.path()), None);
        write("proc/meminfo", "MemTotal:       2048 kB\nMemFree: 1 kB\n");
        assert_eq!(memory_in(dir.path()), Some(2048 * 1024));
        write("sys/fs/cgroup/memory.max", "max\n");
        assert_eq!(memory_in(dir.path()), Some(2048 * 1024));
        write("proc/self/cgroup", "0::/system.slice/gateway.service\n");
        write(
            "sys/fs/cgroup/system.slice/gateway.service/memory.max",
            "1048576\n",
        );
        assert_eq!(memory_in(dir.path()), Some(1_048_576));
        write("proc/self/cgroup", "5:cpu,memory:/pod\n");
        write("sys/fs/cgroup/memory/pod/memory.limit_in_bytes", "524288\n");
        assert_eq!(memory_in(dir.path()), Some(524_288));
    }
}
