//! Removing a lab, whatever state it is in.
//!
//! Nothing is remembered that could be forgotten: a lab's processes carry its
//! name in their environment or sit in its cgroups, its mounts and links are
//! inside its hosts' namespaces and vanish with them, its files are one folder.
//! So it makes no difference whether the lab was stopped, killed half-made, or
//! killed while being removed.

use std::{
    collections::{BTreeSet, HashSet},
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    Error, LabName, Layout, cgroup,
    host::MARK,
    lab::lock_machine,
    layout::{CGROUPS, MOUNT_POINTS, ROOT},
};

/// Killed processes are gone in moments; on a busy machine a pod's teardown takes
/// a few seconds.
const PATIENCE: Duration = Duration::from_mins(1);

const PAUSE: Duration = Duration::from_millis(50);

/// Removes a lab. Fine if there is none.
pub(crate) fn sweep(layout: &Layout) -> Result<(), Error> {
    kill_all(layout)?;
    unmount(&layout.folder())?;
    remove_cgroups(&layout.cgroup())?;
    remove_folder(&layout.folder())?;
    let _machine = lock_machine()?;
    if labs().is_empty() {
        remove_cgroups(Path::new(CGROUPS))?;
        remove_mount_points()?;
    }
    Ok(())
}

/// Every lab this machine has, or has rests of.
pub(crate) fn labs() -> Vec<LabName> {
    let folders = fs::read_dir(ROOT).into_iter().flatten().flatten();
    let mut names: BTreeSet<LabName> = folders
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    names.extend(all_processes().filter_map(|pid| lab_of(pid)?.parse().ok()));
    names.into_iter().collect()
}

fn kill_all(layout: &Layout) -> Result<(), Error> {
    let end = Instant::now() + PATIENCE;
    // A process between fork and exec has not got its new environment yet, so
    // an empty list has to be seen twice.
    let mut empty = 0;
    while empty < 2 {
        let found = processes(layout);
        if Instant::now() > end {
            return Err(Error::Timeout {
                what: format!("the end of lab {}", layout.name()),
                allowed: PATIENCE.as_secs(),
                last: describe(&found),
            });
        }
        empty = if found.is_empty() { empty + 1 } else { 0 };
        for pid in found {
            let _ = kill_process(pid, Signal::KILL);
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Every process of a lab, but not the caller.
pub(crate) fn processes(layout: &Layout) -> HashSet<Pid> {
    let name = layout.name().as_str();
    let mut found: HashSet<Pid> = all_processes()
        .filter(|pid| lab_of(*pid).is_some_and(|lab| lab == name))
        .collect();
    for hierarchy in cgroup::hierarchies().unwrap_or_default() {
        found.extend(hierarchy.processes(&layout.cgroup()));
    }
    found.remove(&rustix::process::getpid());
    found.retain(|pid| !is_dead(*pid));
    found
}

fn all_processes() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

fn lab_of(pid: Pid) -> Option<String> {
    let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).ok()?;
    environment
        .split(|byte| *byte == 0)
        .find_map(|entry| entry.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="))
        .map(|name| String::from_utf8_lossy(name).into_owned())
}

/// Dead processes that nobody has waited for hold nothing.
fn is_dead(pid: Pid) -> bool {
    fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero()))
        .is_ok_and(|status| status.contains("State:\tZ"))
}

fn describe(pids: &HashSet<Pid>) -> String {
    let name = |pid: &Pid| {
        let pid = pid.as_raw_nonzero();
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        format!("process {pid} ({})", name.trim())
    };
    pids.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Normally there is none: hosts mount in namespaces of their own.
fn unmount(folder: &Path) -> Result<(), Error> {
    let table = fs::read_to_string("/proc/self/mountinfo")
        .map_err(Error::files("read", "/proc/self/mountinfo"))?;
    let below = table
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .map(PathBuf::from);
    let mut below: Vec<PathBuf> = below.filter(|path| path.starts_with(folder)).collect();
    below.sort();
    for path in below.iter().rev() {
        rustix::mount::unmount(path, rustix::mount::UnmountFlags::DETACH)
            .map_err(|e| Error::files("unmount", path)(e.into()))?;
    }
    Ok(())
}

fn remove_cgroups(path: &Path) -> Result<(), Error> {
    let end = Instant::now() + PATIENCE;
    let hierarchies =
        cgroup::hierarchies().map_err(Error::files("read", "/proc/self/mountinfo"))?;
    // A cgroup stays busy for a moment after its last process is gone.
    while !hierarchies.iter().all(|hierarchy| hierarchy.remove(path)) {
        if Instant::now() > end {
            return Err(Error::Timeout {
                what: format!("removing cgroup {}", path.display()),
                allowed: PATIENCE.as_secs(),
                last: "it is still in use".into(),
            });
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

fn remove_folder(folder: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::files("remove", folder)(error))
        }
        _ => Ok(()),
    }
}

/// The list of folders that had to be made to mount on.
fn made_list() -> PathBuf {
    Path::new(ROOT).join("made")
}

/// Makes what is missing of [`MOUNT_POINTS`], and notes it before.
pub(crate) fn make_mount_points() -> Result<(), Error> {
    for point in MOUNT_POINTS {
        let missing: Vec<&Path> = Path::new(point)
            .ancestors()
            .take_while(|folder| !folder.exists())
            .collect();
        for folder in missing.into_iter().rev() {
            note_made(folder)?;
            match fs::create_dir(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(Error::files("make", folder)(error));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

fn note_made(folder: &Path) -> Result<(), Error> {
    let list = made_list();
    let mut file = fs::File::options()
        .append(true)
        .create(true)
        .open(&list)
        .map_err(Error::files("open", &list))?;
    io::Write::write_all(&mut file, format!("{}\n", folder.display()).as_bytes())
        .map_err(Error::files("write", &list))
}

/// Removes the folders of the list that are empty, and all labs' folder.
fn remove_mount_points() -> Result<(), Error> {
    let list = made_list();
    let text = fs::read_to_string(&list).unwrap_or_default();
    for folder in text.lines().rev() {
        // One with something in it belongs to somebody else by now.
        let _ = fs::remove_dir(folder);
    }
    match fs::remove_file(&list) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(Error::files("remove", &list)(error));
        }
        _ => {}
    }
    // Another lab may be starting this very moment; then it stays.
    let _ = fs::remove_dir(ROOT);
    Ok(())
}
