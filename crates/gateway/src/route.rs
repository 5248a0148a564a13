//! One route: what it was given, and the state that outlives changes to it.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use ipnet::IpNet;

use crate::{
    backend::{self, Backend},
    host::Host,
    limits::{Bucket, Clock, Gauge},
    metrics::RouteCounters,
    shares::Shares,
    trie::Keyed,
};

pub use crate::spec::{ProxyVersion, RouteSpec};

/// A route in the table. Immutable but for its state.
#[derive(Debug)]
pub struct Route {
    host: Host,
    backends: Box<[Arc<Backend>]>,
    send_proxy: Option<ProxyVersion>,
    allow: Box<[IpNet]>,
    max_connections: Option<u32>,
    max_handshakes_per_second: Option<u32>,
    one_label: bool,
    state: Arc<State>,
}

/// What belongs to the host rather than to one version of its route.
#[derive(Debug, Default)]
struct State {
    live: Gauge,
    handshakes: Bucket,
    turn: AtomicUsize,
    /// Made with the first connection: most routes of a large table sleep.
    counters: OnceLock<Arc<RouteCounters>>,
}

/// Why a route does not take a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// The source is not in `allow`.
    Source,
    /// `maxConnections` are open.
    Connections,
    /// `maxHandshakesPerSecond` were made.
    Rate,
    /// The route has its share of the gateway's connections.
    Share,
    /// The gateway has as many connections as it may.
    Full,
}

impl Route {
    /// A new route; takes over the state of the one it replaces.
    pub(crate) fn new(host: Host, spec: &RouteSpec, old: Option<&Self>) -> Self {
        let known = old.map_or(&[] as &[_], |old| &old.backends);
        let backend = |address: &SocketAddr| {
            let known = known.iter().find(|backend| backend.address() == *address);
            known.map_or_else(|| Arc::new(Backend::new(*address)), Arc::clone)
        };
        Self {
            host,
            backends: spec.backends.iter().map(backend).collect(),
            send_proxy: spec.send_proxy,
            allow: spec.allow.clone().into_boxed_slice(),
            max_connections: spec.max_connections,
            max_handshakes_per_second: spec.max_handshakes_per_second,
            one_label: spec.one_label,
            state: old.map_or_else(Arc::default, |old| Arc::clone(&old.state)),
        }
    }

    /// What the route was made from.
    pub fn spec(&self) -> RouteSpec {
        RouteSpec {
            backends: self.addresses().collect(),
            send_proxy: self.send_proxy,
            allow: self.allow.to_vec(),
            max_connections: self.max_connections,
            max_handshakes_per_second: self.max_handshakes_per_second,
            one_label: self.one_label,
        }
    }

    /// Its host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Whether its wildcard stands for this many labels.
    pub(crate) fn covers(&self, labels: usize) -> bool {
        labels == 1 || !self.one_label
    }

    fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.backends.iter().map(|backend| backend.address())
    }

    /// Its backends and their state.
    pub fn backends(&self) -> &[Arc<Backend>] {
        &self.backends
    }

    /// Connections open now, over all versions of the route.
    pub fn live(&self) -> u32 {
        self.state.live.get()
    }

    /// The PROXY header its backends get.
    pub fn send_proxy(&self) -> Option<ProxyVersion> {
        self.send_proxy
    }

    /// Lets a connection in and counts it, here and in `shares`, or says why not.
    pub(crate) fn enter(&self, source: IpAddr, now: Clock, shares: &Shares) -> Result<(), Denied> {
        let source = source.to_canonical();
        if !self.allow.is_empty() && !self.allow.iter().any(|range| range.contains(&source)) {
            return Err(Denied::Source);
        }
        let rate = self.max_handshakes_per_second;
        if let Some(rate) = rate.or(shares.limits().route_handshakes)
            && !self.state.handshakes.try_take(rate, now)
        {
            return Err(Denied::Rate);
        }
        if !shares.route_may_grow(self.live()) {
            return Err(Denied::Share);
        }
        if !shares.enter() {
            return Err(Denied::Full);
        }
        if !self.state.live.try_enter(self.max_connections) {
            shares.leave();
            return Err(Denied::Connections);
        }
        Ok(())
    }

    /// A connection that was let in is over.
    pub(crate) fn leave(&self, shares: &Shares) {
        self.state.live.leave();
        shares.leave();
    }

    /// A number that all versions of the route have, and no other route.
    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.state).addr()
    }

    /// Whether every backend was tried.
    pub(crate) fn exhausted(&self, tried: u64) -> bool {
        (0..self.backends.len().min(64)).all(|place| tried & 1 << place != 0)
    }

    /// Whether this is a later version of a route, and a connection of that one may go on here:
    /// with other backends, told of the client in the same way.
    pub(crate) fn succeeds(&self, old: &Self) -> bool {
        Arc::ptr_eq(&self.state, &old.state)
            && self.send_proxy == old.send_proxy
            && !self.addresses().eq(old.addresses())
    }

    /// The next backend to try, given those tried already.
    pub(crate) fn choose(&self, tried: u64, now: Clock) -> Option<(usize, &Arc<Backend>)> {
        let turn = self.state.turn.fetch_add(1, Relaxed);
        backend::choose(&self.backends, tried, turn, now)
    }

    /// The route's counters, made by `make` if this is its first connection.
    pub(crate) fn counters(
        &self,
        make: impl FnOnce() -> Arc<RouteCounters>,
    ) -> &Arc<RouteCounters> {
        self.state.counters.get_or_init(make)
    }
}

impl Keyed for Route {
    fn key(&self) -> &str {
        self.host.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shares::Limits;

    fn route(spec: &RouteSpec, old: Option<&Route>) -> Route {
        Route::new("a.example.com".parse().unwrap(), spec, old)
    }

    fn open() -> Shares {
        Shares::new(Limits::none())
    }

    fn source(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn only_allowed_sources_enter_also_when_mapped_into_ipv6() {
        let spec = RouteSpec {
            allow: vec!["192.0.2.0/24".parse().unwrap()],
            ..RouteSpec::default()
        };
        let route = route(&spec, None);
        let enter = |text| route.enter(source(text), Clock::zero(), &open());
        assert_eq!(enter("192.0.2.7"), Ok(()));
        assert_eq!(enter("::ffff:192.0.2.7"), Ok(()));
        assert_eq!(enter("192.0.3.7"), Err(Denied::Source));
    }

    #[test]
    fn a_changed_route_keeps_counting_the_connections_of_the_old_one() {
        let spec = RouteSpec {
            max_connections: Some(1),
            ..RouteSpec::default()
        };
        let old = route(&spec, None);
        let shares = open();
        let enter = |route: &Route| route.enter(source("::1"), Clock::zero(), &shares);
        enter(&old).unwrap();
        let new = route(&spec, Some(&old));
        assert_eq!(enter(&new), Err(Denied::Connections));
        assert_eq!(shares.routed(), 1, "who is refused takes no place");
        old.leave(&shares);
        assert_eq!(enter(&new), Ok(()));
    }

    #[test]
    fn a_backend_that_stays_keeps_its_state() {
        let one: SocketAddr = "10.0.0.1:6443".parse().unwrap();
        let two: SocketAddr = "10.0.0.2:6443".parse().unwrap();
        let old = route(
            &RouteSpec {
                backends: vec![one],
                ..RouteSpec::default()
            },
            None,
        );
        old.backends()[0].begin();
        let spec = RouteSpec {
            backends: vec![two, one],
            ..RouteSpec::default()
        };
        let new = route(&spec, Some(&old));
        assert_eq!(new.backends()[1].live(), 1);
        assert_eq!(new.choose(0, Clock::zero()).unwrap().1.address(), two);
        assert_eq!(new.spec(), spec);
    }
}
