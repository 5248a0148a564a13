//! Packages of the system that are not installed on it, but unpacked into a folder.
//!
//! Installed, a time server or systemd's time client would take charge of this machine's
//! clock. So apt-get is only asked to fetch them, with all that they depend on, as if for a
//! machine that has nothing yet; none of their scripts is run. Versions are the system's
//! business, as for packages that are installed.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Command, Stdio},
};

use super::{
    Error, Part,
    child::{self, Event},
    debian,
    error::io,
    sources::Source,
};
use crate::progress::Progress;

/// Where packages of today's Debian put what they name in the older way.
const MERGED: [&str; 4] = ["bin", "sbin", "lib", "lib64"];

/// What a system that is only read has to have to mount on.
const MOUNT_POINTS: [&str; 7] = ["proc", "sys", "dev", "run", "tmp", "root", "lab"];

/// Unpacks every package of a folder; documentation and the modules of a kernel that loads
/// none stay out.
const UNPACK: &str = r#"
for package in "$0"/*.deb; do
    dpkg-deb --fsys-tarfile "$package" > "$0/files.tar"
    tar --extract --file "$0/files.tar" --directory "$1" --no-same-owner --keep-directory-symlink \
        --exclude ./usr/share/doc --exclude ./usr/share/man --exclude ./usr/share/locale --exclude ./usr/lib/uml
done"#;

/// Fetches packages and unpacks them, with files of ours beside them, in `stage/share`.
pub(crate) fn fetch(
    part: Part,
    packages: &[&str],
    files: &[Source],
    stage: &Path,
    log: &Path,
    progress: &Progress,
) -> Result<(), Error> {
    let _one_at_a_time = debian::update(progress);
    let task = progress.task(part.to_string());
    let fetched = stage.join("tmp");
    download(part, packages, &fetched, log)?;
    let system = stage.join("share");
    for folder in MOUNT_POINTS {
        let folder = system.join(folder);
        fs::create_dir_all(&folder).map_err(io("create", &folder))?;
    }
    for folder in MERGED {
        let (real, link) = (system.join("usr").join(folder), system.join(folder));
        fs::create_dir_all(&real).map_err(io("create", &real))?;
        symlink(Path::new("usr").join(folder), &link).map_err(io("link", &link))?;
    }
    let mut unpack = child::command(Path::new("sh"));
    unpack
        .args(["-euc", UNPACK])
        .args([&fetched.join("archives"), &system])
        .stdout(Stdio::null());
    run(unpack, log)?.map_err(|detail| Error::Build {
        part: part.to_string(),
        detail,
        log: log.to_owned(),
    })?;
    for (name, text) in files {
        let path = system.join(name);
        let folder = path.parent().unwrap_or(&system);
        fs::create_dir_all(folder).map_err(io("create", folder))?;
        fs::write(&path, text).map_err(io("write", &path))?;
        if text.starts_with("#!") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
                .map_err(io("make executable", &path))?;
        }
    }
    task.done("fetched");
    Ok(())
}

/// Has apt-get fetch packages for a machine on which nothing is installed.
fn download(part: Part, packages: &[&str], to: &Path, log: &Path) -> Result<(), Error> {
    let (archives, nothing) = (to.join("archives"), to.join("status"));
    let partial = archives.join("partial");
    fs::create_dir_all(&partial).map_err(io("create", &partial))?;
    fs::write(&nothing, "").map_err(io("write", &nothing))?;
    let mut apt = child::command(Path::new("apt-get"));
    apt.args(["install", "-q", "-y", "--no-install-recommends"])
        .args(["--download-only", "-o", "Debug::NoLocking=1"])
        // The folder is ours, and not of the user whom apt-get otherwise becomes for this.
        .args(["-o", "APT::Sandbox::User=root"])
        // What apt-get remembers of the machine is not to be changed by this.
        .args([
            "-o",
            "Dir::Cache::pkgcache=",
            "-o",
            "Dir::Cache::srcpkgcache=",
        ])
        .args(["-o", &format!("Dir::State::status={}", nothing.display())])
        .args([
            "-o",
            &format!("Dir::Cache::archives={}", archives.display()),
        ])
        .args(packages)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(Stdio::null());
    run(apt, log)?.map_err(|detail| Error::Fetch {
        part: part.to_string(),
        what: packages.join(" "),
        detail,
    })
}

/// Runs a tool to its end; if that is a bad one, says what it complained about.
fn run(command: Command, log: &Path) -> Result<Result<(), String>, Error> {
    let mut said = Vec::new();
    let status = child::run(command, log, |event| {
        if let Event::Said(line) = event {
            said.push(line.to_owned());
        }
    })?;
    if status.success() {
        return Ok(Ok(()));
    }
    // apt-get warns first, and says what is wrong last.
    let last = said.pop().unwrap_or_else(|| "it gave no reason".to_owned());
    Ok(Err(last))
}
