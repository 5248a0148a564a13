//! The host of a route: one name, or all names below one.

use std::{fmt, str::FromStr};

use steward_wire::hello::{BadName, Name};

/// `t1.k8s.example.com`, or `*.k8s.example.com` for every name that ends so.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// Exactly this name, in lower case.
    Exact(Box<str>),
    /// Any name that ends in a dot and this one, however many labels are before
    /// it. A more specific route wins.
    Below(Box<str>),
}

/// What keeps a string from being a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadHost {
    /// Not a host name.
    #[error("`{host}` {why}; write a name such as t1.k8s.example.com or *.k8s.example.com")]
    Name {
        /// What was given.
        host: String,
        /// What is wrong with it.
        why: BadName,
    },
    /// An asterisk in the wrong place.
    #[error(
        "`{0}` has an asterisk that is not its whole first label; write it as *.k8s.example.com"
    )]
    Asterisk(String),
}

impl Host {
    /// The name without the asterisk.
    pub fn name(&self) -> &str {
        match self {
            Self::Exact(name) | Self::Below(name) => name,
        }
    }
}

impl FromStr for Host {
    type Err = BadHost;

    fn from_str(text: &str) -> Result<Self, BadHost> {
        let below = text.strip_prefix("*.");
        let name = below.unwrap_or(text);
        if name.contains('*') {
            return Err(BadHost::Asterisk(text.into()));
        }
        let name = Name::parse(name.as_bytes()).map_err(|why| BadHost::Name {
            host: text.into(),
            why,
        })?;
        let name = Box::from(name.as_str());
        Ok(if below.is_some() {
            Self::Below(name)
        } else {
            Self::Exact(name)
        })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => f.write_str(name),
            Self::Below(name) => write!(f, "*.{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_a_trailing_dot_do_not_matter() {
        assert_eq!(
            "T1.K8s.Example.COM.".parse(),
            Ok(Host::Exact("t1.k8s.example.com".into()))
        );
        assert_eq!(
            "*.K8s.example.com".parse(),
            Ok(Host::Below("k8s.example.com".into()))
        );
    }

    #[test]
    fn what_is_no_host_is_refused_with_a_sentence() {
        for (text, part) in [
            ("", "is empty"),
            ("a..b", "empty label"),
            ("a.*.b", "asterisk"),
            ("*", "asterisk"),
            ("*a.b", "asterisk"),
            ("10.0.0.1", "address"),
            ("under score", "character"),
            ("https://a.b", "character"),
            ("a.b:443", "character"),
        ] {
            let error = text.parse::<Host>().unwrap_err().to_string();
            assert!(
                error.contains(part) && error.contains(text),
                "{text}: {error}"
            );
        }
    }
}
