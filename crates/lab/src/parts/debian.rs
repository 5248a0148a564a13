//! Programs that come with the system: found there, else installed with apt-get.
//!
//! A name with `cni/` before it is a CNI plugin and looked for among those only
//! (iproute2 has a `bridge` too); one that begins with `/` is a file that must
//! exist. Versions are the system's business.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, MutexGuard},
};

use super::{
    Error, Options,
    child::{self},
};
use crate::progress::Progress;

/// Where programs for root are, which PATH of an ordinary user leaves out.
const SYSTEM_FOLDERS: [&str; 4] = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin"];

/// Where distributions put CNI plugins.
const CNI_FOLDERS: [&str; 3] = ["/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"];

/// Whether this process has updated apt's lists; also keeps two threads from
/// running apt-get at once.
static UPDATED: Mutex<bool> = Mutex::new(false);

/// Finds all of them, installing what is missing.
pub(crate) fn ensure(
    wanted: &[(&'static str, &'static str)],
    options: &Options,
    progress: &Progress,
) -> Result<BTreeMap<String, PathBuf>, Error> {
    let missing = missing(wanted, options);
    if !missing.is_empty() {
        install(&missing, progress)?;
    }
    let mut paths = BTreeMap::new();
    for &(program, package) in wanted {
        let path = find(program, options).ok_or_else(|| Error::Apt {
            packages: package.to_owned(),
            detail: format!("it is installed and there is still no {program}"),
        })?;
        paths.insert(program.to_owned(), path);
    }
    Ok(paths)
}

fn missing<'a>(wanted: &[(&'a str, &'a str)], options: &Options) -> Vec<(&'a str, &'a str)> {
    wanted
        .iter()
        .filter(|(program, _)| find(program, options).is_none())
        .copied()
        .collect()
}

/// Where a program is.
fn find(program: &str, options: &Options) -> Option<PathBuf> {
    if program.starts_with('/') {
        return Some(PathBuf::from(program)).filter(|path| path.exists());
    }
    if let Some(plugin) = program.strip_prefix("cni/") {
        return first_in(CNI_FOLDERS.map(OsString::from), plugin);
    }
    let chosen = options
        .bin_dir
        .iter()
        .map(|folder| folder.clone().into_os_string());
    first_in(chosen, program)
        .or_else(|| child::on_path(&options.search_path, program).next())
        .or_else(|| first_in(SYSTEM_FOLDERS.map(OsString::from), program))
}

fn first_in(folders: impl IntoIterator<Item = OsString>, program: &str) -> Option<PathBuf> {
    folders
        .into_iter()
        .map(|folder| Path::new(&folder).join(program))
        .find(|path| path.is_file())
}

fn install(missing: &[(&str, &str)], progress: &Progress) -> Result<(), Error> {
    let packages: BTreeSet<_> = missing.iter().map(|&(_, package)| package).collect();
    let packages: Vec<_> = packages.into_iter().collect();
    let programs: Vec<_> = missing.iter().map(|&(program, _)| program).collect();
    if !rustix::process::geteuid().is_root() {
        return Err(not_root(&programs, &packages));
    }
    let _one_at_a_time = update(progress);
    let task = progress.task(format!("installing {}", packages.join(" ")));
    apt_get(
        ["install", "-y", "--no-install-recommends"]
            .iter()
            .chain(&packages),
    )
    .map_err(|detail| Error::Apt {
        packages: packages.join(" "),
        detail,
    })?;
    task.done("installed");
    Ok(())
}

/// Has apt-get learn what there is, once. As long as what comes back is kept, no other thread
/// runs apt-get.
pub(super) fn update(progress: &Progress) -> MutexGuard<'static, bool> {
    let mut updated = UPDATED
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if !*updated && rustix::process::geteuid().is_root() {
        let task = progress.task("apt-get update");
        // Old lists may still do: let what follows decide.
        let _stale = apt_get(["update"]);
        *updated = true;
        task.done("done");
    }
    updated
}

fn not_root(programs: &[&str], packages: &[&str]) -> Error {
    let verb = if programs.len() == 1 { "is" } else { "are" };
    Error::NotRoot {
        programs: format!("{} {verb}", programs.join(", ")),
        packages: packages.join(" "),
    }
}

/// Runs apt-get and returns its last complaint if it fails.
fn apt_get(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<(), String> {
    let output = Command::new("apt-get")
        .args(["-q", "-o", "DPkg::Lock::Timeout=300"])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rfind(|line| line.starts_with("E: "));
    Err(last.unwrap_or("it gave no reason").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_who_is_not_root_is_told_the_command() {
        let sentence = not_root(&["nft", "conntrack"], &["conntrack", "nftables"]).to_string();
        assert!(
            sentence.starts_with("nft, conntrack are missing"),
            "{sentence}"
        );
        assert!(
            sentence.contains("`apt-get install conntrack nftables`"),
            "{sentence}"
        );
    }

    #[test]
    fn a_cni_plugin_is_not_mistaken_for_a_program_of_the_same_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("no-such-plugin"), "").unwrap();
        let options = Options {
            bin_dir: Some(folder.path().to_path_buf()),
            cache: folder.path().to_path_buf(),
            search_path: OsString::new(),
        };
        assert!(find("no-such-plugin", &options).is_some());
        assert!(find("cni/no-such-plugin", &options).is_none());
    }
}
