//! The gateway's decisions, connection by connection.
//!
//! Holds a client to the share of its source, reads the name it asks for, finds its
//! route, checks the route's limits, chooses a backend. Never opens TLS; a client that can't be served is told by an
//! alert.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Instant,
};

use ipnet::IpNet;
use steward_wire::{
    Accepted, Context, DialFailure, First, Next, Peek, Program, Refusal, Route as Relayed, Summary,
    hello::{self, Alert, NotTls, Outcome, Parser},
    proxy_protocol::{self, Header},
};

use crate::{
    backend::Backend,
    limits::Clock,
    metrics::{Metrics, RouteCounters},
    route::{Denied, ProxyVersion, Route},
    shares::{Excess, Shares},
    sources::Admission,
    table::Router,
};

/// Sources whose PROXY header is believed.
#[derive(Debug, Clone, Default)]
pub struct Trust(pub Vec<IpNet>);

/// The program that the engine runs.
#[derive(Debug)]
pub struct Gateway {
    router: Arc<Router>,
    metrics: Arc<Metrics>,
    shares: Arc<Shares>,
    trust: Trust,
    access_log: bool,
    start: Instant,
}

/// What is remembered about one connection.
#[derive(Debug)]
pub struct Connection {
    /// Counted by its source; none while that is not known.
    admission: Option<Admission>,
    /// Set once it was let in, and counted until the end.
    route: Option<Arc<Route>>,
    backend: Option<Arc<Backend>>,
    counters: Option<Arc<RouteCounters>>,
    /// What the PROXY header said, if there was one.
    header: Option<Box<Header>>,
    /// Kept only while the hello is incomplete.
    parser: Option<Box<Parser>>,
    /// Backends tried, by their place in the route.
    tried: u64,
    /// Bytes of the PROXY header.
    skip: u16,
    /// A PROXY header may still come first.
    expects_header: bool,
    connected: bool,
}

/// What a browser or `curl http://` on the wrong port is told.
const PLAIN_HTTP: &[u8] = b"HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n\
    This port speaks TLS only. Use https://\r\n";

impl Trust {
    fn covers(&self, source: IpAddr) -> bool {
        let source = source.to_canonical();
        self.0.iter().any(|range| range.contains(&source))
    }
}

impl Gateway {
    /// A gateway that routes by `router` and counts in `metrics`.
    pub fn new(
        router: Arc<Router>,
        metrics: Arc<Metrics>,
        shares: Arc<Shares>,
        trust: Trust,
        access_log: bool,
    ) -> Self {
        Self {
            router,
            metrics,
            shares,
            trust,
            access_log,
            start: Instant::now(),
        }
    }

    fn clock(&self, cx: &Context<'_>) -> Clock {
        Clock::since(self.start, cx.now())
    }

    /// The hello is complete: where does it go?
    fn route(&self, cx: &Context<'_>, session: &mut Connection, sni: Option<&str>) -> Peek {
        let Some(name) = sni else {
            return refuse(Alert::MissingExtension, "missing_name");
        };
        let Some(route) = self.router.lookup(name) else {
            return refuse(Alert::UnrecognizedName, "unrecognized_name");
        };
        let counters = route.counters(|| self.metrics.route(&route.host().to_string()));
        let source = session.source(cx);
        let now = self.clock(cx);
        if let Err(denied) = route.enter(source.ip(), now, &self.shares) {
            counters.denied(denied);
            self.remark_route(&route, denied, now);
            return match denied {
                Denied::Source => refuse(Alert::AccessDenied, "source_denied"),
                Denied::Connections => refuse(Alert::InternalError, "too_many_connections"),
                Denied::Rate => refuse(Alert::InternalError, "too_many_handshakes"),
                Denied::Share => refuse(Alert::InternalError, "route_share"),
                Denied::Full => refuse(Alert::InternalError, "full"),
            };
        }
        counters.connections.fetch_add(1, Relaxed);
        counters.live.fetch_add(1, Relaxed);
        session.counters = Some(Arc::clone(counters));
        let prefix = session.header_for(cx, &route);
        session.route = Some(route);
        let skip = usize::from(session.skip);
        Peek::Dial(Box::new(Relayed {
            skip,
            prefix,
            ..Relayed::default()
        }))
    }

    /// Lets a client in by its source, or refuses it.
    fn admit(&self, cx: &Context<'_>, source: IpAddr) -> Result<Admission, Refusal> {
        let now = self.clock(cx);
        self.shares.admit(source, now).map_err(|excess| {
            if self.shares.remarkable(now) {
                let limit = match excess {
                    Excess::Share => "--source-share",
                    Excess::Rate => "--source-handshakes",
                };
                tracing::warn!(%source, limit, "a source is over its limit, refusing");
            }
            alert(Alert::InternalError, excess.reason())
        })
    }

    fn remark_route(&self, route: &Route, denied: Denied, now: Clock) {
        let limit = match denied {
            Denied::Share => "--route-share",
            Denied::Full => "--max-connections",
            Denied::Source | Denied::Connections | Denied::Rate => return,
        };
        if self.shares.remarkable(now) {
            let (route, live) = (route.host().to_string(), route.live());
            tracing::warn!(route, live, limit, "a route is over its limit, refusing");
        }
    }

    /// An address did not answer. Errors of our own making are not held against it.
    fn backend_failed(&self, cx: &Context<'_>, session: &mut Connection, failure: &DialFailure) {
        let Some(backend) = session.backend.take() else {
            return;
        };
        backend.end();
        if ours(&failure.error) {
            tracing::warn!(error = %failure.error, "cannot open a connection to any backend");
            return;
        }
        if let Some(counters) = &session.counters {
            counters.backend_failures.fetch_add(1, Relaxed);
        }
        // One that stops is about to leave the route, and a client must not be able to make
        // a backend look dead by what it says.
        if !failure.accepted && backend.failed(self.clock(cx)) {
            let route = session.route.as_ref().map(|route| route.host().to_string());
            tracing::warn!(
                route,
                backend = %failure.address,
                error = %failure.error,
                "backend does not answer, trying others first"
            );
        }
    }

    /// A client whose route has no backend left to try goes on with what the route is now: they
    /// may all have been replaced while it tried.
    fn catch_up(&self, session: &mut Connection) {
        let newer = session
            .route
            .as_ref()
            .filter(|route| route.exhausted(session.tried))
            .and_then(|route| self.newer(route));
        if let Some(newer) = newer {
            session.route = Some(newer);
            session.tried = 0;
        }
    }

    fn newer(&self, route: &Route) -> Option<Arc<Route>> {
        let table = self.router.table();
        table
            .get(route.host())
            .filter(|now| now.succeeds(route))
            .map(Arc::clone)
    }

    fn log_access(&self, session: &Connection, summary: &Summary) {
        if !self.access_log {
            return;
        }
        let client = session.header.as_ref().and_then(|header| header.source);
        tracing::info!(
            client = %client.unwrap_or(summary.peer),
            route = session.route.as_ref().map(|route| route.host().to_string()),
            backend = session.backend.as_ref().map(|backend| backend.address().to_string()),
            to_server = summary.to_server,
            to_client = summary.to_client,
            seconds = summary.lasted.as_secs_f64(),
            end = %summary.end,
            "connection"
        );
    }
}

impl Program for Gateway {
    type Session = Connection;

    fn accept(&self, cx: &Context<'_>, peer: SocketAddr) -> Result<Accepted<Connection>, Refusal> {
        // Whoever may speak for others is counted once it has said for whom.
        let expects_header = self.trust.covers(peer.ip());
        let admission = if expects_header {
            None
        } else {
            Some(self.admit(cx, peer.ip())?)
        };
        let session = Connection {
            admission,
            route: None,
            backend: None,
            counters: None,
            header: None,
            parser: None,
            tried: 0,
            skip: 0,
            expects_header,
            connected: false,
        };
        Ok(Accepted {
            session,
            first: First::Peek,
        })
    }

    fn peek(&self, cx: &Context<'_>, session: &mut Connection, bytes: &[u8], _seen: usize) -> Peek {
        if session.expects_header
            && let Some(answer) = session.read_header(bytes)
        {
            return answer;
        }
        if session.admission.is_none() {
            match self.admit(cx, session.source(cx).ip()) {
                Ok(admission) => session.admission = Some(admission),
                Err(refusal) => return Peek::Refuse(refusal),
            }
        }
        let rest = bytes.get(usize::from(session.skip)..).unwrap_or_default();
        let mut parser = session.parser.as_deref().copied().unwrap_or_default();
        match parser.advance(rest) {
            Outcome::NeedMore => {
                session.parser = Some(Box::new(parser));
                Peek::More
            }
            Outcome::Hello(hello) => {
                session.parser = None;
                self.route(cx, session, hello.sni())
            }
            Outcome::NotTls(NotTls::Http) => Peek::Refuse(Refusal {
                reply: PLAIN_HTTP.into(),
                reason: "not_tls",
            }),
            Outcome::NotTls(_) => Peek::Refuse(Refusal::silent("not_tls")),
            Outcome::Malformed(why) => refuse(why.alert(), "malformed_hello"),
        }
    }

    fn dial(
        &self,
        cx: &Context<'_>,
        session: &mut Connection,
        failure: Option<&DialFailure>,
    ) -> Next {
        if let Some(failure) = failure {
            self.backend_failed(cx, session, failure);
            if ours(&failure.error) {
                return Next::GiveUp(alert(Alert::InternalError, "no_descriptors"));
            }
        }
        self.catch_up(session);
        let chosen = session
            .route
            .as_ref()
            .and_then(|route| route.choose(session.tried, self.clock(cx)));
        let Some((place, backend)) = chosen else {
            if let Some(counters) = &session.counters {
                counters.no_backend.fetch_add(1, Relaxed);
            }
            return Next::GiveUp(alert(Alert::InternalError, "no_backend"));
        };
        backend.begin();
        let address = backend.address();
        session.tried |= 1 << place;
        session.backend = Some(Arc::clone(backend));
        Next::Connect(address)
    }

    fn connected(&self, _cx: &Context<'_>, session: &mut Connection) {
        if !session.connected {
            session.connected = true;
            self.metrics.routed();
        }
        if let Some(backend) = &session.backend
            && backend.answered()
        {
            tracing::info!(backend = %backend.address(), "backend answers again");
        }
    }

    /// A client's hello may be said again: nothing was agreed on yet.
    fn another(&self, cx: &Context<'_>, session: &Connection) -> Option<Vec<u8>> {
        let route = session.route.as_ref()?;
        if route.exhausted(session.tried) {
            self.newer(route)?;
        }
        Some(session.header_for(cx, route))
    }

    fn moved(&self, session: &Connection, to_server: u64, to_client: u64) {
        if let Some(counters) = &session.counters {
            if to_server > 0 {
                counters.to_server.fetch_add(to_server, Relaxed);
            }
            if to_client > 0 {
                counters.to_client.fetch_add(to_client, Relaxed);
            }
        }
    }

    fn finished(&self, _cx: &Context<'_>, session: Connection, summary: &Summary) {
        if !session.connected {
            self.metrics.not_routed(summary.end.label());
        }
        self.log_access(&session, summary);
        if let Some(backend) = &session.backend {
            backend.end();
        }
        if let Some(route) = &session.route {
            route.leave(&self.shares);
        }
        if let Some(counters) = &session.counters {
            counters.live.fetch_sub(1, Relaxed);
        }
    }

    fn owner(&self, session: &Connection) -> usize {
        session.route.as_ref().map_or(0, |route| route.identity())
    }

    fn turned_away(&self, _peer: SocketAddr, reason: &'static str) {
        self.metrics.not_routed(reason);
    }
}

impl Connection {
    /// Who the client is: what a trusted PROXY header says, or the socket.
    fn source(&self, cx: &Context<'_>) -> SocketAddr {
        self.header
            .as_ref()
            .and_then(|header| header.source)
            .unwrap_or_else(|| cx.peer())
    }

    /// Reads a PROXY header. An answer means that the hello can't be read yet.
    fn read_header(&mut self, bytes: &[u8]) -> Option<Peek> {
        match proxy_protocol::parse(bytes) {
            Ok(None) => return Some(Peek::More),
            Ok(Some((header, length))) => {
                self.header = Some(Box::new(header));
                self.skip = u16::try_from(length).unwrap_or(u16::MAX);
            }
            // A trusted source may speak for itself, such as a health check.
            Err(proxy_protocol::Error::Missing) => {}
            Err(_) => return Some(Peek::Refuse(Refusal::silent("proxy_header"))),
        }
        self.expects_header = false;
        None
    }

    /// The PROXY header that the route's backends want, or nothing.
    fn header_for(&self, cx: &Context<'_>, route: &Route) -> Vec<u8> {
        let Some(version) = route.send_proxy() else {
            return Vec::new();
        };
        let source = self.source(cx);
        let destination = self.header.as_ref().and_then(|header| header.destination);
        let destination = destination
            .or_else(|| cx.local_addr().ok())
            .unwrap_or(source);
        let (source, destination) = (canonical(source), canonical(destination));
        match version {
            ProxyVersion::V1 => proxy_protocol::encode_v1(source, destination),
            ProxyVersion::V2 => proxy_protocol::encode_v2(source, destination),
        }
    }
}

/// An IPv4 client of a dual-stack listener is an IPv4 client.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn alert(alert: Alert, reason: &'static str) -> Refusal {
    Refusal {
        reply: hello::alert_record(alert).to_vec().into(),
        reason,
    }
}

fn refuse(with: Alert, reason: &'static str) -> Peek {
    Peek::Refuse(alert(with, reason))
}

/// Whether an error is about this process rather than about the address: out of
/// descriptors, memory or local ports.
fn ours(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let local = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOBUFS,
        Errno::NOMEM,
        Errno::ADDRNOTAVAIL,
    ];
    error
        .raw_os_error()
        .is_some_and(|code| local.contains(&Errno::from_raw_os_error(code)))
}
