//! What an object claims: a hostname and the addresses behind it; and who wins
//! where two claim the same.
//!
//! The older object keeps a name, then the one whose namespace and name sort
//! first. A loser is told who has it. A wildcard never takes a name that another
//! object claims exactly: the table prefers the exact one.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use ipnet::IpNet;

/// One object's wish to have connections for a hostname.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Lower case, exact or `*.suffix`.
    pub host: String,
    /// Where its connections go; may be empty while no pod is ready.
    pub backends: Vec<SocketAddr>,
    /// Who may connect; empty is everyone.
    pub allow: Vec<IpNet>,
    /// A wildcard that stands for one label only.
    pub one_label: bool,
    /// Who claims: `Ingress ns/name` or `TLSRoute ns/name`.
    pub owner: String,
    /// Older wins; see `world::seniority`.
    pub seniority: (i64, String),
    /// Who made the claiming object, if a controller did; see `world::family`.
    pub family: Option<(String, String)>,
}

/// The outcome: what to route, and who lost what to whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Winning claims by hostname.
    pub routes: BTreeMap<String, Claim>,
    /// Hostname and losing owner, with the owner who keeps it.
    pub lost: BTreeMap<(String, String), String>,
}

/// Gives each hostname to its oldest claimant.
pub fn settle(mut claims: Vec<Claim>) -> Settled {
    claims.sort_by(|a, b| (&a.seniority, &a.owner).cmp(&(&b.seniority, &b.owner)));
    let mut settled = Settled::default();
    for claim in claims {
        match settled.routes.get_mut(&claim.host) {
            None => {
                settled.routes.insert(claim.host.clone(), claim);
            }
            // One object may reach a name by several listeners or rules; and one tenant by an
            // Ingress and a TLSRoute, while it moves from one to the other.
            Some(first) if first.owner == claim.owner || first.kin_of(&claim) => {
                first.backends.extend(claim.backends);
                first.backends.sort_unstable();
                first.backends.dedup();
            }
            Some(first) => {
                settled
                    .lost
                    .insert((claim.host, claim.owner), first.owner.clone());
            }
        }
    }
    settled
}

impl Claim {
    fn kin_of(&self, other: &Self) -> bool {
        self.family.is_some() && self.family == other.family
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(host: &str, owner: &str, born: i64, port: u16) -> Claim {
        Claim {
            host: host.into(),
            backends: vec![SocketAddr::from(([127, 0, 0, 1], port))],
            allow: Vec::new(),
            one_label: false,
            owner: owner.into(),
            seniority: (born, owner.into()),
            family: None,
        }
    }

    #[test]
    fn the_older_object_keeps_a_name_and_the_younger_is_told() {
        let settled = settle(vec![
            claim("a", "Ingress x/young", 9, 1),
            claim("a", "Ingress x/old", 1, 2),
        ]);
        assert_eq!(settled.routes["a"].owner, "Ingress x/old");
        assert_eq!(
            settled.lost[&("a".into(), "Ingress x/young".into())],
            "Ingress x/old"
        );
    }

    #[test]
    fn two_objects_of_one_tenant_share_a_name() {
        let of = |tenant: &str, owner: &str, born| Claim {
            family: Some(("x".into(), tenant.into())),
            ..claim("a", owner, born, 1)
        };
        let settled = settle(vec![
            of("t1", "Ingress x/t1", 1),
            of("t1", "TLSRoute x/t1", 2),
            of("t2", "TLSRoute x/t2", 3),
        ]);
        assert_eq!(settled.lost.len(), 1);
        assert!(
            settled
                .lost
                .contains_key(&("a".into(), "TLSRoute x/t2".into()))
        );
    }

    #[test]
    fn one_object_naming_a_host_twice_gets_both_backends() {
        let settled = settle(vec![
            claim("a", "TLSRoute x/r", 1, 1),
            claim("a", "TLSRoute x/r", 1, 2),
        ]);
        assert_eq!(settled.routes["a"].backends.len(), 2);
        assert!(settled.lost.is_empty());
    }
}
