//! Kubernetes versions, and everything that differs between them in one table.

use std::{fmt, str::FromStr};

/// A Kubernetes version such as `v1.36.3`, with or without the `v` when read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(semver::Version);

/// The oldest minor that isn't refused.
pub const OLDEST_MINOR: u64 = 23;
/// The newest minor that this version of Steward knows.
pub const NEWEST_MINOR: u64 = 36;

/// Admission plugins that API servers of some minor on don't know any more: naming one
/// would keep them from starting.
const REMOVED_PLUGINS: [(&str, u64); 3] = [
    ("PodSecurityPolicy", 25),
    ("SecurityContextDeny", 30),
    ("PersistentVolumeLabel", 31),
];

/// Admission plugins that API servers don't know before some minor.
const ADDED_PLUGINS: [(&str, u64); 5] = [
    ("ValidatingAdmissionPolicy", 26),
    ("ClusterTrustBundleAttest", 27),
    ("MutatingAdmissionPolicy", 32),
    ("PodTopologyLabels", 33),
    ("NodeDeclaredFeatureValidator", 35),
];

impl Version {
    /// The minor: 36 of 1.36.3.
    pub fn minor(&self) -> u64 {
        self.0.minor
    }

    /// The major: 1.
    pub fn major(&self) -> u64 {
        self.0.major
    }

    /// Tag of the Kubernetes images.
    pub fn tag(&self) -> String {
        // Build metadata (`+k3s1`) can't stand in a tag.
        self.to_string().replace('+', "_")
    }

    /// Tag of konnectivity's images: they follow Kubernetes' minors since 1.28.
    pub fn konnectivity_tag(&self) -> String {
        match self.minor() {
            ..28 => "v0.0.37".into(),
            minor => format!("v0.{minor}.0"),
        }
    }

    /// Tag of CoreDNS: what kubeadm of that minor installs.
    pub fn coredns_tag(&self) -> &'static str {
        match self.minor() {
            ..25 => "v1.8.6",
            25..27 => "v1.9.3",
            27..29 => "v1.10.1",
            29..32 => "v1.11.1",
            32 => "v1.11.3",
            33 => "v1.12.0",
            34 => "v1.12.1",
            35 => "v1.13.1",
            _ => "v1.14.2",
        }
    }

    /// Version of kubeadm's configuration that its own minor reads and writes.
    pub fn kubeadm_api(&self) -> &'static str {
        if self.minor() < 31 {
            "kubeadm.k8s.io/v1beta3"
        } else {
            "kubeadm.k8s.io/v1beta4"
        }
    }

    /// Name of the `ConfigMap` with the kubelets' configuration.
    pub fn kubelet_config_map(&self) -> String {
        if self.minor() < 24 {
            format!("kubelet-config-1.{}", self.minor())
        } else {
            "kubelet-config".into()
        }
    }

    /// Name of the Role that lets nodes read it.
    pub fn kubelet_config_role(&self) -> String {
        format!("kubeadm:{}", self.kubelet_config_map())
    }

    /// Whether administrators are a group of kubeadm's own, bound to `cluster-admin`.
    /// Before that they were `system:masters`.
    pub fn has_admin_group(&self) -> bool {
        self.minor() >= 29
    }

    /// Whether kubeadm binds the API server's kubelet client to a role by its user name,
    /// instead of giving its certificate `system:masters` or a group. It is right for all
    /// versions that know the role, and needed from 1.36 on.
    pub fn binds_kubelet_client(&self) -> bool {
        self.minor() >= OLDEST_MINOR
    }

    /// Whether API servers have admission policies, for all and without a feature gate.
    pub fn has_admission_policies(&self) -> bool {
        self.minor() >= 30
    }

    /// Whether the control plane's taint on nodes has its present name only.
    pub fn has_control_plane_taint(&self) -> bool {
        self.minor() >= 24
    }

    /// Whether an API server of this version knows the admission plugin.
    pub fn knows_plugin(&self, plugin: &str) -> bool {
        let gone = REMOVED_PLUGINS
            .iter()
            .any(|(name, since)| *name == plugin && self.minor() >= *since);
        let not_yet = ADDED_PLUGINS
            .iter()
            .any(|(name, since)| *name == plugin && self.minor() < *since);
        !gone && !not_yet
    }

    /// How many minors a kubelet may be behind.
    pub fn allowed_skew(&self) -> u64 {
        if self.minor() < 28 { 2 } else { 3 }
    }
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = semver::Version::parse(text.strip_prefix('v').unwrap_or(text))
            .map_err(|error| format!("{text:?} is no version ({error}): write it as v1.36.3"))?;
        match (parsed.major, parsed.minor) {
            (1, OLDEST_MINOR..=NEWEST_MINOR) => Ok(Self(parsed)),
            (1, minor) if minor < OLDEST_MINOR => Err(format!(
                "{text} is older than v1.{OLDEST_MINOR}, the oldest that Steward runs"
            )),
            _ => Err(format!(
                "{text} is newer than v1.{NEWEST_MINOR}, the newest that this Steward knows: \
                 upgrade Steward first"
            )),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

/// The minor of a kubelet's version, if it can be read.
pub(crate) fn minor_of(version: &str) -> Option<u64> {
    let parsed = semver::Version::parse(version.strip_prefix('v').unwrap_or(version)).ok()?;
    (parsed.major == 1).then_some(parsed.minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn a_version_is_read_with_and_without_its_letter() {
        assert_eq!(version("1.31.0"), version("v1.31.0"));
        assert_eq!(version("1.31.0").to_string(), "v1.31.0");
        assert_eq!(version("v1.33.1+k3s1").tag(), "v1.33.1_k3s1");
    }

    #[test]
    fn a_version_outside_the_table_says_why() {
        for (text, word) in [
            ("1.22.0", "older"),
            ("1.37.0", "newer"),
            ("1.x", "no version"),
        ] {
            let error = text.parse::<Version>().unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn the_table_follows_the_minor() {
        assert_eq!(
            version("1.23.6").kubelet_config_map(),
            "kubelet-config-1.23"
        );
        assert_eq!(version("1.36.3").konnectivity_tag(), "v0.36.0");
        assert_eq!(version("1.36.3").coredns_tag(), "v1.14.2");
        assert!(!version("1.25.0").knows_plugin("PodSecurityPolicy"));
        assert!(version("1.31.0").knows_plugin("NodeRestriction"));
        assert!(!version("1.31.0").knows_plugin("PodTopologyLabels"));
    }
}
