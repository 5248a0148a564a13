//! The decisions: who is let in, and where each hello goes.
//!
//! Three destinations. The tunnel's ALPN id is the gate's own: its TLS ends here. Konnectivity
//! agents are told by an ALPN id (by membership: they offer `h2` beside it, and `h2` is what their
//! server picks) or by a server name. All else, even what is not TLS at all, goes to the API
//! server untouched, which answers it as it would without a gate.

use std::{net::SocketAddr, sync::Arc, time::Instant};

use rustls::ServerConfig;
use steward_wire::{
    Accepted, ClientLeg, Context, DialFailure, First, Next, Peek, Program, Refusal, Route, Summary,
    hello::{self, Alert, Hello, Name, Outcome},
    proxy_protocol,
    tls::ServerLeg,
};

use crate::{
    access::{Excess, Limits, Ranges},
    metrics::Metrics,
};

/// Where a connection goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Destination {
    /// To the API server, as it is.
    ApiServer,
    /// To the konnectivity server, as it is.
    Konnectivity,
    /// Opened, and its content to the API server.
    Tunnel,
}

/// The doorman.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) apiserver: SocketAddr,
    pub(crate) konnectivity: Option<SocketAddr>,
    pub(crate) konnectivity_alpn: Vec<u8>,
    pub(crate) konnectivity_names: Vec<Name>,
    pub(crate) tunnel_alpn: Vec<u8>,
    pub(crate) tunnel: Arc<ServerConfig>,
    pub(crate) allow: Ranges,
    pub(crate) trust_proxy: Ranges,
    pub(crate) limits: Limits,
    pub(crate) metrics: Metrics,
    pub(crate) access_log: bool,
}

/// What the gate remembers of a connection.
#[derive(Debug)]
pub(crate) struct Session {
    /// The client, from the PROXY header if there is one.
    source: SocketAddr,
    parser: hello::Parser,
    /// The length of the PROXY header; none while it is awaited.
    header: Option<u16>,
    destination: Option<Destination>,
}

impl Gate {
    /// Where `hello` wants to go.
    fn route(&self, hello: &Hello<'_>) -> Destination {
        if hello.offers(&self.tunnel_alpn) {
            return Destination::Tunnel;
        }
        let named = || {
            let sni = hello.sni();
            self.konnectivity_names
                .iter()
                .any(|name| sni == Some(name.as_str()))
        };
        if self.konnectivity.is_some() && (hello.offers(&self.konnectivity_alpn) || named()) {
            return Destination::Konnectivity;
        }
        Destination::ApiServer
    }

    /// Lets `source` in, or not.
    fn admit(&self, source: SocketAddr, now: Instant) -> Result<(), Refusal> {
        if !self.allow.is_empty() && !self.allow.contains(source.ip()) {
            return Err(refusal(Alert::AccessDenied, "source_not_allowed"));
        }
        self.limits.enter(now).map_err(|excess| match excess {
            Excess::Connections => refusal(Alert::InternalError, "too_many_connections"),
            Excess::Rate => refusal(Alert::InternalError, "too_many_handshakes"),
        })
    }

    /// Reads the PROXY header, and lets the client that it names in.
    fn read_header(
        &self,
        cx: &Context<'_>,
        session: &mut Session,
        bytes: &[u8],
    ) -> Result<Option<usize>, Refusal> {
        if let Some(header) = session.header {
            return Ok(Some(usize::from(header)));
        }
        let read = proxy_protocol::parse(bytes).map_err(|error| Refusal::silent(error.label()))?;
        let Some((header, len)) = read else {
            return Ok(None);
        };
        // Without a client in it, the front door speaks for itself: a health check.
        if let Some(source) = header.source {
            session.source = source;
        }
        self.admit(session.source, cx.now())?;
        session.header = Some(u16::try_from(len).unwrap_or(u16::MAX));
        Ok(Some(len))
    }

    fn leg(&self, destination: Destination) -> Result<ClientLeg, Refusal> {
        match destination {
            Destination::ApiServer | Destination::Konnectivity => Ok(ClientLeg::Plain),
            Destination::Tunnel => match ServerLeg::new(Arc::clone(&self.tunnel)) {
                Ok(leg) => Ok(ClientLeg::Tls(Box::new(leg))),
                Err(_) => Err(refusal(Alert::InternalError, "tls_not_available")),
            },
        }
    }
}

fn refusal(alert: Alert, reason: &'static str) -> Refusal {
    Refusal::alert(alert as u8, reason)
}

impl Program for Gate {
    type Session = Session;

    fn accept(&self, cx: &Context<'_>, peer: SocketAddr) -> Result<Accepted<Session>, Refusal> {
        let proxied = self.trust_proxy.contains(peer.ip());
        if !proxied {
            self.admit(peer, cx.now())?;
        }
        let session = Session {
            source: peer,
            parser: hello::Parser::default(),
            header: (!proxied).then_some(0),
            destination: None,
        };
        Ok(Accepted {
            session,
            first: First::Peek,
        })
    }

    fn peek(&self, cx: &Context<'_>, session: &mut Session, bytes: &[u8], _seen: usize) -> Peek {
        let skip = match self.read_header(cx, session, bytes) {
            Ok(Some(skip)) => skip,
            Ok(None) => return Peek::More,
            Err(refusal) => return Peek::Refuse(refusal),
        };
        let destination = match session
            .parser
            .advance(bytes.get(skip..).unwrap_or_default())
        {
            Outcome::NeedMore => return Peek::More,
            Outcome::Hello(hello) => self.route(&hello),
            Outcome::NotTls(_) | Outcome::Malformed(_) => Destination::ApiServer,
        };
        session.destination = Some(destination);
        self.metrics.routed(destination);
        match self.leg(destination) {
            Ok(client) => Peek::Dial(Box::new(Route {
                skip,
                client,
                ..Route::default()
            })),
            Err(refusal) => Peek::Refuse(refusal),
        }
    }

    fn dial(
        &self,
        _cx: &Context<'_>,
        session: &mut Session,
        failure: Option<&DialFailure>,
    ) -> Next {
        // There is one of each, in the same pod: when it does not answer, nothing does. The
        // client is told nothing, as it would be by a server that is down.
        if failure.is_some() {
            return Next::GiveUp(Refusal::silent("server_unreachable"));
        }
        let konnectivity = self.konnectivity.unwrap_or(self.apiserver);
        Next::Connect(match session.destination {
            Some(Destination::Konnectivity) => konnectivity,
            Some(Destination::ApiServer | Destination::Tunnel) | None => self.apiserver,
        })
    }

    fn finished(&self, _cx: &Context<'_>, session: Session, summary: &Summary) {
        // A connection whose header never came was never let in.
        if session.header.is_some() {
            self.limits.leave();
        }
        self.metrics.ended(&summary.end);
        if self.access_log {
            let destination = session.destination.map_or("none", Destination::label);
            tracing::info!(
                source = %session.source,
                peer = %summary.peer,
                destination,
                to_server = summary.to_server,
                to_client = summary.to_client,
                lasted_ms = u64::try_from(summary.lasted.as_millis()).unwrap_or(u64::MAX),
                end = %summary.end,
                "connection"
            );
        }
    }

    fn turned_away(&self, _peer: SocketAddr, reason: &'static str) {
        self.metrics.turned_away(reason);
    }
}

impl Destination {
    pub(crate) const ALL: [Self; 3] = [Self::ApiServer, Self::Konnectivity, Self::Tunnel];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::ApiServer => "apiserver",
            Self::Konnectivity => "konnectivity",
            Self::Tunnel => "tunnel",
        }
    }
}
