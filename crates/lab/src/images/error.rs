//! What can go wrong with an image.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::parts;

/// An image that could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name cannot be an image's.
    #[error(
        "{given:?} cannot be the name of an image because {why}: write it like registry.example/path/name:tag"
    )]
    Name {
        /// The name.
        given: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A file is not an image.
    #[error(
        "{} is not a container image: {why}; give a docker archive or an OCI archive, as `docker save` or the lab write them",
        path.display()
    )]
    NotAnImage {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A library of a program is missing.
    #[error(
        "{} needs the library {library}, which this machine does not have: install the package it comes in",
        program.display()
    )]
    Library {
        /// The program.
        program: PathBuf,
        /// The library.
        library: String,
    },
    /// A path does not fit into an archive.
    #[error("{path} is too long a path for an image: keep it under 100 characters")]
    Path {
        /// The path inside the image.
        path: String,
    },
    /// A file changed while it was copied.
    #[error("{} changed while it was being put into an image: try again once nothing writes to it", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A part the image is made of could not be had.
    #[error(transparent)]
    Part(#[from] parts::Error),
    /// The file system said no.
    #[error("could not {doing} {}: check that it exists, is readable and that the disk is not full", path.display())]
    Io {
        /// What was attempted.
        doing: &'static str,
        /// On what.
        path: PathBuf,
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
