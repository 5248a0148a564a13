//! System calls per operation, counted by strace: the same on any machine, so
//! the number to watch for regressions.

use std::{
    fmt, fs,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

use super::Scene;
use crate::{
    cli::Test,
    load::{Mode, Window, connections, round_trips::RoundTrips},
    results::Metric,
    targets::{Kind, Target},
};

/// Operations per second of effort.
const CONNECTIONS: f64 = 1000.0;
const ROUND_TRIPS: f64 = 5000.0;
/// More per second than any traced proxy can do, so that all workers are always busy: how
/// many events one wait brings then depends on the proxy, not on chance.
const AT_ONCE: f64 = 1e6;
/// How long strace may take to attach to all threads.
const ATTACH: Duration = Duration::from_secs(5);

/// System calls per operation.
struct Calls {
    total: f64,
    kinds: Vec<(String, f64)>,
}

/// Counts for every running proxy, twins and variants left out.
pub(crate) fn run(scene: &mut Scene) {
    if !scene.begins(Test::Syscalls, "system calls per operation") {
        return;
    }
    let Some(strace) = scene.stage.tools.find("strace") else {
        scene
            .results
            .missing
            .push(("strace".to_owned(), "not installed".to_owned()));
        return;
    };
    let mut found = Vec::new();
    for target in &scene.targets {
        if target.name.contains("-again") || target.name.contains("-splice") {
            continue;
        }
        found.push((target.name, count(scene, target, &strace)));
    }
    for (name, outcome) in found {
        let Some([connection, round_trip]) = scene.or_remark(Test::Syscalls, name, outcome) else {
            continue;
        };
        let results = &mut scene.results;
        results.add_one(
            Test::Syscalls,
            name,
            Metric::CallsPerConnection,
            connection.total,
        );
        results.add_one(
            Test::Syscalls,
            name,
            Metric::CallsPerRoundTrip,
            round_trip.total,
        );
        if name == "haproxy" || name.starts_with("steward") {
            let remark =
                format!("{name}: per connection {connection}; per round trip {round_trip}");
            results.remarks.push((Test::Syscalls, remark));
        }
    }
}

fn count(scene: &Scene, target: &Target, strace: &std::path::Path) -> Result<[Calls; 2]> {
    let length = |operations: f64| scene.effort.traced.mul_f64(operations / AT_ONCE);
    let per_connection = traced(target, strace, || {
        connections::at_rate(&scene.dialer, target, AT_ONCE, length(CONNECTIONS))
    })?;
    let mode = if target.kind == Kind::Front {
        Mode::Raw
    } else {
        Mode::Tls
    };
    let mut lanes = RoundTrips::open(&scene.dialer, target, mode)?;
    let per_round_trip = traced(target, strace, || {
        lanes.at_rate(AT_ONCE, length(ROUND_TRIPS))
    })?;
    Ok([per_connection, per_round_trip])
}

fn traced(
    target: &Target,
    strace: &std::path::Path,
    work: impl FnOnce() -> Window,
) -> Result<Calls> {
    let output = target.directory.join("strace.txt");
    let _ = fs::remove_file(&output);
    let pids = target.process.pids();
    let mut command = Command::new(strace);
    command.args(["-c", "-f", "-q", "-o"]).arg(&output);
    for pid in &pids {
        command.arg("-p").arg(pid.to_string());
    }
    let mut child = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("starting strace")?;
    let attached = wait_attached(&pids, &mut child);
    let window = attached.map(|()| {
        let window = work();
        thread::sleep(Duration::from_millis(50));
        window
    });
    interrupt(&mut child);
    let window = window?;
    if window.errors > 0 {
        bail!("{} operations failed under strace", window.errors);
    }
    let summary = fs::read_to_string(&output).context("reading what strace counted")?;
    Calls::read(&summary, window.done).context("strace's summary has no total")
}

/// Waits until every thread says that somebody traces it.
fn wait_attached(pids: &[u32], child: &mut Child) -> Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < ATTACH {
        if let Some(status) = child.try_wait()? {
            bail!("strace ended at once ({status}); may this user trace processes?");
        }
        if pids.iter().all(|pid| all_traced(*pid)) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(10));
    }
    bail!("strace did not attach within {ATTACH:?}")
}

fn all_traced(pid: u32) -> bool {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    tasks.flatten().all(|task| {
        fs::read_to_string(task.path().join("status")).is_ok_and(|status| {
            status
                .lines()
                .any(|line| line.starts_with("TracerPid:") && !line.ends_with("\t0"))
        })
    })
}

fn interrupt(child: &mut Child) {
    if let Some(pid) = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw)
    {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
    }
    let _ = child.wait();
}

impl Calls {
    /// Out of what `strace -c` wrote, per operation.
    fn read(summary: &str, operations: f64) -> Option<Self> {
        let mut kinds = Vec::new();
        for line in summary.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let Some(calls) = words.get(3).and_then(|word| word.parse::<f64>().ok()) else {
                continue;
            };
            match *words.last()? {
                "total" => {
                    return Some(Self {
                        total: calls / operations,
                        kinds,
                    });
                }
                name => kinds.push((name.to_owned(), calls / operations)),
            }
        }
        None
    }
}

impl fmt::Display for Calls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut kinds: Vec<_> = self
            .kinds
            .iter()
            .filter(|(_, calls)| *calls >= 0.05)
            .collect();
        kinds.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (number, (name, calls)) in kinds.into_iter().enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            write!(formatter, "{comma}{name} {calls:.1}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_read_per_operation() {
        let summary = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.000300           1       200           read
 40.00    0.000200           1       150        12 epoll_wait
------ ----------- ----------- --------- --------- ----------------
100.00    0.000500           1       350        12 total
";
        let calls = Calls::read(summary, 100.0).unwrap();
        assert!((calls.total - 3.5).abs() < 1e-9);
        assert_eq!(calls.to_string(), "read 2.0, epoll_wait 1.5");
        assert!(Calls::read("nothing", 1.0).is_none());
    }
}
