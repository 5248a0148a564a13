//! Where programs are found: what the caller named, beside this program, PATH.
//! What the lab keeps as a part can be asked for as well; refuses to install
//! anything into the system.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;
use steward_lab::{
    parts::{self, Part},
    progress::Progress,
};

/// Directories in the order in which they are searched.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    directories: Vec<PathBuf>,
}

impl Tools {
    /// The caller's directories, then our own, then PATH and where Debian puts daemons.
    pub(crate) fn new(named: &[PathBuf]) -> Self {
        let mut directories = named.to_vec();
        let own = env::current_exe().ok();
        directories.extend(own.as_deref().and_then(Path::parent).map(Path::to_owned));
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

/// A program of one of the lab's parts, fetched or built into its cache if need be.
pub(crate) fn from_parts(part: Part, program: &str) -> Result<PathBuf> {
    let programs = parts::ensure(part, &parts::Options::from_env()?, &Progress::stderr())?;
    Ok(programs.path(program)?.to_owned())
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
