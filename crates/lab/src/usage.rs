//! What hosts and programs take of the machine, as the kernel counts it.

use std::{collections::HashSet, fs};

use rustix::process::Pid;
use serde::Serialize;

use crate::{Host, HostId, Layout, cgroup};

/// Memory now, and processor time so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Usage {
    /// Resident memory.
    pub memory_bytes: u64,
    /// User and system time.
    pub cpu_seconds: f64,
}

impl Usage {
    /// Of everything on a host, pods included.
    pub(crate) fn of_host(layout: &Layout, host: HostId) -> Self {
        let mut pids = HashSet::new();
        for hierarchy in cgroup::hierarchies().unwrap_or_default() {
            pids.extend(hierarchy.processes(&layout.host_cgroup(host)));
        }
        pids.into_iter()
            .map(|pid| Self::of(&format!("/proc/{}", pid.as_raw_nonzero())))
            .sum()
    }

    /// Of a program, whose process number is the host's own.
    pub(crate) fn of_program(host: &Host, pid: i32) -> Self {
        let Some(init) = host.pid().and_then(Pid::from_raw) else {
            return Self::default();
        };
        // The host's /proc, seen through its first process.
        Self::of(&format!("/proc/{}/root/proc/{pid}", init.as_raw_nonzero()))
    }

    fn of(folder: &str) -> Self {
        let status = fs::read_to_string(format!("{folder}/status")).unwrap_or_default();
        let stat = fs::read_to_string(format!("{folder}/stat")).unwrap_or_default();
        Self {
            memory_bytes: resident(&status),
            cpu_seconds: processor(&stat),
        }
    }
}

impl std::iter::Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            memory_bytes: sum.memory_bytes + one.memory_bytes,
            cpu_seconds: sum.cpu_seconds + one.cpu_seconds,
        })
    }
}

fn resident(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok())
        .unwrap_or(0)
        << 10
}

/// Fields 14 and 15, in hundredths of a second; the name before them may hold
/// anything, so they are counted from its closing bracket.
fn processor(stat: &str) -> f64 {
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u32 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|f| f.parse::<u32>().ok())
        .sum();
    f64::from(ticks) / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_time_are_read_from_proc() {
        assert_eq!(resident("Name:\tx\nVmRSS:\t    2048 kB\n"), 2 << 20);
        let stat = "7 (a) b) S 1 1 1 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 1 0 100 0 0";
        assert!((processor(stat) - 2.0).abs() < f64::EPSILON);
    }
}
