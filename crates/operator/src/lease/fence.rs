//! The fence: every write passes it, and none passes once the Lease may go to another replica.
//!
//! Owns: the moment from which this replica must not write, and knowing which writes are still unanswered.
//! Refuses: reading the Lease (that is the election's), and exceptions: events pass it as well.
//!
//! Let `R` be the moment just before the last renewal that succeeded was sent, and `T` the Lease's duration.
//! Another replica takes the Lease when it has seen it unchanged for `T`, so not before `R + T`. With this:
//!
//! | until | what holds |
//! |---|---|
//! | `R + 4/6 T` | new writes pass. At this moment those without an answer are dropped, which resets their streams |
//! | `R + 5/6 T` | the API server has given up on every write: each carries the time that is left until then (`timeout=`) |
//! | `R + 6/6 T` | a write that was held up on the wire for less than a sixth of `T` has been given up as well |
//!
//! The wire can't hold up a write for longer: a connection whose data is not acknowledged for [`ON_THE_WIRE`] is
//! closed by the kernel, even when the process has ended meanwhile, and what it had to send is thrown away.
//!
//! `docs/adr/0004-leader-election.md` has the argument in full, and what it does not cover.

use std::{pin::pin, sync::Arc, time::Duration};

use http::{Request, Response, Uri, uri::PathAndQuery};
use kube::{Client, client::Body};
use tokio::{sync::watch, time::Instant};
use tower::BoxError;

/// Data that is not acknowledged for so long ends its connection. A sixth of the shortest Lease.
pub const ON_THE_WIRE: Duration = Duration::from_millis(2500);

/// The shortest Lease with which the argument above holds.
pub const SHORTEST: Duration = Duration::from_secs(15);

/// A write that must not be sent, or whose answer nobody waits for any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this replica may not write: it does not lead, or could not renew its Lease in time")]
pub struct Closed;

/// Lets writes pass while this replica leads. Clones are one fence.
#[derive(Clone)]
pub struct Fence(Arc<Shared>);

struct Shared {
    term: watch::Sender<Term>,
    unanswered: watch::Sender<Unanswered>,
}

/// For how long writes may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Term {
    /// There is no election.
    Unbounded,
    /// This replica does not lead.
    Closed,
    /// It leads.
    Until {
        /// From here on nothing passes.
        stop: Instant,
        /// Until here the API server may work on what passed.
        limit: Instant,
        /// From here on another replica may lead.
        end: Instant,
    },
}

/// Writes of which it is not known whether they are over.
#[derive(Clone, Copy, Debug, Default)]
struct Unanswered {
    under_way: usize,
    /// By then those are over that were dropped, or failed, before there was an answer.
    over: Option<Instant>,
}

impl Term {
    fn renewed(at: Instant, duration: Duration) -> Self {
        Self::Until {
            stop: at + stop_after(duration),
            limit: at + duration / 6 * 5,
            end: at + duration,
        }
    }

    /// When writes have to stop, if ever.
    fn stop(self) -> Result<Option<Instant>, Closed> {
        match self {
            Self::Unbounded => Ok(None),
            Self::Until { stop, .. } if Instant::now() < stop => Ok(Some(stop)),
            Self::Until { .. } | Self::Closed => Err(Closed),
        }
    }
}

/// How long after the start of its last renewal a leader stops.
pub(super) fn stop_after(duration: Duration) -> Duration {
    duration * 2 / 3
}

impl Fence {
    /// Nothing passes until the first renewal.
    pub fn closed() -> Self {
        Self::new(Term::Closed)
    }

    /// Everything passes: nobody else writes.
    pub fn unbounded() -> Self {
        Self::new(Term::Unbounded)
    }

    fn new(term: Term) -> Self {
        Self(Arc::new(Shared {
            term: watch::Sender::new(term),
            unanswered: watch::Sender::default(),
        }))
    }

    /// The Lease is ours for `duration` from `at` on: the moment before the renewal was sent, since nobody knows
    /// when it was carried out.
    pub(super) fn renew(&self, at: Instant, duration: Duration) {
        self.0.term.send_replace(Term::renewed(at, duration));
    }

    /// Nothing passes any more. What has no answer yet is dropped.
    pub(super) fn close(&self) {
        self.0.term.send_replace(Term::Closed);
    }

    /// Whether a write would pass now.
    pub fn is_open(&self) -> bool {
        self.0.term.borrow().stop().is_ok()
    }

    /// Waits until a term ends without a renewal. Before the first renewal that is never.
    pub(super) async fn ended(&self) {
        let mut terms = self.0.term.subscribe();
        loop {
            let stop = match *terms.borrow_and_update() {
                Term::Until { stop, .. } => Some(stop),
                Term::Unbounded | Term::Closed => None,
            };
            tokio::select! {
                () = reached(stop) => return,
                // The sender lives as long as we do.
                _ = terms.changed() => {}
            }
        }
    }

    /// Waits until every write is over: answered, or given up by whoever was to carry it out.
    pub(super) async fn settled(&self) {
        let mut unanswered = self.0.unanswered.subscribe();
        // The sender lives as long as we do.
        let _ = unanswered.wait_for(|now| now.under_way == 0).await;
        let over = unanswered.borrow().over;
        if let Some(over) = over {
            tokio::time::sleep_until(over).await;
        }
    }

    /// Lets a write pass. One that has no answer when writes have to stop is dropped.
    ///
    /// # Errors
    /// When this replica may not write.
    pub async fn pass<T, E>(
        &self,
        write: impl Future<Output = Result<T, E>>,
    ) -> Result<Result<T, E>, Closed> {
        let mut terms = self.0.term.subscribe();
        terms.borrow().stop()?;
        let mut mark = Mark::new(self);
        let mut write = pin!(write);
        loop {
            let stop = terms.borrow_and_update().stop()?;
            tokio::select! {
                biased;
                answer = &mut write => {
                    // A connection that broke tells nothing about what was sent on it.
                    mark.answered = answer.is_ok();
                    return Ok(answer);
                }
                () = reached(stop) => return Err(Closed),
                _ = terms.changed() => {}
            }
        }
    }

    /// Sends a request; one that writes has to pass.
    ///
    /// # Errors
    /// The client's, or [`Closed`].
    pub async fn send(
        &self,
        client: &Client,
        mut request: Request<Body>,
    ) -> Result<Response<Body>, BoxError> {
        if request.method().is_safe() {
            return Ok(client.send(request).await?);
        }
        request.extensions_mut().insert(self.clone());
        Ok(self.pass(client.send(request)).await??)
    }

    /// The same client, all of whose writes have to pass.
    pub fn client(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let valid_until = *client.valid_until();
        let fence = self.clone();
        let service = tower::service_fn(move |request| {
            let (fence, client) = (fence.clone(), client.clone());
            async move { fence.send(&client, request).await }
        });
        Client::new(service, namespace).with_valid_until(valid_until)
    }

    /// How long the API server may take for a write that is sent now.
    fn left(&self) -> Option<Duration> {
        match *self.0.term.borrow() {
            Term::Until { limit, .. } => Some(limit.saturating_duration_since(Instant::now())),
            Term::Unbounded | Term::Closed => None,
        }
    }
}

async fn reached(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// A write that is under way.
struct Mark<'f> {
    fence: &'f Fence,
    answered: bool,
}

impl<'f> Mark<'f> {
    fn new(fence: &'f Fence) -> Self {
        fence.0.unanswered.send_modify(|all| all.under_way += 1);
        Self {
            fence,
            answered: false,
        }
    }
}

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        let term = *self.fence.0.term.borrow();
        self.fence.0.unanswered.send_modify(|all| {
            all.under_way -= 1;
            if let (false, Term::Until { end, .. }) = (self.answered, term) {
                all.over = Some(end);
            }
        });
    }
}

/// Tells the API server how long it may take for a write that passed a fence. It belongs below whatever sends a
/// request again, so that each attempt carries the time that is left then.
pub fn limit<B>(mut request: Request<B>) -> Request<B> {
    let left = request.extensions().get::<Fence>().and_then(Fence::left);
    if let Some(uri) = left.and_then(|left| with_timeout(request.uri(), left)) {
        *request.uri_mut() = uri;
    }
    request
}

/// None when it is no longer a URI, which can't be.
fn with_timeout(uri: &Uri, left: Duration) -> Option<Uri> {
    let sign = if uri.query().is_some_and(|query| !query.is_empty()) {
        '&'
    } else {
        '?'
    };
    let path = uri.path_and_query()?.as_str().trim_end_matches('?');
    // Zero would mean no limit.
    let left = left.as_millis().max(1);
    let path = PathAndQuery::try_from(format!("{path}{sign}timeout={left}ms")).ok()?;
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const T: Duration = Duration::from_secs(15);

    /// A write that takes this long.
    async fn write(takes: Duration) -> Result<Instant, Infallible> {
        tokio::time::sleep(takes).await;
        Ok(Instant::now())
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_without_an_answer_is_dropped_when_writes_have_to_stop() {
        let fence = Fence::closed();
        assert_eq!(fence.pass(write(Duration::ZERO)).await, Err(Closed));
        let renewed = Instant::now();
        fence.renew(renewed, T);
        assert!(fence.is_open());
        assert!(fence.pass(write(Duration::from_secs(9))).await.is_ok());
        assert_eq!(fence.pass(write(Duration::from_secs(9))).await, Err(Closed));
        assert_eq!(renewed.elapsed().as_secs(), 10);
        assert!(!fence.is_open());
        assert_eq!(fence.pass(write(Duration::ZERO)).await, Err(Closed));
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_lets_a_slow_write_go_on() {
        let fence = Fence::closed();
        fence.renew(Instant::now(), T);
        let slow = fence.pass(write(Duration::from_secs(14)));
        let renewal = async {
            tokio::time::sleep(Duration::from_secs(8)).await;
            fence.renew(Instant::now(), T);
        };
        let (slow, ()) = futures::join!(slow, renewal);
        assert!(slow.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn everything_is_over_only_when_a_write_that_was_dropped_can_no_longer_happen() {
        let fence = Fence::closed();
        let renewed = Instant::now();
        fence.renew(renewed, T);
        fence.settled().await;
        assert_eq!(renewed.elapsed(), Duration::ZERO, "nothing was under way");
        let cut = tokio::time::timeout(
            Duration::from_secs(1),
            fence.pass(write(Duration::from_secs(9))),
        );
        assert!(cut.await.is_err());
        fence.settled().await;
        assert_eq!(renewed.elapsed(), T);
    }

    #[tokio::test(start_paused = true)]
    async fn the_api_server_is_told_what_is_left() {
        let fence = Fence::closed();
        let stamped = |path: &str| {
            let mut request = Request::patch(path).body(()).unwrap();
            request.extensions_mut().insert(fence.clone());
            limit(request).uri().to_string()
        };
        assert_eq!(stamped("https://a:1/b?c=d"), "https://a:1/b?c=d");
        fence.renew(Instant::now(), T);
        tokio::time::advance(Duration::from_millis(2500)).await;
        assert_eq!(
            stamped("https://a:1/b?c=d"),
            "https://a:1/b?c=d&timeout=10000ms"
        );
        assert_eq!(stamped("/b?"), "/b?timeout=10000ms");
        tokio::time::advance(T).await;
        assert_eq!(stamped("/b"), "/b?timeout=1ms");
    }

    #[tokio::test(start_paused = true)]
    async fn without_an_election_everything_passes_as_it_is() {
        let fence = Fence::unbounded();
        assert!(fence.pass(write(T * 10)).await.is_ok());
        let mut request = Request::patch("/b").body(()).unwrap();
        request.extensions_mut().insert(fence);
        assert_eq!(limit(request).uri(), "/b");
    }
}
