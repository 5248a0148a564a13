//! The programs of a host: started, restarted, stopped.
//!
//! One lock covers starting a process and noting its number, and is taken again
//! before a dead process is looked up: no end can be missed.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Write,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process_group, wait};

use super::{Answer, Nudge, Unit, UnitState};
use crate::layout::HostLayout;

/// How often files that programs wait for are looked at.
const TICK: Duration = Duration::from_millis(100);

/// Between the end of a program and its next start: long enough not to burn a
/// core on a program that cannot start, short against any test's patience.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Units {
    files: HostLayout,
    search_path: String,
    running: Mutex<BTreeMap<String, Running>>,
}

struct Running {
    unit: Unit,
    pid: Option<Pid>,
    starts: u32,
    not_before: Instant,
    last_end: Option<String>,
}

impl Units {
    pub(super) fn new(files: HostLayout, search_path: String) -> Self {
        Self {
            files,
            search_path,
            running: Mutex::default(),
        }
    }

    pub(super) fn start(&self, unit: Unit) -> Answer {
        let mut units = self.lock();
        if let Some(old) = units.remove(&unit.name) {
            old.end();
        }
        let mut running = Running {
            unit: unit.clone(),
            pid: None,
            starts: 0,
            not_before: Instant::now(),
            last_end: None,
        };
        if running.is_due()
            && let Err(error) = self.spawn(&mut running)
        {
            return Answer::Failed(error);
        }
        units.insert(unit.name, running);
        Answer::Done
    }

    pub(super) fn stop(&self, name: &str) -> Answer {
        match self.lock().remove(name) {
            Some(running) => {
                running.end();
                Answer::Done
            }
            None => Answer::Failed(format!("no program {name} runs here")),
        }
    }

    pub(super) fn nudge(&self, name: &str, nudge: Nudge) -> Answer {
        let pid = self.lock().get(name).and_then(|running| running.pid);
        let Some(pid) = pid else {
            return Answer::Failed(format!("no program {name} runs here"));
        };
        match kill_process_group(pid, nudge.signal()) {
            Ok(()) => Answer::Done,
            Err(error) => Answer::Failed(error.to_string()),
        }
    }

    pub(super) fn list(&self) -> Vec<UnitState> {
        let state = |running: &Running| UnitState {
            name: running.unit.name.clone(),
            pid: running.pid.map(Pid::as_raw_nonzero).map(Into::into),
            restarts: running.starts.saturating_sub(1),
            last_end: running.last_end.clone(),
        };
        self.lock().values().map(state).collect()
    }

    /// Starts what is due and ends what lost its reason, for ever.
    pub(super) fn keep_running(&self) -> ! {
        loop {
            thread::sleep(TICK);
            for running in self.lock().values_mut() {
                match running.pid {
                    Some(_) if !running.is_wanted() => running.end(),
                    None if running.is_due() => {
                        if let Err(error) = self.spawn(running) {
                            running.last_end = Some(error);
                            running.not_before = Instant::now() + PAUSE;
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// Waits for every child, own or orphaned, for ever.
    pub(super) fn collect_the_dead(&self) -> ! {
        loop {
            match wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) => self.note_end(pid, status),
                // No child at the moment.
                _ => thread::sleep(TICK),
            }
        }
    }

    fn note_end(&self, pid: Pid, status: WaitStatus) {
        let mut units = self.lock();
        let Some(running) = units.values_mut().find(|r| r.pid == Some(pid)) else {
            return;
        };
        running.pid = None;
        running.not_before = Instant::now() + PAUSE;
        running.last_end = Some(match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (_, Some(signal)) => format!("signal {signal}"),
            _ => "unknown".into(),
        });
    }

    fn spawn(&self, running: &mut Running) -> Result<(), String> {
        let unit = &running.unit;
        let path = self.files.log(&unit.name);
        let log = || {
            fs::create_dir_all(path.parent().unwrap_or(&path))?;
            File::options().append(true).create(true).open(&path)
        };
        let mut log = log().map_err(|e| format!("cannot open {}: {e}", path.display()))?;
        let _ = writeln!(log, "--- {}", unit.command.join(" "));
        let errors = log.try_clone().map_err(|e| e.to_string())?;
        let [program, arguments @ ..] = unit.command.as_slice() else {
            return Err(format!("{} has no command", unit.name));
        };
        // Its own group, so that a signal reaches what it started, too.
        let child = Command::new(program)
            .args(arguments)
            .env("PATH", &self.search_path)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .map_err(|error| format!("cannot start {program}: {error}"))?;
        running.pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        running.starts += 1;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    fn is_wanted(&self) -> bool {
        self.unit.when.as_ref().is_none_or(|file| file.exists())
    }

    fn is_due(&self) -> bool {
        self.is_wanted()
            && (self.starts == 0 || self.unit.restart)
            && Instant::now() >= self.not_before
    }

    fn end(&self) {
        if let Some(pid) = self.pid {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}
