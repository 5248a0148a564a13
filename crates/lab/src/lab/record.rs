//! What a lab is made of, as a file that is written before anything is made.

use std::{fs, io};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use crate::{Error, Layout, init::write_atomically};

/// The file's content.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    /// How many workers there are.
    pub(crate) workers: u8,
    /// The management cluster's release.
    pub(crate) kubernetes: String,
    /// The process that makes the lab.
    pub(crate) maker: u32,
    /// Whether it has done so.
    pub(crate) complete: bool,
}

impl Record {
    pub(crate) fn read(layout: &Layout) -> Result<Self, Error> {
        let path = layout.record();
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::Invalid(format!(
                    "there is no lab {0:?}: make it with `steward-lab up --name {0}`",
                    layout.name().as_str()
                )));
            }
            other => other.map_err(Error::files("read", &path))?,
        };
        serde_json::from_str(&text).map_err(|e| Error::Files {
            what: "understand",
            path,
            source: io::Error::other(e),
        })
    }

    pub(crate) fn write(&self, layout: &Layout) -> Result<(), Error> {
        let text = serde_json::to_string(self).unwrap_or_default();
        write_atomically(&layout.record(), &text)
    }
}

/// Ends a `steward-lab up` that is still at it. A test that makes a lab is not
/// ended: it has other things to do.
pub(super) fn end_maker(layout: &Layout) {
    let Ok(record) = Record::read(layout) else {
        return;
    };
    let program = fs::read_link(format!("/proc/{}/exe", record.maker)).unwrap_or_default();
    let is_lab = program
        .file_name()
        .is_some_and(|n| n.to_string_lossy().starts_with("steward-lab"));
    let maker = i32::try_from(record.maker).ok().and_then(Pid::from_raw);
    if let Some(maker) = maker.filter(|_| !record.complete && is_lab)
        && maker != rustix::process::getpid()
    {
        let _ = kill_process(maker, Signal::KILL);
    }
}
