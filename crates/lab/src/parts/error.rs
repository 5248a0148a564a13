//! What can go wrong between asking for a part and having its programs.
//!
//! Every message is one sentence that names the part, says what is wrong and what
//! to do about it; `--bin-dir` is always the way out, because a part is nothing
//! but programs in a folder.

use std::{
    io,
    path::{Path, PathBuf},
};

/// A part that could not be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name of a part is not one of ours.
    #[error("there is no part called {given:?}: the parts are {served}")]
    UnknownPart {
        /// What was asked for.
        given: String,
        /// The names there are.
        served: String,
    },
    /// The Kubernetes version is not one of those with a module.
    #[error(
        "Kubernetes {given} is not served: this lab has {served}; ask for one of these, or for a module under lab/parts/ to be added"
    )]
    UnknownRelease {
        /// What was asked for.
        given: String,
        /// The versions there are.
        served: String,
    },
    /// A program was asked of a part that does not hold it.
    #[error("part {part} holds no program called {program}: it holds {held}")]
    UnknownProgram {
        /// The part.
        part: String,
        /// The program asked for.
        program: String,
        /// The programs there are.
        held: String,
    },
    /// `--bin-dir` is not a folder.
    #[error("--bin-dir {} is not a folder: name the folder that holds the ready-made programs", path.display())]
    BinDir {
        /// The path given.
        path: PathBuf,
    },
    /// There is nowhere to keep what is built.
    #[error(
        "there is no folder to keep the lab's parts in: set STEWARD_CACHE to one, or HOME to yours"
    )]
    NoCache,
    /// The disk is too full to build.
    #[error(
        "{part} needs {} free at {} to be made and there is {}: free some, set STEWARD_CACHE to a folder on another disk, or name a folder with its programs by --bin-dir",
        crate::parts::cache::size(*need), at.display(), crate::parts::cache::size(*have)
    )]
    Disk {
        /// The part.
        part: String,
        /// Bytes wanted.
        need: u64,
        /// Bytes there are.
        have: u64,
        /// Where.
        at: PathBuf,
    },
    /// A tool of this machine is missing.
    #[error(
        "{part} cannot be made because {tool} is not on this machine: {hint}, or name a folder with its programs by --bin-dir"
    )]
    NoTool {
        /// The part.
        part: String,
        /// The tool.
        tool: &'static str,
        /// How to get it.
        hint: &'static str,
    },
    /// Something could not be downloaded.
    #[error(
        "{what} could not be fetched for {part} ({detail}): the first build needs the network; connect this machine and try again, or name a folder with its programs by --bin-dir"
    )]
    Fetch {
        /// The part.
        part: String,
        /// What was being fetched.
        what: String,
        /// The fetching tool's own last word.
        detail: String,
    },
    /// What was downloaded is not what is pinned.
    #[error(
        "what was fetched for {part} is not what is pinned ({detail}): do not use it, and check the proxy or mirror it came from"
    )]
    Tampered {
        /// The part.
        part: String,
        /// What differs.
        detail: String,
    },
    /// The compiler said no.
    #[error("{part} did not build ({detail}): the whole output is in {}", log.display())]
    Build {
        /// The part.
        part: String,
        /// The first line that looks like the reason.
        detail: String,
        /// Where the rest is.
        log: PathBuf,
    },
    /// Packages are missing and only root may install them.
    #[error(
        "{programs} missing on this machine and only root may install packages: run `apt-get install {packages}` as root"
    )]
    NotRoot {
        /// The programs, with the verb.
        programs: String,
        /// The packages they come in.
        packages: String,
    },
    /// apt-get did not do it.
    #[error(
        "apt-get could not install {packages} ({detail}): check the network and the package sources, or install them by other means"
    )]
    Apt {
        /// The packages.
        packages: String,
        /// apt-get's own last word.
        detail: String,
    },
    /// The file system said no.
    #[error("could not {doing} {}: check that it is writable and not full", path.display())]
    Io {
        /// What was attempted.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A helper program could not be started or did not answer.
    #[error("could not run {program}: check that it is executable")]
    Run {
        /// The program.
        program: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// Turns an I/O error into ours; for `map_err`.
pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_path_buf();
    move |source| Error::Io {
        doing,
        path,
        source,
    }
}
