//! A lab whose maker is killed at a random moment is removed without a trace.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rand::{Rng, SeedableRng, rngs::StdRng};

const PROGRAM: &str = env!("CARGO_BIN_EXE_steward-lab");

/// What this machine has that a lab could leave behind.
#[derive(Debug, PartialEq, Eq)]
struct Traces {
    processes: BTreeSet<String>,
    namespaces: BTreeSet<String>,
    mounts: BTreeSet<String>,
    links: BTreeSet<String>,
    tables: BTreeSet<String>,
    cgroups: BTreeSet<String>,
    files: BTreeSet<String>,
}

/// Another lab may come or go meanwhile, so everything that is not of this lab by
/// any mark, and not in a namespace that no other lab explains, is left out.
fn traces(name: &str) -> Traces {
    let mut traces = Traces {
        processes: BTreeSet::new(),
        namespaces: BTreeSet::new(),
        mounts: lines(&fs::read_to_string("/proc/self/mountinfo").unwrap(), ""),
        links: lines(&output("ip", &["-o", "-br", "link"]), ""),
        tables: lines(&output("nft", &["list", "tables"]), ""),
        cgroups: lines(
            &output(
                "find",
                &["/sys/fs/cgroup", "-type", "d", "-path", "*steward-lab*"],
            ),
            name,
        ),
        files: lines(
            &output("find", &["/var/lib/steward-lab", "-maxdepth", "1"]),
            name,
        ),
    };
    let own: Vec<_> = namespaces_of("self").collect();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let pid = entry.file_name().to_string_lossy().into_owned();
        if pid.parse::<u32>().is_err() {
            continue;
        }
        let read = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
        let environment = String::from_utf8_lossy(&read("environ")).replace('\0', "\n");
        let cgroup = String::from_utf8_lossy(&read("cgroup")).into_owned();
        let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
        // A dead process that its parent has not waited for yet holds nothing.
        if String::from_utf8_lossy(&read("status")).contains("State:\tZ") {
            continue;
        }
        let marked = environment
            .lines()
            .any(|l| l == format!("STEWARD_LAB_MEMBER={name}"))
            || cgroup.contains(&format!("steward-lab/{name}/"))
            || line.contains(name);
        if marked {
            traces.processes.insert(line.clone());
        }
        // Everything of a lab has another host's name, pods on the host's network too;
        // what only has another network or process table is somebody else's.
        let others =
            environment.contains("STEWARD_LAB_MEMBER=") || cgroup.contains("/steward-lab/");
        let foreign: Vec<String> = namespaces_of(&pid)
            .filter(|namespace| !own.contains(namespace))
            .collect();
        let has_own_name = foreign.iter().any(|namespace| namespace.starts_with("uts"));
        if marked || (!others && has_own_name) {
            traces.namespaces.extend(foreign);
        }
    }
    traces
}

fn namespaces_of(pid: &str) -> impl Iterator<Item = String> {
    let folder = format!("/proc/{pid}/ns");
    ["net", "mnt", "uts", "ipc", "pid"]
        .into_iter()
        .filter_map(move |kind| {
            let link = fs::read_link(Path::new(&folder).join(kind)).ok()?;
            Some(link.to_string_lossy().into_owned())
        })
}

fn lines(text: &str, containing: &str) -> BTreeSet<String> {
    text.lines()
        .filter(|line| line.contains(containing))
        .map(str::to_owned)
        .collect()
}

fn output(program: &str, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn down(name: &str) {
    let output = Command::new(PROGRAM)
        .args(["down", "--name", name])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Processes of the machine come and go, so a difference has to last to be one.
fn expect_gone(name: &str, before: &Traces, when: &str) {
    let end = Instant::now() + Duration::from_secs(20);
    while traces(name) != *before && Instant::now() < end {
        std::thread::park_timeout(Duration::from_millis(200));
    }
    assert_eq!(traces(name), *before, "{when}");
}

/// Removes the lab also when an assertion failed.
struct Cleaner(String);

impl Drop for Cleaner {
    fn drop(&mut self) {
        let _ = Command::new(PROGRAM)
            .args(["down", "--name", &self.0])
            .output();
    }
}

#[test]
fn killed_at_a_random_moment_of_up_it_leaves_nothing_after_down() {
    let name = format!("k{}", std::process::id());
    let _cleaner = Cleaner(name.clone());
    let before = traces(&name);
    assert!(before.processes.is_empty(), "{before:?}");
    for seed in 1..=5 {
        // Early moments are the short ones in which much is made at once, so half
        // of the range is spent on the first second.
        let moment = StdRng::seed_from_u64(seed).random_range(0.0..1.0_f64);
        let seconds = if moment < 0.5 {
            moment * 2.0
        } else {
            1.0 + (moment - 0.5) * 50.0
        };
        let mut up = Command::new(PROGRAM)
            .args(["up", "--name", &name, "--workers", "1"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        while Instant::now() < end && up.try_wait().unwrap().is_none() {
            std::thread::yield_now();
            std::thread::park_timeout(Duration::from_millis(5));
        }
        up.kill().unwrap();
        up.wait().unwrap();
        down(&name);
        expect_gone(
            &name,
            &before,
            &format!("seed {seed}, killed after {seconds:.2} s"),
        );
    }
}

#[test]
fn a_lab_whose_every_process_is_killed_is_removed_as_well() {
    let name = format!("e{}", std::process::id());
    let _cleaner = Cleaner(name.clone());
    let before = traces(&name);
    let up = Command::new(PROGRAM)
        .args(["up", "--name", &name, "--workers", "0"])
        .status()
        .unwrap();
    assert!(up.success());
    let with = traces(&name);
    assert!(
        with.processes.len() > 10 && with.namespaces.len() > 10,
        "{with:?}"
    );
    let folders = fs::read_dir(format!("/var/lib/steward-lab/{name}/hosts")).unwrap();
    for host in folders.flatten() {
        let pid = fs::read_to_string(host.path().join("pid")).unwrap();
        assert!(
            Command::new("kill")
                .args(["-9", pid.trim()])
                .status()
                .unwrap()
                .success()
        );
    }
    down(&name);
    expect_gone(&name, &before, "after all was killed");
}
