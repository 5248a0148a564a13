//! Where programs are found: what the caller named, beside this program, the lab's
//! parts, PATH. Refuses to install anything.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Directories in the order in which they are searched.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    directories: Vec<PathBuf>,
}

impl Tools {
    /// The caller's directories, then our own, the lab's parts, PATH, and where Debian puts daemons.
    pub(crate) fn new(named: &[PathBuf]) -> Self {
        let mut directories = named.to_vec();
        let own = env::current_exe().ok();
        directories.extend(own.as_deref().and_then(Path::parent).map(Path::to_owned));
        directories.extend(parts());
        directories.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        directories.push(PathBuf::from("/usr/sbin"));
        Self { directories }
    }

    /// The first program of this name.
    pub(crate) fn find(&self, name: &str) -> Option<PathBuf> {
        self.directories
            .iter()
            .map(|directory| directory.join(name))
            .find(|path| path.is_file())
    }
}

/// Where `steward-lab parts` keeps programs: one folder per part and version.
fn parts() -> Vec<PathBuf> {
    let folder = |name: &str| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let cache = folder("STEWARD_CACHE")
        .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("steward")))
        .or_else(|| Some(folder("HOME")?.join(".cache/steward")));
    let entries = cache.and_then(|cache| fs::read_dir(cache.join("parts")).ok());
    entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .collect()
}

/// The first line with a digit that a program says about its version.
pub(crate) fn version(program: &Path, arguments: &[&str]) -> String {
    let Ok(output) = Command::new(program).args(arguments).output() else {
        return "unknown".to_owned();
    };
    // nginx says it on standard error.
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text)
        .lines()
        .map(str::trim)
        .find(|line| line.contains(|letter: char| letter.is_ascii_digit()))
        .map_or_else(|| "unknown".to_owned(), shorten)
}

/// The word that looks most like a version: `1.2.3`, wherever it stands.
fn shorten(line: &str) -> String {
    line.split([' ', '/', '\t'])
        .find(|word| {
            let word = word.trim_start_matches('v');
            word.starts_with(|letter: char| letter.is_ascii_digit()) && word.contains('.')
        })
        .unwrap_or(line)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_wherever_a_program_says_it() {
        for (line, version) in [
            (
                "HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/",
                "2.6.12-1+deb12u4",
            ),
            ("nginx version: nginx/1.22.1", "1.22.1"),
            (
                "bin/envoy  version: 9e5580933739775e/1.40.0/Clean/RELEASE/BoringSSL",
                "1.40.0",
            ),
            ("Version:      3.7.15", "3.7.15"),
        ] {
            assert_eq!(shorten(line), version);
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_not_found() {
        assert_eq!(Tools::new(&[]).find("no-such-program-anywhere"), None);
    }
}
