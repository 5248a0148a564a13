//! Leader election on a Lease: a pure decision and a small driver around it.
//!
//! Owns: who may write, and from when on nobody may (`fence`). A leader that could not renew in time stops for
//! good (`Lost`), whatever its requests are waiting for: no write passes any more, the process ends and starts
//! again as a standby. Refuses: trusting other machines' clocks; a Lease is stale when *we* saw it unchanged for
//! its whole duration. And giving the Lease back while a write may still happen.

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
pub mod fence;

pub use decide::{Step, View, decide};
pub use fence::Fence;

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

    /// How long one attempt may take: a leader has time for two that hang.
    fn patience(&self) -> Duration {
        self.duration / 3
    }

    /// An attempt that failed is repeated soon.
    fn pause(&self) -> Duration {
        self.duration / 15
    }
}

/// How long a replica that was asked to stop waits until its writes are over. All controllers have ended by then:
/// what is left is an event or two.
const SETTLE: Duration = Duration::from_secs(3);

/// Takes part in the election until `stop`, then hands the Lease back. Opens the fence while this replica leads.
///
/// The receiver starts as `Standby`. After `Lost` nothing follows.
pub async fn run(
    client: Client,
    me: Candidate,
    fence: Fence,
    said: watch::Sender<Leadership>,
    stop: CancellationToken,
) {
    let mut election = Election {
        api: Api::namespaced(client, &me.namespace),
        me: Candidate {
            // As it is written in the Lease.
            duration: Duration::from_secs(me.duration.as_secs()),
            ..me
        },
        seen: None,
        leads: false,
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = election.take_part(&fence, &said) => {
            fence.close();
            announce(&said, Leadership::Lost);
            return;
        }
        // Waits for no request: those may hang.
        () = fence.ended() => {
            tracing::error!(
                "could not renew the lease in time; stopping so that another replica can take over"
            );
            fence.close();
            announce(&said, Leadership::Lost);
            return;
        }
    }
    if election.leads {
        let settled = tokio::time::timeout(SETTLE, fence.settled()).await;
        fence.close();
        announce(&said, Leadership::Lost);
        if settled.is_ok() {
            election.release().await;
        } else {
            tracing::warn!("a write may still be under way; the lease expires by itself");
        }
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
    /// The last record seen, none when it was gone, and since when it has been like that, by our clock.
    seen: Option<(Option<View>, Instant)>,
    /// Whether this process wrote the record.
    leads: bool,
}

impl Election {
    /// Round after round, until another replica has taken what was ours.
    async fn take_part(&mut self, fence: &Fence, said: &watch::Sender<Leadership>) {
        loop {
            // Before anything is sent: nobody knows when a renewal is carried out.
            let started = Instant::now();
            let round = tokio::time::timeout(self.me.patience(), self.round()).await;
            let pause = match round {
                Ok(Ok(Round::Holding)) => {
                    fence.renew(started, self.me.duration);
                    announce(said, Leadership::Leader);
                    self.me.interval()
                }
                Ok(Ok(Round::HeldByOther(holder))) if self.leads => {
                    tracing::error!(holder, "another replica took the lease");
                    return;
                }
                Ok(Ok(Round::HeldByOther(_))) => {
                    announce(said, Leadership::Standby);
                    self.me.interval()
                }
                Ok(Err(error)) => {
                    tracing::warn!(error, "leader election");
                    self.me.pause()
                }
                Err(_) => {
                    tracing::warn!("leader election: the API server did not answer in time");
                    self.me.pause()
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn round(&mut self) -> Result<Round, String> {
        let lease = self
            .api
            .get_opt(&self.me.name)
            .await
            .map_err(|error| format!("reading the lease: {error}"))?;
        let view = lease.as_ref().map(View::of);
        let unchanged = self.look(view.as_ref());
        let (me, duration) = (&self.me.identity, self.me.duration);
        match decide(view.as_ref(), me, duration, unchanged) {
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
                self.leads = true;
                Ok(Round::Holding)
            }
            // Someone was quicker; the next round sees who.
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => {
                Err("the lease changed while it was being written".into())
            }
            Err(error) => Err(format!("writing the lease: {error}")),
        }
    }

    /// For how long the record has been like this. One that was never there has been so for ever; one that somebody
    /// deleted may still have a leader that has not noticed.
    fn look(&mut self, view: Option<&View>) -> Duration {
        let now = Instant::now();
        match &self.seen {
            None if view.is_none() => return Duration::MAX,
            Some((before, since)) if before.as_ref() == view => return now - *since,
            _ => self.seen = Some((view.cloned(), now)),
        }
        // We are the one who has to notice.
        if view.is_none() && self.leads {
            Duration::MAX
        } else {
            Duration::ZERO
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

#[cfg(test)]
mod tests;
