//! What can go wrong while a lab is made, used or removed.

use std::{fmt::Write as _, io, path::PathBuf};

use crate::{images, parts};

/// Why the lab could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller asked for something that cannot be; nothing was touched.
    #[error("{0}")]
    Invalid(String),
    /// A part could not be had.
    #[error(transparent)]
    Parts(#[from] parts::Error),
    /// An image could not be made.
    #[error(transparent)]
    Images(#[from] images::Error),
    /// A file operation failed.
    #[error("cannot {what} {path}")]
    Files {
        /// What was tried, as a verb.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A program could not be started, or did not end well.
    #[error("{what} failed ({status}); it said:\n{output}")]
    Command {
        /// What the program was for.
        what: String,
        /// How it ended.
        status: String,
        /// The end of its output.
        output: String,
    },
    /// A host's first process did not answer as it should.
    #[error("host {host} does not answer: {why}; see `steward-lab logs {host}/init`")]
    Host {
        /// Which host.
        host: String,
        /// What was seen.
        why: String,
    },
    /// Something did not happen in time.
    #[error("{what} did not happen within {allowed} s; last seen: {last}")]
    Timeout {
        /// What was waited for.
        what: String,
        /// For how long.
        allowed: u64,
        /// What was there instead.
        last: String,
    },
    /// The API server refused something.
    #[error("cannot {what}: {why}")]
    Kubernetes {
        /// What was asked of it.
        what: String,
        /// Its answer.
        why: String,
    },
}

impl Error {
    /// For `map_err` on file operations.
    pub(crate) fn files(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Files { what, path, source }
    }

    /// For `map_err` on requests to an API server.
    pub(crate) fn kubernetes(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |error| Self::Kubernetes {
            what,
            why: error.to_string(),
        }
    }

    /// 2 for what the caller has to change, 1 for the rest.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Invalid(_)
            | Self::Parts(
                parts::Error::UnknownPart { .. }
                | parts::Error::UnknownRelease { .. }
                | parts::Error::BinDir { .. }
                | parts::Error::NoCache
                | parts::Error::NoTool { .. },
            ) => 2,
            _ => 1,
        }
    }

    /// The message with everything that caused it, in one line.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let _ = write!(text, ": {error}");
            cause = error.source();
        }
        text
    }
}
