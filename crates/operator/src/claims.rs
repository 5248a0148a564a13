//! The record of who has which hostname: Leases in the operator's own namespace, one per name.
//!
//! Owns: these Leases, and what is remembered of them. A claim is taken by creating the Lease, so the
//! API server decides who was first. Refuses: deciding what a tenant may keep, and who has a name
//! at the first start: that is `steward_plan::claims`.
//!
//! Only a leader calls this, so what is remembered is what is stored.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, PostParams, Preconditions},
};
use steward_api::{
    TenantControlPlane,
    metadata::{annotations, labels},
};
use steward_plan::{
    HostnameClaim,
    claims::{self, Claimant},
    names::PROJECT,
};
use tokio::sync::OnceCell;

use crate::{context::Context, error::Error, observe::key_of, tenant::Key};

/// Value of the label by which our Leases are found.
const COMPONENT: &str = "hostname-claim";

/// The Lease that says that the claims of tenants from before there were records are recorded.
const RECORDED: &str = "hostnames-recorded";

/// Claims that are recorded at a time at the first start.
const AT_ONCE: usize = 16;

/// A claim that changes while it is taken is looked at so often.
const ATTEMPTS: usize = 3;

/// All claims.
pub struct Claims {
    leases: Api<Lease>,
    known: Mutex<BTreeMap<String, Record>>,
    loaded: OnceCell<()>,
}

/// One claim, as stored.
#[derive(Clone)]
struct Record {
    holder: Claimant,
    version: Option<String>,
}

/// What a tenant has, and what of its wishes somebody else has.
#[derive(Debug, Default)]
pub struct Settled {
    /// Names that it holds.
    pub held: BTreeSet<String>,
    /// Names that it wants and others hold.
    pub taken: Vec<HostnameClaim>,
}

impl Claims {
    /// The record in this namespace.
    pub fn new(client: Client, namespace: &str) -> Self {
        Self {
            leases: Api::namespaced(client, namespace),
            known: Mutex::default(),
            loaded: OnceCell::new(),
        }
    }

    /// Claims what the tenant wants, and says what became of it.
    ///
    /// # Errors
    /// When the record can't be read or written.
    pub async fn settle(
        &self,
        context: &Context,
        tenant: &TenantControlPlane,
    ) -> Result<Settled, Error> {
        if claims::kept(tenant).is_empty() {
            return Ok(Settled::default());
        }
        self.load(context).await?;
        let me = Claimant::of(tenant);
        let mut taken = Vec::new();
        for hostname in steward_plan::hostnames(tenant) {
            let holder = self.claim(context, &hostname, &me).await?;
            if holder.uid != me.uid {
                taken.push(HostnameClaim {
                    hostname,
                    tenant: holder.tenant(),
                });
            }
        }
        Ok(Settled {
            held: self.held(&me.uid),
            taken,
        })
    }

    /// Gives back what the tenant neither wants nor uses any more.
    pub async fn release(&self, context: &Context, tenant: &TenantControlPlane) {
        let kept = claims::kept(tenant);
        let held = self.held(&tenant.uid().unwrap_or_default());
        let gone: Vec<String> = held.difference(&kept).cloned().collect();
        self.give_back(context, gone).await;
    }

    /// Gives back all that a tenant held which is gone.
    pub async fn release_all(&self, context: &Context, key: &Key, uid: Option<&str>) {
        let theirs = |record: &Record| {
            (&record.holder.namespace, &record.holder.name) == (&key.0, &key.1)
                && uid.is_none_or(|uid| uid == record.holder.uid)
        };
        let gone: Vec<String> = self
            .lock()
            .iter()
            .filter(|(_, record)| theirs(record))
            .map(|(hostname, _)| hostname.clone())
            .collect();
        self.give_back(context, gone).await;
    }

    fn held(&self, uid: &str) -> BTreeSet<String> {
        self.lock()
            .iter()
            .filter(|(_, record)| record.holder.uid == uid)
            .map(|(hostname, _)| hostname.clone())
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Record>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, hostname: &str, lease: &Lease) -> Option<Record> {
        let record = Record {
            holder: holder(lease)?,
            version: lease.resource_version(),
        };
        self.lock().insert(hostname.to_owned(), record.clone());
        Some(record)
    }

    /// Who has the name: this tenant if nobody had it, or if who had it is gone.
    async fn claim(
        &self,
        context: &Context,
        hostname: &str,
        me: &Claimant,
    ) -> Result<Claimant, Error> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let known = self.lock().get(hostname).cloned();
            let attempt = match known {
                Some(record) if record.holder.uid == me.uid => return Ok(record.holder),
                Some(record) if !gone(context, &record.holder).await? => return Ok(record.holder),
                Some(record) => {
                    let lease = lease(hostname, me, record.version);
                    let name = lease.name_any();
                    self.leases
                        .replace(&name, &PostParams::default(), &lease)
                        .await
                }
                None => {
                    let lease = lease(hostname, me, None);
                    self.leases.create(&PostParams::default(), &lease).await
                }
            };
            match attempt {
                Ok(lease) => {
                    self.remember(hostname, &lease);
                    tracing::info!(hostname, tenant = me.tenant(), "hostname claimed");
                    return Ok(me.clone());
                }
                // Somebody was quicker, or it is not what we remember: see what is there.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                    self.look(hostname).await?;
                    last = Some(kube::Error::Api(status));
                }
                Err(error) => return Err(write(hostname, error)),
            }
        }
        Err(match last {
            Some(error) => write(hostname, error),
            None => incomplete(hostname),
        })
    }

    /// Reads one claim anew.
    async fn look(&self, hostname: &str) -> Result<(), Error> {
        let name = claims::record_name(hostname);
        let found = self.leases.get_opt(&name).await.map_err(read)?;
        let record = found
            .as_ref()
            .and_then(|lease| self.remember(hostname, lease));
        if record.is_none() {
            self.lock().remove(hostname);
        }
        Ok(())
    }

    /// Reads all claims once. At the first start of a version that records them, it records what is
    /// in use and wanted, before anybody can claim anything.
    async fn load(&self, context: &Context) -> Result<(), Error> {
        self.loaded
            .get_or_try_init(async || {
                let ours =
                    ListParams::default().labels(&format!("{}={COMPONENT}", labels::COMPONENT));
                let found = self.leases.list(&ours).await.map_err(read)?;
                for lease in &found.items {
                    if let Some(hostname) = lease.annotations().get(annotations::HOSTNAME) {
                        self.remember(hostname, lease);
                    }
                }
                if !found.items.iter().any(|lease| lease.name_any() == RECORDED) {
                    self.record_all(context).await?;
                }
                Ok(())
            })
            .await
            .map(drop)
    }

    async fn record_all(&self, context: &Context) -> Result<(), Error> {
        let all = context.tenant_cache.state();
        let first = claims::first(all.iter().filter_map(|tenant| tenant.0.as_ref().ok()));
        tracing::info!(names = first.len(), "recording the hostnames of tenants");
        stream::iter(&first)
            .map(Ok::<_, Error>)
            .try_for_each_concurrent(AT_ONCE, |(hostname, claimant)| async move {
                self.claim(context, hostname, claimant).await.map(drop)
            })
            .await?;
        let mut marker = lease(RECORDED, &Claimant::default(), None);
        marker.metadata.name = Some(RECORDED.into());
        marker.metadata.annotations = None;
        marker.spec = None;
        match self.leases.create(&PostParams::default(), &marker).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(error) => Err(write(RECORDED, error)),
        }
    }

    /// Removes claims and looks at those who wait for the names. What can't be removed now is found to
    /// be stale by who wants it next.
    async fn give_back(&self, context: &Context, hostnames: Vec<String>) {
        for hostname in hostnames {
            let Some(record) = self.lock().get(&hostname).cloned() else {
                continue;
            };
            let unchanged = DeleteParams {
                preconditions: Some(Preconditions {
                    resource_version: record.version,
                    uid: None,
                }),
                ..DeleteParams::default()
            };
            let name = claims::record_name(&hostname);
            match self.leases.delete(&name, &unchanged).await {
                Ok(_) => {
                    self.lock().remove(&hostname);
                }
                Err(kube::Error::Api(status)) if status.code == 404 => {
                    self.lock().remove(&hostname);
                }
                Err(error) => {
                    tracing::warn!(%error, hostname, "a claim could not be given back");
                    continue;
                }
            }
            tracing::info!(
                hostname,
                tenant = record.holder.tenant(),
                "hostname given back"
            );
            wake(context, &hostname);
        }
    }
}

/// Looks at the tenants that want a name which is free now.
fn wake(context: &Context, hostname: &str) {
    for tenant in context.tenant_cache.state() {
        let Ok(tenant) = &tenant.0 else { continue };
        if steward_plan::hostnames(tenant)
            .iter()
            .any(|name| name == hostname)
        {
            context.wake(key_of(tenant));
        }
    }
}

/// Whether the tenant is no more. The cache could be behind, so the API server is asked.
async fn gone(context: &Context, holder: &Claimant) -> Result<bool, Error> {
    let api: Api<TenantControlPlane> = Api::namespaced(context.client.clone(), &holder.namespace);
    let found = api
        .get_metadata_opt(&holder.name)
        .await
        .map_err(|error| Error::Read {
            what: format!("TenantControlPlane {}", holder.tenant()),
            error,
        })?;
    Ok(found.is_none_or(|found| found.uid().as_deref() != Some(&holder.uid)))
}

fn holder(lease: &Lease) -> Option<Claimant> {
    Claimant::parse(lease.spec.as_ref()?.holder_identity.as_deref()?)
}

fn lease(hostname: &str, holder: &Claimant, version: Option<String>) -> Lease {
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    Lease {
        metadata: ObjectMeta {
            name: Some(claims::record_name(hostname)),
            labels: Some(
                [
                    pair(labels::PROJECT, PROJECT),
                    pair(labels::COMPONENT, COMPONENT),
                ]
                .into(),
            ),
            annotations: Some([pair(annotations::HOSTNAME, hostname)].into()),
            resource_version: version,
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(holder.to_string()),
            acquire_time: Some(MicroTime(Timestamp::now())),
            ..LeaseSpec::default()
        }),
    }
}

fn read(error: kube::Error) -> Error {
    Error::Read {
        what: "the record of hostnames".into(),
        error,
    }
}

fn write(hostname: &str, error: kube::Error) -> Error {
    Error::Write {
        what: format!("Lease {}", claims::record_name(hostname)),
        because: format!("it records who has {hostname}"),
        error,
    }
}

fn incomplete(hostname: &str) -> Error {
    Error::Incomplete {
        what: format!("Lease {}", claims::record_name(hostname)),
        field: "spec.holderIdentity",
    }
}
