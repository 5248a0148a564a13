//! Full and slow disks.
//!
//! A host's folders lie on the machine's disk, which nobody may fill. So a folder is
//! first moved to a disk of its own, of memory and small, and that one is filled. A
//! slow disk is the machine's own, slow for the programs of one host (not for its
//! pods) and for nobody else.

use std::{fs, os::linux::fs::MetadataExt, path::Path};

use super::{Fault, shell};
use crate::{
    Error, Host, HostId, Lab, Nudge, cgroup,
    layout::{MOUNT_POINTS, ROOT},
};

/// Takes up what is left of a disk.
const FILLER: &str = ".filled";

impl Lab {
    /// Moves one of a host's own folders to a disk of its own of this size. The program
    /// that works there is killed and comes back; it finds all its files. Lasts as long
    /// as the lab does.
    pub fn small_disk(
        &self,
        host: HostId,
        folder: &str,
        program: &str,
        mebibytes: u32,
    ) -> Result<(), Error> {
        let host = self.host(host)?;
        if !MOUNT_POINTS.contains(&folder) {
            return Err(Error::Invalid(format!(
                "{folder} is not a folder that a host has of its own: name one of {}",
                MOUNT_POINTS.join(", ")
            )));
        }
        // Nothing may change while it is copied.
        host.nudge(program, Nudge::Freeze)?;
        let moved = shell(&host, &move_script(folder, mebibytes));
        // Frozen, it still holds the old files: the one that comes after it has the new.
        host.nudge(program, Nudge::Kill)?;
        moved
    }

    /// Fills the disk below a folder to the last byte. Only one made by
    /// [`Lab::small_disk`]: never the machine's.
    pub fn fill_disk(&self, host: HostId, folder: &str) -> Result<Fault, Error> {
        let host = self.host(host)?;
        if !has_small_disk(&host, folder)? {
            return Err(Error::Invalid(format!(
                "{folder} of {} lies on the machine's disk, which is not filled: give it one of its own with small_disk first",
                host.id()
            )));
        }
        // Writing fails in the end: that is the point.
        let fill = format!(
            "cat /dev/zero > {folder}/{FILLER} 2>/dev/null || true; test -s {folder}/{FILLER}"
        );
        shell(&host, &fill)?;
        Ok(Fault::new(&host, format!("rm -f {folder}/{FILLER}")))
    }

    /// Lets the programs of a host write only this many times a second to the disk.
    pub fn slow_disk(&self, host: HostId, writes_per_second: u32) -> Result<Fault, Error> {
        let host = self.host(host)?;
        let disk = disk_of(Path::new(ROOT))?;
        let group = self.layout().host_cgroup(host.id()).join("system");
        let hierarchies =
            cgroup::hierarchies().map_err(Error::files("read", "/proc/self/mountinfo"))?;
        let knob = hierarchies.iter().find_map(|h| h.disk_writes(&group));
        let (file, word, never) = knob.ok_or_else(|| {
            Error::Invalid(
                "this machine cannot slow a disk: it has neither the blkio nor the io controller for control groups".into(),
            )
        })?;
        let set = |limit: &str| format!("echo '{disk} {word}{limit}' > {}", file.display());
        shell(&host, &set(&writes_per_second.max(1).to_string()))?;
        Ok(Fault::new(&host, set(never)))
    }
}

/// The bind mount stays below: nothing is copied back, and the lab's folder goes with the lab.
fn move_script(folder: &str, mebibytes: u32) -> String {
    format!(
        "new=$(mktemp -d /run/disk.XXXXXX)\n\
         mount -t tmpfs -o size={mebibytes}m,mode=0700 disk $new\n\
         if ! cp -a {folder}/. $new/; then umount $new; rmdir $new; exit 1; fi\n\
         mount --move $new {folder} || {{ mount --bind $new {folder}; umount $new; }}\n\
         rmdir $new\n"
    )
}

fn has_small_disk(host: &Host, folder: &str) -> Result<bool, Error> {
    let pid = host.pid().unwrap_or_default();
    let table = format!("/proc/{pid}/mounts");
    let mounts = fs::read_to_string(&table).map_err(Error::files("read", &table))?;
    let mine = |line: &str| {
        let mut words = line.split(' ').skip(1);
        words.next() == Some(folder) && words.next() == Some("tmpfs")
    };
    Ok(mounts.lines().any(mine))
}

/// The disk below a path, as the kernel numbers it. A partition cannot be slowed by
/// itself: then it is the disk it is on.
fn disk_of(path: &Path) -> Result<String, Error> {
    let device = fs::metadata(path)
        .map_err(Error::files("look at", path))?
        .st_dev();
    let number = format!(
        "{}:{}",
        rustix::fs::major(device),
        rustix::fs::minor(device)
    );
    let system = fs::canonicalize(format!("/sys/dev/block/{number}")).map_err(|_| {
        Error::Invalid(format!(
            "the disk below {} cannot be slowed: it is no block device of this machine",
            path.display()
        ))
    })?;
    if !system.join("partition").exists() {
        return Ok(number);
    }
    let whole = system.join("../dev");
    let whole = fs::read_to_string(&whole).map_err(Error::files("read", &whole))?;
    Ok(whole.trim().to_owned())
}
