//! A host's first process: `steward-lab init FOLDER`, process 1 of its namespaces.
//!
//! It mounts what the host has of its own, starts and restarts the host's
//! programs, collects orphans, and takes orders on a socket. It decides nothing
//! about clusters. When it dies the kernel ends everything on the host, so that
//! removing a host is killing one process.

mod dial;
mod mounts;
mod orders;
mod units;

use std::{
    fs, io,
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

pub(crate) use self::orders::{Answer, Order, UnitState};
use self::units::Units;
use crate::{Error, HostId, LabName, Layout, cgroup, layout::HostLayout};

/// What a host is, as its first process reads it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HostRecord {
    pub(crate) lab: String,
    pub(crate) host: String,
    pub(crate) search_path: String,
}

/// A program of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// By which it is known, and its log named.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Whether it is started again when it ends.
    pub restart: bool,
    /// It runs while this file exists; always, if none is named.
    pub when: Option<PathBuf>,
}

/// The signals of the control socket, by what they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Nudge {
    /// Ends it at once.
    Kill,
    /// Stops it where it is.
    Freeze,
    /// Lets it go on.
    Thaw,
}

impl Nudge {
    pub(crate) fn signal(self) -> Signal {
        match self {
            Self::Kill => Signal::KILL,
            Self::Freeze => Signal::STOP,
            Self::Thaw => Signal::CONT,
        }
    }
}

/// Runs as process 1. Returns only if the host could not be set up.
pub fn run(folder: &Path) -> Result<(), Error> {
    // Before /proc is mounted anew, this is the number the machine knows us by.
    let pid = fs::read_link("/proc/self").map_err(Error::files("read", "/proc/self"))?;
    let record = read_record(folder)?;
    let name: LabName = record.lab.parse()?;
    let host: HostId = record.host.parse()?;
    let layout = Layout::new(name);
    enter_cgroups(&layout, host)?;
    let files = layout.host(host);
    mounts::mount_all(&files)?;
    mounts::settle(host)?;
    let units = Arc::new(Units::new(files.clone(), record.search_path));
    let listener =
        UnixListener::bind(files.socket()).map_err(Error::files("listen on", files.socket()))?;
    write_atomically(&files.pid(), &pid.display().to_string())?;
    thread::spawn({
        let units = Arc::clone(&units);
        move || take_orders(&listener, &units)
    });
    thread::spawn({
        let units = Arc::clone(&units);
        move || units.keep_running()
    });
    units.collect_the_dead()
}

fn read_record(folder: &Path) -> Result<HostRecord, Error> {
    let path = folder.join("host.json");
    let text = fs::read_to_string(&path).map_err(Error::files("read", &path))?;
    serde_json::from_str(&text).map_err(|e| Error::Files {
        what: "understand",
        path,
        source: io::Error::other(e),
    })
}

fn enter_cgroups(layout: &Layout, host: HostId) -> Result<(), Error> {
    let system = layout.host_cgroup(host).join("system");
    for hierarchy in cgroup::hierarchies().map_err(Error::files("read", "/proc/self/mountinfo"))? {
        hierarchy
            .enter(&system)
            .map_err(Error::files("enter cgroup", &system))?;
    }
    Ok(())
}

/// A reader sees the old text or the new, never half.
pub(crate) fn write_atomically(path: &Path, text: &str) -> Result<(), Error> {
    let new = path.with_extension("new");
    fs::write(&new, text).map_err(Error::files("write", &new))?;
    fs::rename(&new, path).map_err(Error::files("write", path))
}

fn take_orders(listener: &UnixListener, units: &Arc<Units>) {
    for stream in listener.incoming().flatten() {
        let units = Arc::clone(units);
        thread::spawn(move || {
            // Whoever hung up before the answer does not want it.
            let _ = orders::serve(stream, &units);
        });
    }
}

/// Sends one order to a host's first process.
pub(crate) fn order(files: &HostLayout, order: &Order) -> io::Result<(Answer, UnixStream)> {
    let mut stream = UnixStream::connect(files.socket())?;
    orders::write_line(&mut stream, order)?;
    let answer = orders::read_line(&mut stream)?;
    Ok((answer, stream))
}
