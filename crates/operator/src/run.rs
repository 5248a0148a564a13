//! Putting it all together: what runs, in which order it starts, in which order it stops.
//!
//! Starting: listeners first (a taken port is a mistake in the flags), then caches, then controllers.
//! Stopping: controllers finish what they began, then the lease is given back, so that the next leader
//! never meets a write of ours. A leader that lost its lease finishes nothing: the fence is closed.

use std::{sync::Arc, time::Duration};

use futures::{Stream, StreamExt, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client,
    runtime::reflector::{self, ObjectRef},
};
use steward_plan::Platform;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    admin::{self, Readiness},
    apply::{Cluster, Engine, Versions},
    claims::Claims,
    config::Config,
    context::{Context, Dial, GuardedDataStore, GuardedTenant},
    controllers::{Runner, control_plane, data_store},
    events::Events,
    follow,
    lease::{self, Candidate, Fence, Leadership},
    metrics::Metrics,
    platform,
    reach::Reaches,
    tenant::{Key, Tenants},
    underway::Underway,
};

/// What the operator may be given besides flags: for tests, and for programs that embed it.
#[derive(Clone, Default)]
pub struct Extras {
    /// See [`Dial`].
    pub dial: Option<Dial>,
    /// Counters to use, so that the caller can read them.
    pub metrics: Metrics,
    /// Set when the caches are filled.
    pub readiness: Readiness,
}

/// Why the operator ended otherwise than asked to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A flag can't be followed.
    #[error("{0}")]
    Flags(String),
    /// Another replica leads now.
    #[error(
        "leadership was lost; another replica has taken over, or the API server was away for too long"
    )]
    LostLeadership,
}

/// How long running reconciles may take to finish once asked to stop.
const DRAIN: Duration = Duration::from_secs(20);

/// Wakes of a datastore within this time become one: a thousand new tenants are one new `usedBy`.
const DATASTORE_DEBOUNCE: Duration = Duration::from_millis(500);

/// Runs the operator until `stop`.
///
/// # Errors
/// When an address can't be listened on, or leadership is lost.
pub async fn run(
    config: Config,
    client: Client,
    extras: Extras,
    stop: CancellationToken,
) -> Result<(), Error> {
    let mut helpers = JoinSet::new();
    serve(&config, &extras, &mut helpers, &stop).await?;

    let (leadership_sender, leadership) = watch::channel(Leadership::Standby);
    let lease_stop = CancellationToken::new();
    let fence = if config.leader_elect {
        Fence::closed()
    } else {
        Fence::unbounded()
    };
    let election = elect(&config, &client, &fence, leadership_sender, &lease_stop);

    let controllers_stop = stop.child_token();
    let Some(cluster) = cluster(&client, &stop).await else {
        return Ok(());
    };
    let (context, streams) = build(&config, client, cluster, fence, &extras, leadership.clone());
    let mut running = start(
        context,
        streams,
        &config,
        &extras,
        &controllers_stop,
        &mut helpers,
    );

    if wait_for_end(leadership, &stop).await {
        // Nothing may be finished any more. What is not stopped here is kept from writing by the fence.
        running.abort_all();
        helpers.abort_all();
        return Err(Error::LostLeadership);
    }
    controllers_stop.cancel();
    let drained = tokio::time::timeout(DRAIN, async {
        while running.join_next().await.is_some() {}
    })
    .await;
    if drained.is_err() {
        tracing::warn!("some reconciles did not finish in time; they are cut off");
        running.shutdown().await;
    }
    lease_stop.cancel();
    // The lease's own timeouts bound this.
    let _ = election.await;
    helpers.shutdown().await;
    Ok(())
}

/// Uid of the management cluster: that of its `kube-system` namespace, which lives as long as the cluster does.
/// `None` when asked to stop before it could be read.
async fn cluster(client: &Client, stop: &CancellationToken) -> Option<String> {
    const AGAIN: Duration = Duration::from_secs(1);
    let api: Api<Namespace> = Api::all(client.clone());
    loop {
        let read = tokio::select! {
            () = stop.cancelled() => return None,
            read = api.get_metadata("kube-system") => read,
        };
        match read.map(|found| found.metadata.uid) {
            Ok(Some(uid)) => return Some(uid),
            Ok(None) => tracing::warn!("namespace kube-system has no uid"),
            Err(error) => tracing::warn!(%error, "reading namespace kube-system"),
        }
        tokio::select! {
            () = stop.cancelled() => return None,
            () = tokio::time::sleep(AGAIN) => {}
        }
    }
}

/// True when leadership was lost, false when asked to stop.
async fn wait_for_end(
    mut leadership: watch::Receiver<Leadership>,
    stop: &CancellationToken,
) -> bool {
    tokio::select! {
        () = stop.cancelled() => false,
        lost = leadership.wait_for(|now| *now == Leadership::Lost) => lost.is_ok(),
    }
}

async fn serve(
    config: &Config,
    extras: &Extras,
    helpers: &mut JoinSet<()>,
    stop: &CancellationToken,
) -> Result<(), Error> {
    if let Some(address) = config.health_probe_bind_address.0 {
        let listener = admin::bind("--health-probe-bind-address", address)
            .await
            .map_err(Error::Flags)?;
        helpers.spawn(admin::serve(
            listener,
            admin::health(extras.readiness.clone()),
            stop.clone(),
        ));
    }
    if let Some(address) = config.metrics_bind_address.0 {
        let listener = admin::bind("--metrics-bind-address", address)
            .await
            .map_err(Error::Flags)?;
        helpers.spawn(admin::serve(
            listener,
            admin::metrics(extras.metrics.clone()),
            stop.clone(),
        ));
    }
    Ok(())
}

fn elect(
    config: &Config,
    client: &Client,
    fence: &Fence,
    said: watch::Sender<Leadership>,
    stop: &CancellationToken,
) -> AbortOnDropHandle<()> {
    let stop = stop.clone();
    if !config.leader_elect {
        said.send_replace(Leadership::Leader);
        return AbortOnDropHandle::new(tokio::spawn(async move {
            stop.cancelled().await;
            drop(said);
        }));
    }
    let candidate = Candidate {
        namespace: config.pod_namespace.clone(),
        name: config.leader_election_id.clone(),
        identity: identity(config),
        duration: config.leader_election_lease_duration,
    };
    // A lease that is renewed for an operator that is gone would keep everyone else out.
    AbortOnDropHandle::new(tokio::spawn(lease::run(
        client.clone(),
        candidate,
        fence.clone(),
        said,
        stop,
    )))
}

/// No two processes have the same, also not two of one pod: a container that is started again must wait until what
/// its predecessor sent can no longer happen.
fn identity(config: &Config) -> String {
    let started = jiff::Timestamp::now().as_nanosecond();
    format!("{}_{}_{started:x}", instance(config), std::process::id())
}

fn instance(config: &Config) -> String {
    if !config.pod_name.is_empty() {
        return config.pod_name.clone();
    }
    std::fs::read_to_string("/etc/hostname")
        .map_or_else(|_| "steward-operator".into(), |name| name.trim().to_owned())
}

/// The receiving ends that only the controllers use.
struct Streams {
    tenant_wakes: mpsc::UnboundedReceiver<Key>,
    datastore_wakes: mpsc::UnboundedReceiver<String>,
    tenant_writer: reflector::store::Writer<GuardedTenant>,
    datastore_writer: reflector::store::Writer<GuardedDataStore>,
    platform: watch::Sender<Platform>,
}

fn build(
    config: &Config,
    client: Client,
    cluster: String,
    fence: Fence,
    extras: &Extras,
    leadership: watch::Receiver<Leadership>,
) -> (Arc<Context>, Streams) {
    let client = fence.client(client);
    let (tenant_cache, tenant_writer) = reflector::store();
    let (datastore_cache, datastore_writer) = reflector::store();
    let (wake_tenant, tenant_wakes) = mpsc::unbounded_channel();
    let (wake_datastore, datastore_wakes) = mpsc::unbounded_channel();
    let (platform_sender, platform) = watch::channel(Platform::default());
    let versions = Versions::remembered();
    let context = Context {
        engine: Engine::new(client.clone(), Cluster::Management, extras.metrics.clone())
            .with_versions(versions.clone()),
        versions,
        underway: Underway::default(),
        cluster,
        settings: config.settings(),
        access: config.tenant_access,
        dial: extras.dial.clone(),
        timeout: config.controller_reconcile_timeout,
        resync: config.cache_resync_period,
        metrics: extras.metrics.clone(),
        events: Events::new(client.clone(), instance(config)),
        tenants: Tenants::new(wake_tenant.clone(), extras.metrics.clone(), fence.clone()),
        reaches: Reaches::new(wake_tenant.clone()),
        stores: crate::stores::Stores::default(),
        connections: crate::datastore::connections::Connections::default(),
        upkeep: crate::datastore::upkeep::Upkeep::default(),
        defragment_above: config.defragment_above,
        claims: Claims::new(client.clone(), &config.pod_namespace),
        platform,
        leadership,
        fence,
        tenant_cache,
        datastore_cache,
        wake_tenant,
        wake_datastore,
        tenant_backoff: crate::backoff::Backoff::default(),
        datastore_backoff: crate::backoff::Backoff::default(),
        client,
    };
    (
        Arc::new(context),
        Streams {
            tenant_wakes,
            datastore_wakes,
            tenant_writer,
            datastore_writer,
            platform: platform_sender,
        },
    )
}

fn start(
    context: Arc<Context>,
    streams: Streams,
    config: &Config,
    extras: &Extras,
    stop: &CancellationToken,
    helpers: &mut JoinSet<()>,
) -> JoinSet<()> {
    let Streams {
        tenant_wakes,
        datastore_wakes,
        tenant_writer,
        datastore_writer,
        platform,
    } = streams;
    helpers.spawn(follow::tenants(context.clone(), tenant_writer));
    helpers.spawn(follow::datastores(context.clone(), datastore_writer));
    helpers.spawn(follow::leadership(context.clone()));
    helpers.spawn(follow::platform(context.clone()));
    helpers.spawn(follow::pods(context.clone()));
    for kind in steward_plan::datastore::managed_kinds() {
        helpers.spawn(follow::members(context.clone(), kind));
    }
    let client = context.client.clone();

    let mut running = JoinSet::new();
    let readiness = extras.readiness.clone();
    let concurrency = config.max_concurrent_tcp_reconciles;
    let stop = stop.clone();
    running.spawn(async move {
        // Discovery first: without it every kind of route would look unserved.
        let ready = async {
            while let Err(error) = first_look(&client, &platform).await {
                tracing::warn!(%error, "the API server can't be asked what it serves; trying again");
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
            // The writers live as long as the helpers.
            let _ = context.datastore_cache.wait_until_ready().await;
            let _ = context.tenant_cache.wait_until_ready().await;
        };
        tokio::select! {
            () = ready => {}
            () = stop.cancelled() => return,
        }
        readiness.set();
        tracing::info!(tenants = context.tenant_cache.len(), datastores = context.datastore_cache.len(), "ready");
        let tenants = Runner {
            name: "tenantcontrolplane",
            store: context.tenant_cache.clone(),
            concurrency,
            debounce: Duration::ZERO,
        };
        let tenant_queue = received(tenant_wakes).map(|(namespace, name)| ObjectRef::new(&name).within(&namespace));
        let datastores = Runner {
            name: "datastore",
            store: context.datastore_cache.clone(),
            concurrency: 4,
            debounce: DATASTORE_DEBOUNCE,
        };
        let datastore_queue = received(datastore_wakes).map(|name| ObjectRef::new(&name));
        let cluster = platform::follow(client, platform);
        let both = async {
            futures::join!(
                tenants.run(tenant_queue, control_plane::reconcile, control_plane::retry, context.clone(), stop.clone()),
                datastores.run(datastore_queue, data_store::reconcile, data_store::retry, context.clone(), stop.clone()),
            )
        };
        tokio::select! {
            _ = both => {}
            () = cluster => {}
        }
    });
    running
}

fn received<T>(mut receiver: mpsc::UnboundedReceiver<T>) -> impl Stream<Item = T> {
    stream::poll_fn(move |context| receiver.poll_recv(context))
}

async fn first_look(
    client: &Client,
    platform: &watch::Sender<Platform>,
) -> Result<(), kube::Error> {
    let found = platform::discover(client).await?;
    platform.send_replace(found);
    Ok(())
}
