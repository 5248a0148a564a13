//! Where a lab keeps its files: one folder per lab, and nothing outside of it.
//!
//! The only things outside are empty folders that hosts mount over, because a
//! mount needs something to be mounted on. They are listed in [`MOUNT_POINTS`],
//! and the ones the lab had to make are removed with the last lab.

use std::path::{Path, PathBuf};

use crate::{HostId, LabName};

/// All labs of this machine.
pub(crate) const ROOT: &str = "/var/lib/steward-lab";

/// All labs of this machine, below each cgroup hierarchy's root.
pub(crate) const CGROUPS: &str = "steward-lab";

/// What each host has of its own, besides `/run`. Folders; missing ones are made.
pub(crate) const MOUNT_POINTS: [&str; 8] = [
    "/etc/kubernetes",
    "/etc/cni",
    "/var/lib/kubelet",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/lib/etcd",
    "/var/log/pods",
    "/var/log/containers",
];

/// The files of one lab.
#[derive(Debug, Clone)]
pub struct Layout {
    name: LabName,
}

/// The files of one host.
#[derive(Debug, Clone)]
pub struct HostLayout {
    folder: PathBuf,
}

impl Layout {
    /// Of the lab of this name.
    pub fn new(name: LabName) -> Self {
        Self { name }
    }

    /// The lab's name.
    pub fn name(&self) -> &LabName {
        &self.name
    }

    /// Everything is in here.
    pub fn folder(&self) -> PathBuf {
        Path::new(ROOT).join(self.name.as_str())
    }

    /// What the lab is made of, written before anything is made.
    pub fn record(&self) -> PathBuf {
        self.folder().join("lab.json")
    }

    /// Links to every program, first in a host's PATH.
    pub fn bin(&self) -> PathBuf {
        self.folder().join("bin")
    }

    /// What the name server answers.
    pub fn zone(&self) -> PathBuf {
        self.folder().join("zone.json")
    }

    /// The files of a host.
    pub fn host(&self, host: HostId) -> HostLayout {
        HostLayout {
            folder: self.folder().join("hosts").join(host.to_string()),
        }
    }

    /// Of every host, below each cgroup hierarchy's root.
    pub fn cgroup(&self) -> PathBuf {
        Path::new(CGROUPS).join(self.name.as_str())
    }

    /// Of one host: `system` for its programs, `pods` for the kubelet.
    pub fn host_cgroup(&self, host: HostId) -> PathBuf {
        self.cgroup().join(host.to_string())
    }
}

impl HostLayout {
    /// Everything of the host.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the host's first process reads.
    pub fn record(&self) -> PathBuf {
        self.folder.join("host.json")
    }

    /// The host's first process, as this machine numbers it.
    pub fn pid(&self) -> PathBuf {
        self.folder.join("pid")
    }

    /// Where it takes orders.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("init.sock")
    }

    /// Programs of this host alone, found before the lab's.
    pub fn bin(&self) -> PathBuf {
        self.folder.join("bin")
    }

    /// What a program says.
    pub fn log(&self, program: &str) -> PathBuf {
        self.folder.join("log").join(format!("{program}.log"))
    }

    /// Where the host's own copy of an absolute path is, seen from outside.
    pub fn path(&self, absolute: &str) -> PathBuf {
        self.folder
            .join("fs")
            .join(absolute.trim_start_matches('/'))
    }
}
