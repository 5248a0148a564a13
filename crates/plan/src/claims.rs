//! Whose a hostname is.
//!
//! A name belongs to the tenant that claimed it first, until that tenant neither wants nor uses it. The
//! operator keeps a record of claims where no user can write; the decisions about them are here.
//! A tenant's status is written by its users as well, so a name in it proves nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use jiff::Timestamp;
use kube::ResourceExt as _;
use sha2::{Digest as _, Sha256};
use steward_api::{
    TenantControlPlane, TenantControlPlaneStatus,
    tenant_control_plane::{ExposureMode, ExposureStatus, PreviousExposure},
};

use crate::validate::hostnames;

/// A tenant that holds a name. Another tenant of the same name later is another claimant.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claimant {
    /// Namespace of the tenant.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

impl Claimant {
    /// The tenant as a claimant.
    pub fn of(tenant: &TenantControlPlane) -> Self {
        Self {
            namespace: tenant.namespace().unwrap_or_default(),
            name: tenant.name_any(),
            uid: tenant.uid().unwrap_or_default(),
        }
    }

    /// Reads what [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '/').map(str::to_owned);
        Some(Self {
            namespace: parts.next()?,
            name: parts.next()?,
            uid: parts.next().filter(|uid| !uid.is_empty())?,
        })
    }

    /// `namespace/name`.
    pub fn tenant(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

impl fmt::Display for Claimant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.namespace, self.name, self.uid)
    }
}

/// Name of the object that records the claim to a hostname.
pub fn record_name(hostname: &str) -> String {
    let digest = Sha256::digest(hostname.as_bytes());
    format!("hostname-{}", hex::encode(&digest[..16]))
}

/// Names that the status says are in use: of the present endpoint, and of the one before while
/// something may still dial it.
pub fn in_use(tenant: &TenantControlPlane) -> BTreeSet<String> {
    let status = tenant.status.as_ref();
    let Some(exposure) = status.and_then(|status| status.exposure.as_ref()) else {
        return BTreeSet::new();
    };
    let before = exposure.previous.as_ref().map(names_before);
    names_now(exposure)
        .into_iter()
        .chain(before.into_iter().flatten())
        .collect()
}

/// Names that the tenant may keep if it holds them: those that it wants and those that it uses.
pub fn kept(tenant: &TenantControlPlane) -> BTreeSet<String> {
    let mut all = in_use(tenant);
    all.extend(hostnames(tenant));
    all
}

/// Who gets which name when claims are recorded for the first time: who uses it before who only wants
/// it; of several the oldest, and of those the one with the smallest uid.
pub fn first<'a>(
    tenants: impl IntoIterator<Item = &'a TenantControlPlane>,
) -> BTreeMap<String, Claimant> {
    let mut best: BTreeMap<String, (bool, Timestamp, Claimant)> = BTreeMap::new();
    for tenant in tenants {
        let born = tenant.creation_timestamp().map(|time| time.0);
        let used = in_use(tenant);
        for name in kept(tenant) {
            let bid = (
                !used.contains(&name),
                born.unwrap_or_default(),
                Claimant::of(tenant),
            );
            let rank = |bid: &(bool, Timestamp, Claimant)| (bid.0, bid.1, bid.2.uid.clone());
            if best.get(&name).is_none_or(|other| rank(&bid) < rank(other)) {
                best.insert(name, bid);
            }
        }
    }
    best.into_iter()
        .map(|(name, (_, _, claimant))| (name, claimant))
        .collect()
}

/// Takes out of a status the endpoints whose names the tenant doesn't hold: routes are never made for
/// them.
pub fn disown(status: &mut TenantControlPlaneStatus, held: &BTreeSet<String>) {
    let foreign = |names: Vec<String>| names.iter().any(|name| !held.contains(name));
    let Some(exposure) = status.exposure.as_mut() else {
        return;
    };
    if exposure
        .previous
        .as_ref()
        .is_some_and(|previous| foreign(names_before(previous)))
    {
        exposure.previous = None;
    }
    if foreign(names_now(exposure)) {
        status.exposure = None;
    }
}

fn by_name(mode: ExposureMode) -> bool {
    matches!(mode, ExposureMode::Ingress | ExposureMode::Gateway)
}

fn names_now(exposure: &ExposureStatus) -> Vec<String> {
    let shared = exposure.mode.is_some_and(by_name);
    let names = [&exposure.hostname, &exposure.konnectivity_hostname];
    let given = names.into_iter().flatten().filter(|_| shared);
    given.map(|name| name.to_ascii_lowercase()).collect()
}

fn names_before(previous: &PreviousExposure) -> Vec<String> {
    let names = [&previous.host, &previous.konnectivity_host];
    let given = names.into_iter().filter(|_| by_name(previous.mode));
    given.map(|name| name.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A tenant that wants a name, uses one, and has an age in seconds.
    fn tenant(name: &str, wants: &str, uses: Option<&str>, born: i64) -> TenantControlPlane {
        let status = uses.map_or(
            Value::Null,
            |host| json!({"exposure": {"mode": "Ingress", "hostname": host, "port": 443}}),
        );
        let time = Timestamp::from_second(born).unwrap();
        serde_json::from_value(json!({
            "apiVersion": "steward.butlerlabs.dev/v1alpha1", "kind": "TenantControlPlane",
            "metadata": {"name": name, "namespace": "team", "uid": format!("uid-{name}"),
                "creationTimestamp": time.to_string()},
            "spec": {"kubernetes": {"version": "v1.36.3"}, "controlPlane": {
                "service": {"serviceType": "ClusterIP"}, "ingress": {"hostname": wants}}},
            "status": status,
        }))
        .unwrap()
    }

    fn names(all: &[&str]) -> BTreeSet<String> {
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn at_first_use_beats_a_wish_and_then_age_decides() {
        for (what, tenants, winner) in [
            (
                "an older one that only wants it",
                vec![
                    tenant("thief", "a.example.com", Some("b.example.com"), 1),
                    tenant("victim", "a.example.com", Some("a.example.com"), 2),
                ],
                "victim",
            ),
            (
                "two that use it",
                vec![
                    tenant("young", "a.example.com", Some("a.example.com"), 2),
                    tenant("old", "a.example.com", Some("a.example.com"), 1),
                ],
                "old",
            ),
            (
                "two that want it",
                vec![
                    tenant("young", "a.example.com", None, 2),
                    tenant("old", "a.example.com", None, 1),
                ],
                "old",
            ),
            (
                "two of one age",
                vec![
                    tenant("b", "a.example.com", None, 1),
                    tenant("a", "a.example.com", None, 1),
                ],
                "a",
            ),
            (
                "one that moves away and still uses it",
                vec![
                    tenant("mover", "b.example.com", Some("a.example.com"), 2),
                    tenant("waiting", "a.example.com", None, 1),
                ],
                "mover",
            ),
        ] {
            let found = first(&tenants);
            assert_eq!(found["a.example.com"].name, winner, "{what}");
        }
    }

    #[test]
    fn a_tenant_keeps_what_it_wants_and_what_it_uses() {
        let mut moving = tenant("t", "new.example.com", Some("Old.example.com"), 1);
        let exposure = moving.status.as_mut().unwrap().exposure.as_mut().unwrap();
        exposure.previous = Some(
            serde_json::from_value(json!({"mode": "Gateway", "host": "older.example.com",
                "konnectivityHost": "agents.example.com", "port": 443, "konnectivityPort": 443}))
            .unwrap(),
        );
        let expected = [
            "agents.example.com",
            "new.example.com",
            "old.example.com",
            "older.example.com",
        ];
        assert_eq!(kept(&moving), names(&expected));
    }

    #[test]
    fn a_name_that_is_no_name_is_not_claimed() {
        for wrong in ["10.0.0.1", "*.example.com", "a_b.example.com"] {
            assert!(kept(&tenant("t", wrong, None, 1)).is_empty(), "{wrong}");
        }
    }

    #[test]
    fn an_endpoint_in_the_status_counts_only_if_its_name_is_held() {
        let mut forged = tenant("t", "mine.example.com", Some("theirs.example.com"), 1);
        let status = forged.status.as_mut().unwrap();
        disown(status, &names(&["mine.example.com"]));
        assert_eq!(status.exposure, None);
        let mut own = tenant("t", "mine.example.com", Some("mine.example.com"), 1);
        let status = own.status.as_mut().unwrap();
        let before = status.clone();
        disown(status, &names(&["mine.example.com"]));
        assert_eq!(*status, before);
    }

    #[test]
    fn a_claimant_is_written_and_read() {
        let claimant = Claimant::of(&tenant("t", "a.example.com", None, 1));
        assert_eq!(Claimant::parse(&claimant.to_string()), Some(claimant));
        for wrong in ["", "a/b", "a/b/"] {
            assert_eq!(Claimant::parse(wrong), None, "{wrong}");
        }
    }
}
