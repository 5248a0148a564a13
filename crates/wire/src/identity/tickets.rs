//! What clients need to resume their sessions, sealed so that only servers of one identity can read it.
//!
//! The key is derived from the identity's private key and the time. So a client resumes at any replica
//! that has the certificate, also after a restart, and nobody keeps or sends anything for it. It changes
//! every six hours. Whoever has the private key could open tickets, but no recorded connection: each
//! makes a key agreement of its own, resumed or not.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use arc_swap::ArcSwapOption;
use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey},
    hkdf::{HKDF_SHA256, Prk, Salt},
};
use rustls::pki_types::PrivateKeyDer;

/// How long one key seals. It opens for one such time more.
const PERIOD: Duration = Duration::from_hours(6);

/// Says what the key is for, so that it can't be one that is used for anything else.
const PURPOSE: &[u8] = b"steward session tickets";

/// Bytes before the nonce: the number of the period.
const PERIOD_LEN: usize = 4;

/// Seals and opens tickets of one identity.
pub(super) struct Tickets {
    root: Prk,
    /// The key that seals now.
    current: ArcSwapOption<Key>,
}

struct Key {
    period: u32,
    key: RandomizedNonceKey,
}

impl Tickets {
    pub(super) fn of(key: &PrivateKeyDer<'_>) -> Self {
        Self {
            root: Salt::new(HKDF_SHA256, PURPOSE).extract(key.secret_der()),
            current: ArcSwapOption::empty(),
        }
    }

    /// For how long a client can count on a ticket, in seconds.
    pub(super) fn lifetime() -> u32 {
        u32::try_from(PERIOD.as_secs()).unwrap_or(u32::MAX)
    }

    pub(super) fn seal(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.seal_in(period_of(SystemTime::now()), plain)
    }

    pub(super) fn open(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.open_in(period_of(SystemTime::now()), ticket)
    }

    fn seal_in(&self, now: u32, plain: &[u8]) -> Option<Vec<u8>> {
        let period = now.to_be_bytes();
        let mut sealed = plain.to_vec();
        let key = self.key(now, now)?;
        let nonce = key
            .key
            .seal_in_place_append_tag(Aad::from(period), &mut sealed)
            .ok()?;
        Some([&period[..], nonce.as_ref(), &sealed].concat())
    }

    /// Opens what was sealed in this period or in the one before; or after, by somebody whose clock
    /// is ahead.
    fn open_in(&self, now: u32, ticket: &[u8]) -> Option<Vec<u8>> {
        let (period, rest) = ticket.split_first_chunk::<PERIOD_LEN>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        let sealed_in = u32::from_be_bytes(*period);
        if sealed_in.abs_diff(now) > 1 {
            return None;
        }
        let mut plain = sealed.to_vec();
        let key = self.key(now, sealed_in)?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = key.key.open_in_place(nonce, Aad::from(*period), &mut plain);
        let length = opened.ok()?.len();
        plain.truncate(length);
        Some(plain)
    }

    /// The key of a period; that of the present one is kept.
    fn key(&self, now: u32, period: u32) -> Option<Arc<Key>> {
        let kept = self.current.load_full();
        if let Some(kept) = kept.filter(|kept| kept.period == period) {
            return Some(kept);
        }
        let key = Arc::new(Key {
            period,
            key: self.derive(period)?,
        });
        if period == now {
            self.current.store(Some(Arc::clone(&key)));
        }
        Some(key)
    }

    fn derive(&self, period: u32) -> Option<RandomizedNonceKey> {
        let period = period.to_be_bytes();
        let info = [&period[..]];
        let mut key = [0; 32];
        let expanded = self.root.expand(&info, &AES_256_GCM).ok()?;
        expanded.fill(&mut key).ok()?;
        RandomizedNonceKey::new(&AES_256_GCM, &key).ok()
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tickets")
    }
}

fn period_of(time: SystemTime) -> u32 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs() / PERIOD.as_secs()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::pem::PemObject;

    use super::*;
    use crate::identity::testing::Authority;

    fn key() -> PrivateKeyDer<'static> {
        let pair = Authority::new("ca").issue("a.example");
        PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap()
    }

    #[test]
    fn a_replica_with_the_same_key_opens_what_another_sealed() {
        let key = key();
        let ticket = Tickets::of(&key).seal(b"secret").unwrap();
        let opened = Tickets::of(&key).open(&ticket);
        assert_eq!(opened.as_deref(), Some(&b"secret"[..]));
        assert!(!ticket.windows(6).any(|part| part == b"secret"));
    }

    #[test]
    fn nobody_else_opens_it() {
        let ticket = Tickets::of(&key()).seal(b"secret").unwrap();
        assert_eq!(Tickets::of(&key()).open(&ticket), None);
    }

    #[test]
    fn a_changed_or_cut_ticket_is_not_opened() {
        let tickets = Tickets::of(&key());
        let ticket = tickets.seal(b"secret").unwrap();
        for place in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[place] ^= 1;
            assert_eq!(tickets.open(&changed), None, "byte {place}");
            assert_eq!(tickets.open(&ticket[..place]), None, "{place} bytes");
        }
    }

    #[test]
    fn a_ticket_outlives_the_period_after_its_own_but_no_more() {
        let tickets = Tickets::of(&key());
        let ticket = tickets.seal_in(7, b"secret").unwrap();
        for now in [6, 7, 8] {
            assert!(tickets.open_in(now, &ticket).is_some(), "in period {now}");
        }
        for now in [5, 9, u32::MAX] {
            assert!(tickets.open_in(now, &ticket).is_none(), "in period {now}");
        }
    }
}
