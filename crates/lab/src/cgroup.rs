//! Control groups: one tree per lab in every hierarchy the machine has mounted.
//!
//! Works on version 1, version 2, and both at once. A tree is also a list: what
//! runs in a lab is found by it even if it dropped its environment.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rustix::process::Pid;

/// A mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    root: PathBuf,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    V1,
    V1Cpuset,
    V2,
}

/// The hierarchies of this machine.
pub(crate) fn hierarchies() -> io::Result<Vec<Hierarchy>> {
    Ok(parse(&fs::read_to_string("/proc/self/mountinfo")?))
}

fn parse(mountinfo: &str) -> Vec<Hierarchy> {
    mountinfo.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Hierarchy> {
    let (left, right) = line.split_once(" - ")?;
    let root = PathBuf::from(left.split(' ').nth(4)?);
    let mut right = right.split(' ');
    let kind = match (right.next()?, right.nth(1)?) {
        ("cgroup2", _) => Kind::V2,
        ("cgroup", options) if options.split(',').any(|o| o == "cpuset") => Kind::V1Cpuset,
        ("cgroup", _) => Kind::V1,
        _ => return None,
    };
    Some(Hierarchy { root, kind })
}

impl Hierarchy {
    /// Makes `path` and everything above it, ready for processes.
    pub(crate) fn make(&self, path: &Path) -> io::Result<()> {
        let mut folder = self.root.clone();
        for part in path {
            let parent = folder.clone();
            folder.push(part);
            match fs::create_dir(&folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => self.prepare(&parent, &folder)?,
            }
        }
        Ok(())
    }

    fn prepare(&self, parent: &Path, folder: &Path) -> io::Result<()> {
        match self.kind {
            Kind::V1 => Ok(()),
            // Empty, it takes no process.
            Kind::V1Cpuset => ["cpuset.cpus", "cpuset.mems"]
                .into_iter()
                .try_for_each(|file| fs::write(folder.join(file), fs::read(parent.join(file))?)),
            // On a hybrid machine it has no controllers, and this writes nothing. A
            // controller that cannot be handed down is one that nobody uses here.
            Kind::V2 => {
                let controllers = fs::read_to_string(parent.join("cgroup.controllers"))?;
                for controller in controllers.split_whitespace() {
                    let file = parent.join("cgroup.subtree_control");
                    let _ = fs::write(file, format!("+{controller}"));
                }
                Ok(())
            }
        }
    }

    /// Gives `path` this many times the processor time of a single process beside it, if
    /// this hierarchy shares out processors.
    pub(crate) fn weigh(&self, path: &Path, times: u32) {
        let (file, one) = match self.kind {
            Kind::V1 | Kind::V1Cpuset => ("cpu.shares", 1024),
            Kind::V2 => ("cpu.weight", 100),
        };
        let file = self.root.join(path).join(file);
        if file.exists() {
            // A lab without it is slower beside other work, and nothing worse.
            let _ = fs::write(file, (one * times).to_string());
        }
    }

    /// The file that limits writes to disks in `path`, the word before a limit, and the
    /// limit that is none; if this hierarchy has one.
    pub(crate) fn disk_writes(&self, path: &Path) -> Option<(PathBuf, &'static str, &'static str)> {
        let (file, word, never) = match self.kind {
            Kind::V1 | Kind::V1Cpuset => ("blkio.throttle.write_iops_device", "", "0"),
            Kind::V2 => ("io.max", "wiops=", "max"),
        };
        let file = self.root.join(path).join(file);
        file.exists().then_some((file, word, never))
    }

    /// Moves the calling process.
    pub(crate) fn enter(&self, path: &Path) -> io::Result<()> {
        fs::write(self.root.join(path).join("cgroup.procs"), "0")
    }

    /// Every process in `path` and below.
    pub(crate) fn processes(&self, path: &Path) -> Vec<Pid> {
        let mut found = Vec::new();
        for folder in tree(&self.root.join(path)) {
            let Ok(text) = fs::read_to_string(folder.join("cgroup.procs")) else {
                continue;
            };
            found.extend(text.lines().filter_map(|l| Pid::from_raw(l.parse().ok()?)));
        }
        found
    }

    /// Removes `path` and everything below it; says whether it is gone.
    pub(crate) fn remove(&self, path: &Path) -> bool {
        let folder = self.root.join(path);
        for folder in tree(&folder).into_iter().rev() {
            let _ = fs::remove_dir(folder);
        }
        !folder.exists()
    }
}

/// A folder and its subfolders, parents first.
fn tree(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(folder) = todo.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        todo.extend(
            entries
                .flatten()
                .filter(|e| e.file_type().is_ok_and(|t| t.is_dir()))
                .map(|e| e.path()),
        );
        found.push(folder);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_are_read_from_the_mount_table() {
        let table = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
            34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n\
            35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:4 - cgroup cgroup rw,memory\n\
            41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        let kinds: Vec<_> = parse(table).into_iter().map(|h| h.kind).collect();
        assert_eq!(kinds, [Kind::V1Cpuset, Kind::V1, Kind::V2]);
    }
}
