//! Leader election on a Lease: a pure decision and a small driver around it.
//!
//! Owns: who may write. A leader that could not renew in time stops for good (`Lost`): the process
//! ends and starts again as a standby, so two writers never overlap. Refuses: trusting other
//! machines' clocks; a Lease is stale when *we* saw it unchanged for its whole duration.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

mod decide;

pub use decide::{Step, View, decide};

/// Whether this replica may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// Another replica writes.
    Standby,
    /// This one does.
    Leader,
    /// It did and must not any more: the process has to end.
    Lost,
}

/// Who wants the Lease, and its timing.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Unique name of this process.
    pub identity: String,
    /// How long a silent holder keeps it.
    pub duration: Duration,
}

impl Candidate {
    /// How often a standby looks and a leader renews.
    fn interval(&self) -> Duration {
        self.duration / 5
    }

    /// How long a leader goes on without a successful renewal: less than the duration, so that it
    /// has stopped before anyone else can start.
    fn deadline(&self) -> Duration {
        self.duration * 2 / 3
    }
}

/// Takes part in the election until `stop`, then hands the Lease back.
///
/// The receiver starts as `Standby`. After `Lost` nothing follows.
pub async fn run(
    client: Client,
    me: Candidate,
    said: watch::Sender<Leadership>,
    stop: CancellationToken,
) {
    let mut election = Election {
        api: Api::namespaced(client, &me.namespace),
        me,
        seen: None,
    };
    let mut renewed: Option<Instant> = None;
    loop {
        // A renewal that hangs must not outlive the deadline.
        let started = Instant::now();
        let round = tokio::time::timeout(election.me.deadline() / 2, election.round());
        let outcome = tokio::select! {
            () = stop.cancelled() => break,
            outcome = round => outcome.unwrap_or_else(|_| Err("the API server did not answer in time".into())),
        };
        match outcome {
            Ok(Round::Holding) => {
                renewed = Some(started);
                announce(&said, Leadership::Leader);
            }
            Ok(Round::HeldByOther(holder)) if renewed.is_some() => {
                tracing::error!(holder, "another replica took the lease");
                announce(&said, Leadership::Lost);
                return;
            }
            Ok(Round::HeldByOther(_)) => announce(&said, Leadership::Standby),
            Err(error) => tracing::warn!(error, "leader election"),
        }
        if renewed.is_some_and(|at| at.elapsed() >= election.me.deadline()) {
            tracing::error!(
                "could not renew the lease in time; stopping so that another replica can take over"
            );
            announce(&said, Leadership::Lost);
            return;
        }
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(election.me.interval()) => {}
        }
    }
    if renewed.is_some() {
        announce(&said, Leadership::Lost);
        election.release().await;
    }
}

fn announce(said: &watch::Sender<Leadership>, now: Leadership) {
    let changed = said.send_if_modified(|before| std::mem::replace(before, now) != now);
    if changed {
        tracing::info!(leadership = ?now, "leadership");
    }
}

enum Round {
    Holding,
    HeldByOther(String),
}

struct Election {
    api: Api<Lease>,
    me: Candidate,
    /// The last record seen and since when it has been like that, by our clock.
    seen: Option<(View, Instant)>,
}

impl Election {
    async fn round(&mut self) -> Result<Round, String> {
        let lease = self
            .api
            .get_opt(&self.me.name)
            .await
            .map_err(|error| format!("reading the lease: {error}"))?;
        let view = lease.as_ref().map(View::of);
        let unchanged = self.look(view.as_ref());
        match decide(view.as_ref(), &self.me.identity, unchanged) {
            Step::Create => {
                let created = self
                    .api
                    .create(&PostParams::default(), &self.record(None))
                    .await;
                self.won(created)
            }
            Step::Take | Step::Renew => {
                let record = self.record(lease);
                let replaced = self
                    .api
                    .replace(&self.me.name, &PostParams::default(), &record)
                    .await;
                self.won(replaced)
            }
            Step::Wait { holder, .. } => Ok(Round::HeldByOther(holder)),
        }
    }

    fn won(&mut self, written: kube::Result<Lease>) -> Result<Round, String> {
        match written {
            Ok(lease) => {
                self.look(Some(&View::of(&lease)));
                Ok(Round::Holding)
            }
            // Someone was quicker; the next round sees who.
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => {
                Err("the lease changed while it was being written".into())
            }
            Err(error) => Err(format!("writing the lease: {error}")),
        }
    }

    fn look(&mut self, view: Option<&View>) -> Duration {
        let now = Instant::now();
        match (&self.seen, view) {
            (Some((before, since)), Some(view)) if before == view => now - *since,
            (_, view) => {
                self.seen = view.map(|view| (view.clone(), now));
                Duration::ZERO
            }
        }
    }

    fn record(&self, before: Option<Lease>) -> Lease {
        let now = MicroTime(Timestamp::now());
        let old = before
            .as_ref()
            .and_then(|lease| lease.spec.clone())
            .unwrap_or_default();
        let ours = old.holder_identity.as_deref() == Some(self.me.identity.as_str());
        let metadata = before.map_or_else(
            || ObjectMeta {
                name: Some(self.me.name.clone()),
                namespace: Some(self.me.namespace.clone()),
                ..ObjectMeta::default()
            },
            |lease| lease.metadata,
        );
        let transitions = old.lease_transitions.unwrap_or(0);
        Lease {
            metadata,
            spec: Some(LeaseSpec {
                holder_identity: Some(self.me.identity.clone()),
                lease_duration_seconds: Some(
                    i32::try_from(self.me.duration.as_secs()).unwrap_or(15),
                ),
                acquire_time: if ours {
                    old.acquire_time
                } else {
                    Some(now.clone())
                },
                renew_time: Some(now),
                lease_transitions: Some(if ours { transitions } else { transitions + 1 }),
                ..LeaseSpec::default()
            }),
        }
    }

    /// Gives the Lease back, so that the next replica needs not wait. Best effort: it expires anyway.
    async fn release(&self) {
        let released = tokio::time::timeout(Duration::from_secs(3), async {
            let Some(mut lease) = self.api.get_opt(&self.me.name).await? else {
                return Ok(());
            };
            let Some(spec) = lease.spec.as_mut() else {
                return Ok(());
            };
            if spec.holder_identity.as_deref() != Some(self.me.identity.as_str()) {
                return Ok(());
            }
            spec.holder_identity = None;
            spec.lease_duration_seconds = Some(1);
            self.api
                .replace(&self.me.name, &PostParams::default(), &lease)
                .await
                .map(drop)
        })
        .await;
        match released {
            Ok(Ok(())) => tracing::info!("lease released"),
            Ok(Err(error)) => tracing::warn!(%error, "releasing the lease; it expires by itself"),
            Err(_) => tracing::warn!("releasing the lease took too long; it expires by itself"),
        }
    }
}
