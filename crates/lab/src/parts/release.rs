//! The Kubernetes releases there are modules for.
//!
//! A release is named by its minor (`1.36`), which stands for the one patch that
//! is pinned, or by the whole version (`1.36.3`, with or without `v`). Any other
//! version gets a sentence with those that are served.

use std::{fmt, str::FromStr};

use super::Error;

/// A Kubernetes release the lab can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Release {
    /// The oldest that Steward promises to run.
    V1_31,
    /// 1.32.
    V1_32,
    /// 1.33.
    V1_33,
    /// 1.34.
    V1_34,
    /// 1.35, for upgrades to the newest.
    V1_35,
    /// What the lab's own clusters run unless told otherwise.
    #[default]
    V1_36,
}

impl Release {
    /// Every release, oldest first.
    pub const ALL: [Self; 6] = [
        Self::V1_31,
        Self::V1_32,
        Self::V1_33,
        Self::V1_34,
        Self::V1_35,
        Self::V1_36,
    ];

    /// The whole version, without `v`.
    pub const fn version(self) -> &'static str {
        match self {
            Self::V1_31 => "1.31.0",
            Self::V1_32 => "1.32.0",
            Self::V1_33 => "1.33.0",
            Self::V1_34 => "1.34.4",
            Self::V1_35 => "1.35.4",
            Self::V1_36 => "1.36.3",
        }
    }

    /// The minor version, as in `1.36`.
    pub const fn minor(self) -> &'static str {
        match self {
            Self::V1_31 => "1.31",
            Self::V1_32 => "1.32",
            Self::V1_33 => "1.33",
            Self::V1_34 => "1.34",
            Self::V1_35 => "1.35",
            Self::V1_36 => "1.36",
        }
    }

    /// The releases as a sentence lists them.
    pub(crate) fn served() -> String {
        let versions: Vec<_> = Self::ALL.iter().rev().map(|r| r.version()).collect();
        versions.join(", ")
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.version())
    }
}

impl FromStr for Release {
    type Err = Error;

    fn from_str(given: &str) -> Result<Self, Error> {
        let bare = given.trim().trim_start_matches('v');
        Self::ALL
            .into_iter()
            .find(|release| bare == release.version() || bare == release.minor())
            .ok_or_else(|| Error::UnknownRelease {
                given: given.to_owned(),
                served: Self::served(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_found_by_minor_and_by_whole_version() {
        for spelling in ["1.36", "v1.36", "1.36.3", "v1.36.3", " 1.36 "] {
            assert_eq!(spelling.parse::<Release>().unwrap(), Release::V1_36);
        }
    }

    #[test]
    fn a_version_that_is_not_served_gets_the_list_of_those_that_are() {
        for wrong in ["1.36.4", "1.3", "1.30", "latest", ""] {
            let sentence = wrong.parse::<Release>().unwrap_err().to_string();
            assert!(sentence.contains("1.36.3, 1.35.4, 1.34.4"), "{sentence}");
        }
    }
}
