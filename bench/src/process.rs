//! Programs under measurement: started, watched through `/proc`, ended with us.
//!
//! CPU time is the scheduler's own count in nanoseconds, over all threads of the
//! process and its children (nginx works in children). Nothing here judges it.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use rustix::time::{ClockId, clock_gettime};

/// How to start a program.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// What it is called in messages and in the name of its log.
    pub(crate) name: String,
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Its arguments.
    pub(crate) arguments: Vec<OsString>,
    /// Variables added to our environment.
    pub(crate) environment: Vec<(&'static str, String)>,
}

/// A started program; dropping it kills it.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Program {
    /// A program with arguments and nothing else.
    pub(crate) fn new<A: Into<OsString>>(
        name: &str,
        path: &Path,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            path: path.to_owned(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: Vec::new(),
        }
    }

    /// Starts it; what it says goes to a file in `directory`.
    pub(crate) fn start(&self, directory: &Path) -> Result<Process> {
        let log = directory.join(format!("{}.log", self.name));
        let file = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        let child = Command::new(&self.path)
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("starting {}", self.path.display()))?;
        Ok(Process {
            name: self.name.clone(),
            child,
            log,
        })
    }
}

impl Process {
    /// The process and everything under it.
    pub(crate) fn pids(&self) -> Vec<u32> {
        descendants(self.child.id(), &parents())
    }

    /// CPU time so far.
    pub(crate) fn cpu(&self) -> Duration {
        let nanos = self.pids().into_iter().map(task_nanos).sum();
        Duration::from_nanos(nanos)
    }

    /// CPU time so far, by process: what to compare when workers come and go.
    pub(crate) fn cpu_by_pid(&self) -> BTreeMap<u32, Duration> {
        self.pids()
            .into_iter()
            .map(|pid| (pid, Duration::from_nanos(task_nanos(pid))))
            .collect()
    }

    /// Resident memory in KiB.
    pub(crate) fn rss_kib(&self) -> u64 {
        self.pids().into_iter().filter_map(rss_kib).sum()
    }

    /// Open descriptors.
    pub(crate) fn descriptors(&self) -> usize {
        let count = |pid| fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        self.pids().into_iter().map(count).sum()
    }

    /// Fails, with the end of its log, if it is not running any more.
    pub(crate) fn check(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!(
                "{} ended ({status}); it said: {}",
                self.name,
                self.last_words()
            );
        }
        Ok(())
    }

    /// The end of its log.
    pub(crate) fn last_words(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(6)..].join("\n  ")
    }

    /// Its own process id, without its children.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Children first: a killed master can't stop its workers.
        for pid in self.pids().into_iter().rev() {
            if let Some(pid) = i32::try_from(pid)
                .ok()
                .and_then(rustix::process::Pid::from_raw)
            {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
        let _ = self.child.wait();
    }
}

/// CPU time of a process that somebody else started.
#[cfg(feature = "operator")]
pub(crate) fn cpu_of(pid: u32) -> Duration {
    Duration::from_nanos(task_nanos(pid))
}

/// The process that was started with this argument.
#[cfg(feature = "operator")]
pub(crate) fn with_argument(argument: &str) -> Option<u32> {
    parents().into_keys().find(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0)
            .any(|word| word == argument.as_bytes())
    })
}

/// CPU time of this process, threads that ended included.
pub(crate) fn own_cpu() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        now.tv_sec.unsigned_abs(),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    )
}

fn parents() -> BTreeMap<u32, u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return BTreeMap::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid: u32| {
            Some((
                pid,
                parent(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?,
            ))
        })
        .collect()
}

/// The parent in a line of `/proc/PID/stat`, whose second field may hold anything.
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

fn descendants(root: u32, parents: &BTreeMap<u32, u32>) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        found.extend(
            parents
                .iter()
                .filter(|(_, parent)| **parent == pid)
                .map(|(child, _)| *child),
        );
        next += 1;
    }
    found
}

fn task_nanos(pid: u32) -> u64 {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return 0;
    };
    tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok())
        .filter_map(|line| line.split_whitespace().next()?.parse::<u64>().ok())
        .sum()
}

fn rss_kib(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_brackets_does_not_hide_its_parent() {
        assert_eq!(parent("42 (a) b (c) S 7 42 42 0"), Some(7));
    }

    #[test]
    fn children_of_children_count() {
        let parents = BTreeMap::from([(2, 1), (3, 2), (4, 1), (9, 8)]);
        assert_eq!(descendants(1, &parents), [1, 2, 4, 3]);
    }

    #[test]
    fn our_own_memory_and_time_are_readable() {
        assert!(rss_kib(std::process::id()).unwrap() > 0);
        assert!(own_cpu() > Duration::ZERO);
    }
}
