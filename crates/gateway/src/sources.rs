//! Who connects: the open connections and the pace of every source address.
//!
//! A source is an IPv4 address or an IPv6 network of 64 bits, since whoever has one
//! IPv6 address has all of its network. An entry lives as long as its source has a connection
//! or its pace matters; so memory is bounded by connections, not by addresses. One lock of
//! sixty-four is held for one look into a map at accept, and none afterwards.

use std::{
    collections::{HashMap, hash_map::RandomState},
    hash::BuildHasher,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, PoisonError},
};

use crate::limits::{Bucket, Clock, Gauge};

/// All sources that are known now.
#[derive(Debug)]
pub struct Sources {
    shards: Box<[Mutex<Shard>]>,
    hasher: RandomState,
}

/// One source.
#[derive(Debug, Default)]
pub(crate) struct Source {
    live: Gauge,
    handshakes: Bucket,
}

/// A connection of a source. Counted until it is dropped.
#[derive(Debug)]
pub(crate) struct Admission(Arc<Source>);

#[derive(Debug, Default)]
struct Shard {
    known: HashMap<IpAddr, Arc<Source>>,
    /// How many may be known before those that don't matter any more are forgotten.
    sweep_at: usize,
}

/// What the metrics say about sources.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Crowd {
    /// Sources with a connection.
    pub sources: u64,
    /// The most connections that one of them has.
    pub busiest: u64,
}

const SHARDS: usize = 64;

/// Entries of a shard that are kept without a look at what they are worth.
const KEPT: usize = 64;

impl Default for Sources {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
        }
    }
}

impl Sources {
    /// The entry of an address, made if it has none.
    pub(crate) fn of(&self, address: IpAddr, now: Clock) -> Arc<Source> {
        let key = network(address);
        let place = self.hasher.hash_one(key) % SHARDS as u64;
        let shard = &self.shards[usize::try_from(place).unwrap_or_default()];
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = shard.known.get(&key) {
            return Arc::clone(source);
        }
        shard.sweep(now);
        let source = Arc::<Source>::default();
        shard.known.insert(key, Arc::clone(&source));
        source
    }

    /// Looks at all of them.
    pub fn crowd(&self) -> Crowd {
        let mut crowd = Crowd::default();
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            for source in shard.known.values() {
                let live = u64::from(source.live.get());
                crowd.sources += u64::from(live > 0);
                crowd.busiest = crowd.busiest.max(live);
            }
        }
        crowd
    }
}

impl Shard {
    /// Forgets who has no connection and could make as many as anybody. Happens once per
    /// doubling, so a new source pays for a constant number of others.
    fn sweep(&mut self, now: Clock) {
        if self.known.len() < self.sweep_at.max(KEPT) {
            return;
        }
        self.known
            .retain(|_, source| Arc::strong_count(source) > 1 || !source.handshakes.full(now));
        self.sweep_at = 2 * self.known.len();
        self.known.shrink_to(self.sweep_at.max(KEPT));
    }
}

impl Source {
    /// Connections open now, those included that have not said what they want.
    pub(crate) fn live(&self) -> u32 {
        self.live.get()
    }

    /// Whether it may make one more handshake.
    pub(crate) fn in_time(&self, rate: u32, now: Clock) -> bool {
        self.handshakes.try_take(rate, now)
    }
}

impl Admission {
    /// Counts one more connection of a source.
    pub(crate) fn new(source: Arc<Source>) -> Self {
        source.live.try_enter(None);
        Self(source)
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.0.live.leave();
    }
}

/// What counts as one source.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let bits = u128::from(address) >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from(bits))
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_ipv6_network_is_one_source_and_an_ipv4_address_is_one_however_it_is_written() {
        let sources = Sources::default();
        let of = |text| sources.of(address(text), Clock::zero());
        let _one = Admission::new(of("2001:db8::1"));
        let _two = Admission::new(of("2001:db8::ffff:1"));
        let _other = Admission::new(of("2001:db8:0:1::1"));
        let _v4 = Admission::new(of("192.0.2.1"));
        assert_eq!(of("2001:db8::2").live(), 2);
        assert_eq!(of("::ffff:192.0.2.1").live(), 1);
        assert_eq!(of("192.0.2.2").live(), 0);
        let crowd = sources.crowd();
        assert_eq!((crowd.sources, crowd.busiest), (3, 2));
    }

    #[test]
    fn sources_without_connections_are_forgotten_once_their_pace_does_not_matter() {
        let sources = Sources::default();
        let kept = Admission::new(sources.of(address("203.0.113.1"), Clock::zero()));
        let mut now = Clock::zero();
        for number in 0..200_000_u32 {
            let address = IpAddr::V4((0x0a00_0000 + number).into());
            sources.of(address, now).in_time(10, now);
            now = now.after(Duration::from_millis(1));
        }
        let known = |shard: &Mutex<Shard>| shard.lock().unwrap().known.len();
        let all: usize = sources.shards.iter().map(known).sum();
        assert!(all < 20_000, "{all} of 200000 are remembered");
        assert_eq!(sources.of(address("203.0.113.1"), now).live(), 1);
        drop(kept);
        assert_eq!(sources.of(address("203.0.113.1"), now).live(), 0);
    }
}
