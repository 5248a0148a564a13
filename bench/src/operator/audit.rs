//! What an operator asked of the API server, counted in the audit log.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use serde_json::Value;

/// What the harness calls itself, so that its own requests can be left out.
pub(super) const HARNESS: &str = "steward-bench";

/// Reads an audit log from where it stopped the last time.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    place: u64,
}

/// Writes in a stretch of the log. Leases are left out: they are a clock, not work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Writes {
    /// All of them.
    pub(super) all: u64,
    /// Those that were refused.
    pub(super) refused: u64,
    /// Those that wrote a status.
    pub(super) status: u64,
    /// How often what was written, as `verb resource`.
    pub(super) kinds: BTreeMap<String, u64>,
}

impl Log {
    /// From the end of what is there now.
    pub(super) fn at_end(path: &Path) -> Result<Self> {
        let place = path
            .metadata()
            .with_context(|| format!("reading {}", path.display()))?
            .len();
        Ok(Self {
            path: path.to_owned(),
            place,
        })
    }

    /// What came since.
    pub(super) fn since(&mut self) -> Result<Writes> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.place))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        // A line that is still being written belongs to the next stretch.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        self.place += u64::try_from(whole)?;
        Ok(Writes::of(&text[..whole]))
    }
}

impl Writes {
    fn of(text: &str) -> Self {
        let mut writes = Self::default();
        for line in text.lines() {
            if let Ok(event) = serde_json::from_str(line) {
                writes.count(&event);
            }
        }
        writes
    }

    fn count(&mut self, event: &Value) {
        let word = |pointer: &str| {
            event
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (verb, who, what) = (
            word("/verb"),
            word("/userAgent"),
            word("/objectRef/resource"),
        );
        let writes = matches!(
            verb,
            "create" | "update" | "patch" | "delete" | "deletecollection"
        );
        let ours = who.starts_with(HARNESS) || who.starts_with("kube-apiserver");
        if !writes || ours || what == "leases" || word("/stage") != "ResponseComplete" {
            return;
        }
        let part = word("/objectRef/subresource");
        let code = event
            .pointer("/responseStatus/code")
            .and_then(Value::as_u64)
            .unwrap_or_default();
        self.all += 1;
        self.refused += u64::from(code >= 400);
        self.status += u64::from(part == "status");
        let slash = if part.is_empty() { "" } else { "/" };
        *self
            .kinds
            .entry(format!("{verb} {what}{slash}{part}"))
            .or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn event(who: &str, verb: &str, what: &str, code: u16) -> String {
        format!(
            r#"{{"stage":"ResponseComplete","verb":"{verb}","userAgent":"{who}","objectRef":{{"resource":"{what}"}},"responseStatus":{{"code":{code}}}}}"#
        ) + "\n"
    }

    #[test]
    fn only_an_operators_writes_count() {
        let text = [
            event("operator", "patch", "secrets", 200),
            event("operator", "update", "services", 409),
            event("operator", "get", "secrets", 200),
            event("operator", "update", "leases", 200),
            event("steward-bench", "create", "tenantcontrolplanes", 201),
            event("kube-apiserver/v1.36", "create", "services", 201),
        ];
        let writes = Writes::of(&text.concat());
        assert_eq!((writes.all, writes.refused, writes.status), (2, 1, 0));
        assert_eq!(writes.kinds["patch secrets"], 1);
    }

    #[test]
    fn half_a_line_waits_for_its_other_half() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut log = Log::at_end(file.path()).unwrap();
        let line = event("operator", "patch", "secrets", 200);
        let (first, second) = line.split_at(20);
        file.write_all(first.as_bytes()).unwrap();
        assert_eq!(log.since().unwrap().all, 0);
        file.write_all(second.as_bytes()).unwrap();
        assert_eq!(log.since().unwrap().all, 1);
    }
}
