//! What members trust of each other, and how an etcd that trusted too much is moved on without losing quorum.
//!
//! Once, one authority signed members and tenants alike, so that a tenant's certificate opened the members' own
//! port. Members have an authority of their own now. An etcd from before is moved in three rollouts, each begun
//! when the one before is complete: trust both, show the new certificate, trust the new alone.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use steward_pki::Pair;

use super::Etcd;

/// Annotation on members: how far the move is.
const ANNOTATION: &str = "steward.butlerlabs.dev/peers";

/// File with both authorities, while members are moved.
const BOTH: &str = "both.crt";

/// How members trust each other.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Peering {
    /// By the authority that signs tenants too.
    Shared,
    /// By both authorities, with certificates of the shared one.
    TrustBoth,
    /// By both authorities, with certificates of their own one.
    NewCertificates,
    /// By their own authority alone.
    Own,
}

impl Peering {
    const ALL: [Self; 4] = [
        Self::Shared,
        Self::TrustBoth,
        Self::NewCertificates,
        Self::Own,
    ];

    /// As it is written on members and in the status.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "Shared",
            Self::TrustBoth => "TrustBoth",
            Self::NewCertificates => "NewCertificates",
            Self::Own => "Own",
        }
    }

    /// The step after this one.
    const fn next(self) -> Self {
        match self {
            Self::Shared => Self::TrustBoth,
            Self::TrustBoth => Self::NewCertificates,
            Self::NewCertificates | Self::Own => Self::Own,
        }
    }

    /// What the members' annotations say besides the authority they were made with. Members from before have none.
    pub(super) fn note(self) -> Option<(String, String)> {
        (self != Self::Shared).then(|| (ANNOTATION.to_owned(), self.as_str().to_owned()))
    }

    /// Files of the Secret with the members' certificates that are mounted.
    pub(super) fn files(self) -> Vec<Value> {
        let file = |key: &str, path: &str| json!({"key": key, "path": path});
        let trusted = match self {
            Self::Shared => return Vec::new(),
            Self::TrustBoth | Self::NewCertificates => BOTH,
            Self::Own => "ca.crt",
        };
        vec![
            file(trusted, "peer-ca.crt"),
            file("tls.crt", "peer.crt"),
            file("tls.key", "peer.key"),
        ]
    }

    /// Arguments of etcd. `folder` has the files; `name` is that of all members together.
    pub(super) fn args(self, folder: &str, name: &str) -> Vec<String> {
        let (authority, certificate) = match self {
            Self::Shared => ("ca", "tls"),
            Self::TrustBoth => ("peer-ca", "tls"),
            Self::NewCertificates | Self::Own => ("peer-ca", "peer"),
        };
        let mut args = vec![
            "--peer-client-cert-auth=true".into(),
            format!("--peer-trusted-ca-file={folder}/{authority}.crt"),
            format!("--peer-cert-file={folder}/{certificate}.crt"),
            format!("--peer-key-file={folder}/{certificate}.key"),
        ];
        if self == Self::Own {
            args.push(format!("--peer-cert-allowed-hostname={name}"));
        }
        args
    }
}

impl Etcd<'_> {
    /// How members should trust each other now. A single member has no peers, and new members are made right.
    pub(super) fn peering(&self) -> Peering {
        let Some(live) = self.live_set() else {
            return Peering::Own;
        };
        if self.replicas() == 1 {
            return Peering::Own;
        }
        let at = peering_of(live);
        if rolled_out(live) { at.next() } else { at }
    }

    /// Whether any member was made to trust the members' own authority.
    pub(super) fn has_own_peers(&self) -> bool {
        self.live_set()
            .is_some_and(|live| peering_of(live) > Peering::Shared)
    }

    /// The members' certificates, with what is trusted meanwhile for as long as any member reads it.
    pub(super) fn peer_files(
        &self,
        peer: &Pair,
        own: &Pair,
        shared: &Pair,
    ) -> BTreeMap<String, String> {
        let mut files: BTreeMap<String, String> = [
            ("ca.crt", &own.certificate),
            ("tls.crt", &peer.certificate),
            ("tls.key", &peer.key),
        ]
        .map(|(key, text)| (key.to_owned(), text.clone()))
        .into();
        let moving = matches!(
            self.peering(),
            Peering::TrustBoth | Peering::NewCertificates
        );
        let read = !self.live_set().is_some_and(rolled_out);
        if moving || (read && self.found("peer", BOTH, "tls.key").is_some()) {
            let both = format!("{}{}", shared.certificate, own.certificate);
            files.insert(BOTH.to_owned(), both);
        }
        files
    }
}

fn peering_of(live: &Value) -> Peering {
    let note = live
        .pointer("/spec/template/metadata/annotations")
        .and_then(|notes| notes.get(ANNOTATION)?.as_str());
    Peering::ALL
        .into_iter()
        .find(|one| Some(one.as_str()) == note)
        .unwrap_or(Peering::Shared)
}

/// Whether every member is of the newest template and ready.
fn rolled_out(live: &Value) -> bool {
    let number = |path: &str| live.pointer(path).and_then(Value::as_i64);
    let text = |path: &str| live.pointer(path).and_then(Value::as_str);
    let wanted = number("/spec/replicas");
    wanted.is_some()
        && number("/metadata/generation") == number("/status/observedGeneration")
        && number("/status/readyReplicas") == wanted
        && text("/status/updateRevision").is_some()
        && text("/status/updateRevision") == text("/status/currentRevision")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(note: Option<&str>, generation: i64, ready: i64, current: &str) -> Value {
        json!({
            "metadata": {"generation": generation},
            "spec": {
                "replicas": 3,
                "template": {"metadata": {"annotations": {ANNOTATION: note}}},
            },
            "status": {
                "observedGeneration": 4,
                "readyReplicas": ready,
                "updateRevision": "b",
                "currentRevision": current,
            },
        })
    }

    #[test]
    fn a_rollout_is_complete_when_every_member_is_new_and_ready() {
        assert!(rolled_out(&set(None, 4, 3, "b")));
        assert!(!rolled_out(&set(None, 5, 3, "b")), "not seen yet");
        assert!(!rolled_out(&set(None, 4, 2, "b")), "one is not ready");
        assert!(!rolled_out(&set(None, 4, 3, "a")), "one is old");
        assert!(!rolled_out(&json!({})), "nothing is known");
    }

    #[test]
    fn each_step_differs_from_the_one_before_in_one_thing() {
        for pair in Peering::ALL.windows(2) {
            assert_eq!(pair[0].next(), pair[1]);
        }
        assert_eq!(Peering::Own.next(), Peering::Own);
        let trusted = |one: Peering| {
            let args = one.args("/p", "n");
            (args[1].clone(), one.files().first().cloned())
        };
        let shown = |one: Peering| one.args("/p", "n")[2].clone();
        assert_eq!(shown(Peering::Shared), shown(Peering::TrustBoth));
        assert_ne!(trusted(Peering::Shared), trusted(Peering::TrustBoth));
        assert_eq!(
            trusted(Peering::TrustBoth),
            trusted(Peering::NewCertificates)
        );
        assert_ne!(shown(Peering::TrustBoth), shown(Peering::NewCertificates));
        assert_eq!(shown(Peering::NewCertificates), shown(Peering::Own));
        assert_ne!(trusted(Peering::NewCertificates), trusted(Peering::Own));
    }

    #[test]
    fn what_members_say_is_read_back() {
        for one in Peering::ALL {
            let note = one.note().map(|(_, text)| text);
            assert_eq!(peering_of(&set(note.as_deref(), 4, 3, "b")), one);
        }
    }
}
