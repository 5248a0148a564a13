//! What the name server answers, as a file.

use std::{
    collections::BTreeMap,
    fs, io,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};

/// Names and their addresses. `*.example.com` stands for every name below
/// `example.com`; a full name goes before a wildcard, a longer wildcard before a
/// shorter one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zone {
    /// How it treats questions.
    pub mood: Mood,
    /// Lower case, without a dot at the end.
    pub names: BTreeMap<String, Ipv4Addr>,
}

/// How questions are treated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mood {
    /// Answered.
    #[default]
    Answers,
    /// Answered with `SERVFAIL`.
    Fails,
    /// Not answered at all.
    Silent,
}

impl Zone {
    /// The address of a name.
    pub fn find(&self, name: &str) -> Option<Ipv4Addr> {
        let name = name.to_ascii_lowercase();
        if let Some(address) = self.names.get(&name) {
            return Some(*address);
        }
        let mut rest = name.as_str();
        while let Some((_, parent)) = rest.split_once('.') {
            if let Some(address) = self.names.get(&format!("*.{parent}")) {
                return Some(*address);
            }
            rest = parent;
        }
        None
    }
}

pub(super) fn read(path: &Path) -> io::Result<Zone> {
    Ok(serde_json::from_str(&fs::read_to_string(path)?)?)
}

/// A zone that follows its file.
pub(super) struct Watched {
    path: PathBuf,
    changed: Option<SystemTime>,
    zone: Zone,
}

impl Watched {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            changed: None,
            zone: Zone::default(),
        }
    }

    /// The zone as the file has it; the last good one if it cannot be read.
    pub(super) fn current(&mut self) -> &Zone {
        let changed = fs::metadata(&self.path).and_then(|m| m.modified()).ok();
        if (changed.is_none() || changed != self.changed)
            && let Ok(zone) = read(&self.path)
        {
            (self.zone, self.changed) = (zone, changed);
        }
        &self.zone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_match_wins() {
        let address = Ipv4Addr::new;
        let names = [
            ("*.example.com", address(1, 0, 0, 0)),
            ("*.k8s.example.com", address(2, 0, 0, 0)),
            ("t1.k8s.example.com", address(3, 0, 0, 0)),
        ];
        let names = names
            .map(|(name, address)| (name.to_owned(), address))
            .into();
        let zone = Zone {
            mood: Mood::Answers,
            names,
        };
        assert_eq!(zone.find("a.example.com"), Some(address(1, 0, 0, 0)));
        assert_eq!(zone.find("a.b.example.com"), Some(address(1, 0, 0, 0)));
        assert_eq!(zone.find("A.K8s.example.com"), Some(address(2, 0, 0, 0)));
        assert_eq!(zone.find("t1.k8s.example.com"), Some(address(3, 0, 0, 0)));
        assert_eq!(zone.find("example.com"), None);
        assert_eq!(zone.find("com"), None);
    }
}
