//! The decisions: what each accepted connection becomes.

use std::{fmt, net::SocketAddr, sync::Arc};

use rustls::pki_types::ServerName;
use steward_wire::{
    Accepted, ClientLeg, Context, DialFailure, End, First, Next, Peek, Program, Refusal, Route,
    Summary, Transform,
    dial::{Attempt, Step, Upstream},
    hello::{self, Alert, NotTls, Outcome},
    identity::Trust,
    tls::{self, Expected},
};

use crate::{
    health::Health,
    metrics::Metrics,
    terminate::{Offer, Terminate},
};

/// The node's end.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) mode: Mode,
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) trust: Arc<Trust>,
    pub(crate) server_name: ServerName<'static>,
    pub(crate) health: Arc<Health>,
    pub(crate) metrics: Metrics,
    pub(crate) access_log: bool,
}

/// How connections are carried.
#[derive(Debug)]
pub(crate) enum Mode {
    /// Untouched, inside an outer TLS connection.
    EndToEnd(Tunnel),
    /// Opened and closed again.
    Terminate(Box<Terminate>),
}

/// The tunnel's ALPN id, ready to be offered and expected.
#[derive(Debug, Clone)]
pub(crate) struct Tunnel(Arc<[u8]>);

/// What the proxy remembers of a connection.
#[derive(Debug, Default)]
pub(crate) struct Session {
    attempt: Attempt,
    address: Option<SocketAddr>,
    /// Only while a terminated connection shakes hands.
    opening: Option<Box<Opening>>,
}

#[derive(Debug, Default)]
struct Opening {
    parser: hello::Parser,
    offer: Offer,
}

/// Answer to plain HTTP, as API servers answer it.
const NOT_HTTPS: &[u8] = b"HTTP/1.0 400 Bad Request\r\nConnection: close\r\n\r\n\
    This port speaks HTTPS: use https:// in the address.\n";

impl Tunnel {
    pub(crate) fn new(id: &str) -> Self {
        Self(id.as_bytes().into())
    }

    pub(crate) fn offered(&self) -> Vec<Vec<u8>> {
        vec![self.0.to_vec()]
    }

    pub(crate) fn is(&self, chosen: Option<&[u8]>) -> bool {
        chosen == Some(&self.0)
    }

    pub(crate) fn expected(&self) -> Expected {
        Expected::Tunnel(Arc::clone(&self.0))
    }
}

impl fmt::Display for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.escape_ascii().fmt(f)
    }
}

impl Proxy {
    /// A verified leg to the upstream.
    fn leg(&self, alpn: Vec<Vec<u8>>) -> Result<tls::ClientLeg, Refusal> {
        tls::ClientLeg::new(self.trust.client_config(), self.server_name.clone(), alpn)
            .map_err(|_| Refusal::silent("tls_not_available"))
    }

    fn tunnel_route(&self, tunnel: &Tunnel) -> Result<Route, Refusal> {
        let leg = self.leg(tunnel.offered())?.expecting(tunnel.expected());
        Ok(Route {
            server: Some(Box::new(leg)),
            ..Route::default()
        })
    }

    /// A terminated connection: both handshakes at once when the upstream's choice is known,
    /// else one after the other.
    fn terminated_route(&self, terminate: &Terminate, offer: &Offer) -> Result<Route, Refusal> {
        let leg = self.leg(offer.protocols())?;
        let Some(choice) = terminate.choice_for(offer) else {
            return Ok(Route {
                client: ClientLeg::Later,
                server: Some(Box::new(leg)),
                ..Route::default()
            });
        };
        let client = terminate.leg(choice.as_deref()).map_err(unavailable)?;
        let leg = leg.expecting(Expected::Same(choice));
        Ok(Route {
            client: ClientLeg::Tls(Box::new(client)),
            server: Some(Box::new(leg)),
            ..Route::default()
        })
    }

    /// Whether a connection ended because of the upstream. A handshake that takes too long is the
    /// client's own when its TLS ends here.
    fn is_upstreams_fault(&self, end: &End) -> bool {
        match end {
            End::ServerTls(_) | End::ServerFailed(_) => true,
            End::HandshakeTimeout => matches!(self.mode, Mode::EndToEnd(_)),
            _ => false,
        }
    }
}

fn unavailable<E>(_: E) -> Refusal {
    Refusal::alert(Alert::InternalError as u8, "tls_not_available")
}

fn not_tls(kind: NotTls) -> Refusal {
    match kind {
        NotTls::Http => Refusal {
            reply: NOT_HTTPS.into(),
            reason: kind.label(),
        },
        _ => Refusal::silent(kind.label()),
    }
}

impl Program for Proxy {
    type Session = Session;

    fn accept(&self, _: &Context<'_>, _: SocketAddr) -> Result<Accepted<Session>, Refusal> {
        let mut session = Session::default();
        let first = match &self.mode {
            Mode::EndToEnd(tunnel) => First::Dial(Box::new(self.tunnel_route(tunnel)?)),
            Mode::Terminate(_) => {
                session.opening = Some(Box::default());
                First::Peek
            }
        };
        Ok(Accepted { session, first })
    }

    fn peek(&self, _: &Context<'_>, session: &mut Session, bytes: &[u8], _: usize) -> Peek {
        let (Mode::Terminate(terminate), Some(opening)) = (&self.mode, &mut session.opening) else {
            // Not asked for in the other mode.
            return Peek::Refuse(Refusal::silent("bug"));
        };
        let route = match opening.parser.advance(bytes) {
            Outcome::NeedMore => return Peek::More,
            Outcome::NotTls(kind) => Err(not_tls(kind)),
            Outcome::Malformed(why) => Err(Refusal::alert(why.alert() as u8, why.label())),
            Outcome::Hello(hello) => {
                opening.offer = Offer::of(&hello);
                self.terminated_route(terminate, &opening.offer)
            }
        };
        match route {
            Ok(route) => Peek::Dial(Box::new(route)),
            Err(refusal) => Peek::Refuse(refusal),
        }
    }

    fn dial(&self, cx: &Context<'_>, session: &mut Session, failure: Option<&DialFailure>) -> Next {
        if let Some(failure) = failure {
            self.upstream.failed(failure.address);
        }
        match self.upstream.next(&mut session.attempt, || cx.waker()) {
            Step::Connect(address) => {
                session.address = Some(address);
                Next::Connect(address)
            }
            Step::Wait => Next::Wait,
            Step::Exhausted => {
                self.health.suspect();
                Next::GiveUp(Refusal::silent("upstream_unreachable"))
            }
        }
    }

    fn connected(&self, _: &Context<'_>, session: &mut Session) {
        session.attempt = Attempt::default();
    }

    fn server_ready(
        &self,
        _: &Context<'_>,
        session: &mut Session,
        server: &dyn Transform,
    ) -> Result<Box<dyn Transform>, Refusal> {
        let Mode::Terminate(terminate) = &self.mode else {
            return Err(Refusal::silent("bug"));
        };
        if let Some(opening) = session.opening.take() {
            terminate.learn(opening.offer, server.alpn());
        }
        let leg = terminate.leg(server.alpn()).map_err(unavailable)?;
        Ok(Box::new(leg))
    }

    fn moved(&self, _: &Session, _: u64, to_client: u64) {
        if to_client > 0 {
            self.health.answered();
        }
    }

    fn finished(&self, _: &Context<'_>, session: Session, summary: &Summary) {
        if self.is_upstreams_fault(&summary.end) && summary.to_client == 0 {
            self.health.suspect();
            if let Some(address) = session.address {
                self.upstream.failed(address);
            }
            if let (Mode::Terminate(terminate), Some(opening)) = (&self.mode, &session.opening) {
                terminate.forget(&opening.offer);
            }
        }
        self.metrics.ended(&summary.end);
        if self.access_log {
            tracing::info!(
                peer = %summary.peer,
                upstream = session.address.map(tracing::field::display),
                to_server = summary.to_server,
                to_client = summary.to_client,
                lasted_ms = u64::try_from(summary.lasted.as_millis()).unwrap_or(u64::MAX),
                end = %summary.end,
                "connection"
            );
        }
    }

    fn turned_away(&self, _: SocketAddr, reason: &'static str) {
        self.metrics.turned_away(reason);
    }
}
