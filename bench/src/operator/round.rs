//! One round: an operator, a number of tenants, and what they cost.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Secret};
use kube::{
    Api,
    api::{DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{
    Pace,
    audit::{Log, Writes},
    contender::Contender,
    keys::KeyCount,
    ready,
    stage::{NAMESPACE, Stage},
};
use crate::process::{self, Process};

/// A tenant that takes longer than this on average is stuck.
const PER_TENANT: Duration = Duration::from_secs(10);
/// For a single change, or for an operator to start.
const LIMIT: Duration = Duration::from_mins(1);

/// What to do.
#[derive(Clone, Debug)]
pub(super) struct Round {
    /// As it is called in the table.
    pub(super) name: &'static str,
    /// Who does it.
    pub(super) contender: Contender,
    /// With how many tenants.
    pub(super) tenants: usize,
    /// How many at a time.
    pub(super) workers: usize,
    /// Whether their API servers run, so that the operator works inside them, too.
    pub(super) ready: bool,
}

/// What it cost.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// Which round.
    pub(super) name: String,
    /// Tenants in it.
    pub(super) tenants: usize,
    /// The numbers, or why there are none.
    pub(super) cost: Result<Cost, String>,
}

/// Per tenant, unless it says otherwise.
#[derive(Clone, Debug)]
pub(super) struct Cost {
    /// The operator's CPU, s.
    pub(super) cpu: f64,
    /// Time, s: all tenants together, divided by their number.
    pub(super) wall: f64,
    /// Writes.
    pub(super) writes: f64,
    /// Of which refused.
    pub(super) refused: f64,
    /// Of which to a status.
    pub(super) status: f64,
    /// The API server's CPU, s.
    pub(super) server_cpu: f64,
    /// The operator's memory, MiB.
    pub(super) memory: f64,
    /// Whether that is with everything the operator does inside a tenant.
    pub(super) ready: bool,
    /// What the operator's memory grew by when a tenant's users filled it, MiB in all.
    pub(super) filled: Option<f64>,
    /// The operator's memory with no tenant, MiB in all.
    pub(super) at_start: f64,
    /// Private keys of one tenant.
    pub(super) keys: KeyCount,
    /// Share of a core at rest, all tenants.
    pub(super) rest_cpu: f64,
    /// Writes per second at rest, all tenants.
    pub(super) rest_writes: f64,
    /// One change with all others present, s.
    pub(super) change: f64,
    /// What was written until the tenants were there.
    pub(super) kinds: Writes,
}

/// Where programs and files of a round are.
struct Places {
    bin: PathBuf,
    directory: PathBuf,
}

impl Outcome {
    /// A round that could not be finished.
    pub(super) fn failed(round: &Round, why: &str) -> Self {
        Self {
            name: round.name.to_owned(),
            tenants: round.tenants,
            cost: Err(why.to_owned()),
        }
    }
}

impl Round {
    /// Sets the stage, runs, measures.
    pub(super) async fn run(&self, work: &Path, pace: Pace) -> Result<Outcome> {
        let directory = work.join(self.name.replace([' ', ','], "-"));
        std::fs::create_dir_all(&directory)?;
        let stage = Stage::set(&self.contender, work, &directory).await?;
        let program =
            self.contender
                .program(&directory, &stage.server.kubeconfig(), self.workers)?;
        let mut operator = program.start(&directory)?;
        let places = Places {
            bin: work.join("bin"),
            directory,
        };
        let cost = self.measure(&stage, &mut operator, pace, &places).await;
        let cost = cost.with_context(|| format!("the operator said: {}", operator.last_words()))?;
        Ok(Outcome {
            name: self.name.to_owned(),
            tenants: self.tenants,
            cost: Ok(cost),
        })
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "thousands of tenants and writes"
    )]
    async fn measure(
        &self,
        stage: &Stage,
        operator: &mut Process,
        pace: Pace,
        places: &Places,
    ) -> Result<Cost> {
        // Everything that happens once per start is over when this has passed.
        tokio::time::sleep(pace.settle).await;
        operator.check()?;
        let count = self.tenants as f64;
        let mut log = Log::at_end(&stage.server.audit_log())?;
        let at_start = operator.rss_kib();
        let (cpu, server_cpu) = (operator.cpu(), process::cpu_of(stage.server_pid));
        let begun = Instant::now();
        self.create(stage).await?;
        self.wait(stage, operator, begun).await?;
        let wall = begun.elapsed();
        let cpu = operator.cpu().saturating_sub(cpu);
        let server_cpu = process::cpu_of(stage.server_pid).saturating_sub(server_cpu);
        let kinds = log.since()?;
        let _servers = if self.ready {
            ready::start(stage, &self.api(stage), &places.bin, &places.directory).await?
        } else {
            Vec::new()
        };
        tokio::time::sleep(pace.settle).await;
        let memory = operator.rss_kib().saturating_sub(at_start);
        log.since()?;
        let before = operator.cpu();
        tokio::time::sleep(pace.rest).await;
        let rest = operator.cpu().saturating_sub(before);
        let rest_writes = log.since()?.all as f64 / pace.rest.as_secs_f64();
        let filled = if self.ready {
            let before = operator.rss_kib();
            ready::fill(&places.directory, &name(0)).await?;
            tokio::time::sleep(pace.settle).await;
            Some((operator.rss_kib() as f64 - before as f64) / 1024.0)
        } else {
            None
        };
        Ok(Cost {
            cpu: cpu.as_secs_f64() / count,
            wall: wall.as_secs_f64() / count,
            writes: kinds.all as f64 / count,
            refused: kinds.refused as f64 / count,
            status: kinds.status as f64 / count,
            server_cpu: server_cpu.as_secs_f64() / count,
            memory: memory as f64 / 1024.0 / count,
            ready: self.ready,
            filled,
            at_start: at_start as f64 / 1024.0,
            keys: keys(stage, &name(0)).await?,
            rest_cpu: rest.as_secs_f64() / pace.rest.as_secs_f64(),
            rest_writes,
            change: self.change(stage).await?.as_secs_f64(),
            kinds,
        })
    }

    fn api(&self, stage: &Stage) -> Api<DynamicObject> {
        Api::namespaced_with(stage.client.clone(), NAMESPACE, &self.contender.tenants())
    }

    async fn create(&self, stage: &Stage) -> Result<()> {
        let api = self.api(stage);
        for number in 0..self.tenants {
            let tenant = self.contender.tenant(&name(number));
            api.create(&PostParams::default(), &tenant)
                .await
                .context("creating a tenant")?;
        }
        Ok(())
    }

    /// Until every tenant has its Deployment and says so in its status.
    async fn wait(&self, stage: &Stage, operator: &mut Process, begun: Instant) -> Result<()> {
        let api = self.api(stage);
        let limit = LIMIT + PER_TENANT * u32::try_from(self.tenants)?;
        // Seldom enough that looking costs little beside what is looked at.
        let pause =
            Duration::from_millis(100).max(Duration::from_millis(2) * u32::try_from(self.tenants)?);
        loop {
            operator.check()?;
            let cached = ListParams::default().match_any();
            let tenants = api.list(&cached).await.context("listing tenants")?;
            let waiting: Vec<_> = tenants
                .items
                .iter()
                .filter(|tenant| !is_filled(tenant))
                .collect();
            let Some(first) = waiting
                .first()
                .filter(|_| tenants.items.len() == self.tenants)
            else {
                if tenants.items.len() == self.tenants {
                    return Ok(());
                }
                continue;
            };
            if begun.elapsed() > limit {
                bail!(
                    "{} tenants still wait after {limit:?}; one of them: {}",
                    waiting.len(),
                    first.data["status"]
                );
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// One more replica for one tenant: how long until its Deployment has it.
    async fn change(&self, stage: &Stage) -> Result<Duration> {
        let (tenants, name) = (self.api(stage), name(self.tenants / 2));
        let deployments: Api<Deployment> = Api::namespaced(stage.client.clone(), NAMESPACE);
        let patch = json!({ "spec": { "controlPlane": { "deployment": { "replicas": 2 } } } });
        let begun = Instant::now();
        tenants
            .patch(&name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        while begun.elapsed() < LIMIT {
            let replicas = deployments
                .get(&name)
                .await?
                .spec
                .and_then(|spec| spec.replicas);
            if replicas == Some(2) {
                return Ok(begun.elapsed());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        bail!("{name}'s Deployment has no second replica {LIMIT:?} after it was asked for")
    }
}

fn name(number: usize) -> String {
    format!("tenant-{number:04}")
}

fn is_filled(tenant: &DynamicObject) -> bool {
    let deployment = tenant
        .data
        .pointer("/status/kubernetesResources/deployment/name");
    deployment
        .and_then(Value::as_str)
        .is_some_and(|name| !name.is_empty())
}

async fn keys(stage: &Stage, tenant: &str) -> Result<KeyCount> {
    let secrets: Api<Secret> = Api::namespaced(stage.client.clone(), NAMESPACE);
    let all = secrets.list(&ListParams::default()).await?;
    let prefix = format!("{tenant}-");
    let own = all.items.iter().filter(|secret| {
        secret
            .metadata
            .name
            .as_deref()
            .is_some_and(|name| name.starts_with(&prefix))
    });
    Ok(KeyCount::of(own))
}
