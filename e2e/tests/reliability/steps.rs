//! What is done to the parts, one after another.

use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use steward_e2e::{Stage, wait_for};

use crate::Grace::{self, NobodyRefused, Seamless};

const TENANTS: [&str; 2] = ["t1", "t2"];

/// One thing that happens.
pub(crate) struct Step {
    pub(crate) what: &'static str,
    pub(crate) grace: Grace,
    act: Act,
}

enum Act {
    /// Shows what the machine carries when all is well.
    Nothing,
    /// Kills one of the processes that are found on a host, `mgmt` or `worker-N`, for a program.
    Kill(Find, &'static [(&'static str, &'static str)]),
    /// `kubectl rollout restart`.
    Restart(&'static str),
    /// A change of both tenants after which their control planes are new.
    ControlPlanes(&'static str),
    /// A change of both tenants after which their node proxies are new.
    NodeProxies(&'static str),
    /// New certificates on demand, which live as short as can be.
    Certificates,
    /// Newer ones, because those end soon.
    CertificatesInTime,
}

/// Writes the command that finds processes of a program, those first that are to be killed.
type Find = fn(&str) -> String;

pub(crate) const ALL: [Step; 15] = [
    step("nothing", Seamless, Act::Nothing),
    step(
        "all certificates renewed on demand",
        Seamless,
        Act::Certificates,
    ),
    step(
        "the serving process of one of two gateways killed",
        NobodyRefused,
        Act::Kill(serving, &[("mgmt", "steward-gateway")]),
    ),
    step(
        "one of two gateways killed",
        NobodyRefused,
        Act::Kill(all, &[("mgmt", "steward-gateway")]),
    ),
    step(
        "gateways replaced",
        Seamless,
        Act::Restart("deployment/steward-gateway"),
    ),
    step(
        "the serving process of one of two gates killed",
        NobodyRefused,
        Act::Kill(serving, &[("mgmt", "steward-gate")]),
    ),
    step(
        "one of two gates killed",
        NobodyRefused,
        Act::Kill(all, &[("mgmt", "steward-gate")]),
    ),
    step(
        "control planes with their gates replaced",
        Seamless,
        Act::ControlPlanes(
            r#"{"controlPlane":{"deployment":{"podAdditionalMetadata":{"annotations":{"replaced":"yes"}}}}}"#,
        ),
    ),
    step(
        "the serving process of a node proxy of each kind killed",
        NobodyRefused,
        Act::Kill(
            serving,
            &[
                ("worker-1", "steward-tcp-proxy"),
                ("worker-2", "steward-tcp-proxy"),
            ],
        ),
    ),
    step(
        "a node proxy of each kind killed",
        NobodyRefused,
        Act::Kill(
            all,
            &[
                ("worker-1", "steward-tcp-proxy"),
                ("worker-2", "steward-tcp-proxy"),
            ],
        ),
    ),
    step(
        "those who hold for a gateway and a node proxy of each kind killed",
        Seamless,
        Act::Kill(
            holding,
            &[
                ("mgmt", "steward-gateway"),
                ("worker-1", "steward-tcp-proxy"),
                ("worker-2", "steward-tcp-proxy"),
            ],
        ),
    ),
    step(
        "node proxies replaced",
        Seamless,
        Act::NodeProxies(r#"{"addons":{"tcpProxy":{"resources":{"requests":{"memory":"24Mi"}}}}}"#),
    ),
    step(
        "operator killed",
        Seamless,
        Act::Kill(all, &[("mgmt", "steward-operator")]),
    ),
    step(
        "operator replaced",
        Seamless,
        Act::Restart("deployment/steward"),
    ),
    step(
        "all certificates renewed in time",
        Seamless,
        Act::CertificatesInTime,
    ),
];

const fn step(what: &'static str, grace: Grace, act: Act) -> Step {
    Step { what, grace, act }
}

impl Step {
    /// Does it, and waits until everything runs as before.
    pub(crate) async fn run(&self, stage: &Stage) -> Result<()> {
        match &self.act {
            Act::Nothing => {
                tokio::time::sleep(Duration::from_secs(30)).await;
                Ok(())
            }
            Act::Kill(find, places) => {
                for (host, program) in *places {
                    kill(stage, host, &find(program)).await?;
                }
                Ok(())
            }
            Act::Restart(what) => restart(stage, what).await,
            Act::ControlPlanes(change) => {
                patch(stage, change).await?;
                control_planes(stage).await
            }
            Act::NodeProxies(change) => {
                patch(stage, change).await?;
                node_proxies(stage).await
            }
            Act::Certificates => certificates(stage).await,
            Act::CertificatesInTime => certificates_in_time(stage).await,
        }
    }
}

/// Finds every process of a program in the container that serves. The first of them is all of it.
fn all(program: &str) -> String {
    format!("pgrep -f '^/{program}( --|$)'")
}

/// Finds those that hold its listeners, each the whole of another container.
fn holding(program: &str) -> String {
    format!("pgrep -f '^/{program} hold '")
}

/// Finds those that serve, below the one that keeps their listeners.
fn serving(program: &str) -> String {
    let all = all(program);
    format!("{all} --parent $({all} | paste -sd,)")
}

/// Kills the oldest process that `find` finds, and waits until there are as many as before.
async fn kill(stage: &Stage, host: &str, find: &str) -> Result<()> {
    let host = match host {
        "worker-1" => stage.lab.worker(1)?,
        "worker-2" => stage.lab.worker(2)?,
        _ => stage.lab.mgmt(),
    };
    let before = host.script(find).await?;
    let victim = before.lines().next().unwrap_or_default().to_owned();
    host.run(&["kill", "-9", &victim]).await?;
    let count = before.lines().count();
    wait_for("what was killed to be started again", 120, async || {
        let now = host.script(find).await?;
        ensure!(
            !now.lines().any(|pid| pid == victim) && now.lines().count() >= count,
            "{now}"
        );
        Ok(())
    })
    .await
}

async fn restart(stage: &Stage, what: &str) -> Result<()> {
    let system = ["-n", "steward-system"];
    stage
        .kubectl(&[&["rollout", "restart", what], &system[..]].concat())
        .await?;
    stage
        .kubectl(&[&["rollout", "status", what, "--timeout=180s"], &system[..]].concat())
        .await?;
    Ok(())
}

async fn patch(stage: &Stage, change: &str) -> Result<()> {
    let change = format!(r#"{{"spec":{change}}}"#);
    for name in TENANTS {
        stage.patch("tenants", name, &change).await?;
    }
    Ok(())
}

/// Waits until the operator has seen the newest spec and every pod is of the newest template.
async fn control_planes(stage: &Stage) -> Result<()> {
    for name in TENANTS {
        observed(stage, name).await?;
        wait_for(&format!("the pods of {name}"), 300, async || {
            let path = "jsonpath={.metadata.generation} {.status.observedGeneration} {.status.updatedReplicas} {.status.readyReplicas} {.status.replicas}";
            let words = ["get", "deployment", name, "-n", "tenants", "-o", path];
            let seen = stage.kubectl(&words).await?;
            let numbers: Vec<&str> = seen.split(' ').collect();
            ensure!(numbers.len() == 5 && numbers[0] == numbers[1] && numbers[2..] == ["2", "2", "2"], "{seen}");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

async fn observed(stage: &Stage, name: &str) -> Result<()> {
    wait_for("the operator to see the change", 120, async || {
        let path = "jsonpath={.metadata.generation} {.status.observedGeneration}";
        let seen = stage
            .kubectl(&["get", "tcp", name, "-n", "tenants", "-o", path])
            .await?;
        ensure!(
            seen.split_once(' ')
                .is_some_and(|(want, have)| want == have),
            "{seen}"
        );
        Ok(())
    })
    .await
}

async fn node_proxies(stage: &Stage) -> Result<()> {
    for (name, kind) in [
        ("t1", "daemonset/steward-tcp-proxy"),
        ("t2", "deployment/steward-tcp-proxy"),
    ] {
        observed(stage, name).await?;
        let tenant = stage.tenant("tenants", name).await?;
        let status = [
            "rollout",
            "status",
            kind,
            "-n",
            "kube-system",
            "--timeout=240s",
        ];
        tenant.kubectl(&status).await?;
    }
    Ok(())
}

/// The API servers' certificates that were made on demand.
static SHORT: OnceLock<Vec<String>> = OnceLock::new();

/// Both tenants get certificates that live twenty minutes; they are due when a third is left, which
/// is when the steps in between are over.
async fn certificates(stage: &Stage) -> Result<()> {
    patch(stage, r#"{"certificates":{"validity":"20m"}}"#).await?;
    let mut first = Vec::new();
    for name in TENANTS {
        first.push(server_certificate(stage, name).await?);
        let labels = format!(
            "steward.butlerlabs.dev/name={name},steward.butlerlabs.dev/certificate_lifecycle_controller"
        );
        let note = "certs.steward.butlerlabs.dev/rotate=now";
        stage
            .kubectl(&["annotate", "secrets", "-n", "tenants", "-l", &labels, note])
            .await?;
    }
    let short = renewed(stage, &first).await?;
    SHORT.set(short).ok().context("this step comes once")
}

async fn certificates_in_time(stage: &Stage) -> Result<()> {
    let short = SHORT
        .get()
        .context("certificates were made on demand before")?;
    renewed(stage, short).await?;
    patch(stage, r#"{"certificates":null}"#).await
}

/// Waits until both API servers have another certificate than this.
async fn renewed(stage: &Stage, before: &[String]) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for (name, old) in TENANTS.into_iter().zip(before) {
        let new = wait_for(&format!("a new certificate of {name}"), 600, async || {
            let new = server_certificate(stage, name).await?;
            ensure!(new != *old, "it is the old one");
            Ok(new)
        })
        .await?;
        all.push(new);
    }
    control_planes(stage).await?;
    Ok(all)
}

async fn server_certificate(stage: &Stage, name: &str) -> Result<String> {
    let secret = format!("{name}-api-server-certificate");
    let path = "jsonpath={.data.apiserver\\.crt}";
    stage
        .kubectl(&["get", "secret", &secret, "-n", "tenants", "-o", path])
        .await
}
