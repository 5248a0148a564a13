//! What a check found.

use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// As it should be.
    Fine,
    /// Works, but will bite later; or could not be looked at.
    Warning,
    /// Broken.
    Problem,
}

/// Where in the path from outside to inside a check looks. The order is the
/// order of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// What the user wrote.
    Spec,
    /// Names and addresses.
    Dns,
    /// The front door and its objects.
    FrontDoor,
    /// TLS and certificates.
    Tls,
    /// The control plane's pods and its datastore.
    ControlPlane,
    /// Inside the tenant.
    Inside,
}

impl Group {
    /// As a headline.
    pub fn title(self) -> &'static str {
        match self {
            Self::Spec => "Specification",
            Self::Dns => "Names",
            Self::FrontDoor => "Front door",
            Self::Tls => "TLS",
            Self::ControlPlane => "Control plane",
            Self::Inside => "Inside the tenant",
        }
    }
}

/// Which cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The management cluster.
    Management,
    /// The tenant's own.
    Tenant,
}

/// What to do with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Remove it: the operator makes it anew.
    Delete,
    /// Set an annotation on it.
    Annotate(&'static str, String),
}

/// Something that is safe to do: it loses nothing, and the operator makes good what it
/// removes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// Where.
    pub side: Side,
    /// Of which group and version.
    pub api_version: &'static str,
    /// Of which kind.
    pub kind: &'static str,
    /// In which namespace.
    pub namespace: String,
    /// Which object.
    pub name: String,
    /// What to do.
    pub act: Act,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The check's stable name.
    pub check: &'static str,
    /// Where it looked.
    pub group: Group,
    /// How bad.
    pub severity: Severity,
    /// What the check looks at, as a statement that should be true.
    pub what: &'static str,
    /// What was seen, in one line.
    pub evidence: String,
    /// Why it matters; only where something is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'static str>,
    /// A command to paste; only where something is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// Other problems found that explain this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub follows_from: Vec<&'static str>,
    /// What `doctor --fix` may do about it.
    #[serde(skip)]
    pub remedy: Option<Remedy>,
}
