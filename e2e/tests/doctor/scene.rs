//! The lab with one tenant on it, and what doctor sees there.

use std::path::PathBuf;
use std::process::Output;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use steward_e2e::{Stage, Tenant, wait_for};

use crate::fault::{Fault, Repair};
use crate::machine::Machine;

pub(crate) const DOMAIN: &str = "k8s.example.com";
pub(crate) const HOST: &str = "t1.k8s.example.com";

/// How long a fault may take to show, and a repair to be complete, on a busy machine.
const SHOWS: u64 = 150;
const HEALS: u64 = 300;

/// The lab, the patient, and the tools.
pub(crate) struct Scene {
    pub(crate) stage: Stage,
    pub(crate) t1: Tenant,
    pub(crate) front_door: std::net::Ipv4Addr,
    pub(crate) steward: PathBuf,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) work: tempfile::TempDir,
    /// Where doctor is run, if not on the client's host.
    pub(crate) machine: Mutex<Option<Arc<Machine>>>,
}

pub(crate) fn tenant(name: &str, hostname: &str) -> String {
    // The controller's type asks for an annotation that our gateway does not need: so that
    // there is one to take away.
    format!(
        "apiVersion: v1
kind: Namespace
metadata: {{ name: tenants }}
---
apiVersion: steward.butlerlabs.dev/v1alpha1
kind: TenantControlPlane
metadata: {{ name: {name}, namespace: tenants }}
spec:
  kubernetes: {{ version: v1.36.3 }}
  controlPlane:
    deployment: {{ replicas: 1 }}
    service: {{ serviceType: ClusterIP }}
    ingress: {{ hostname: {hostname}, ingressClassName: steward, controllerType: haproxy }}
  addons: {{ coreDNS: {{}}, kubeProxy: {{}}, konnectivity: {{}}, tcpProxy: {{}} }}
"
    )
}

/// What cloud-init would run of its user data: each entry of `runcmd`, by the shell.
fn commands_of(user_data: &str) -> Result<String> {
    ensure!(
        user_data.starts_with("#cloud-config\n"),
        "cloud-init ignores {user_data:?}"
    );
    let parsed: Value = serde_saphyr::from_str(user_data)?;
    let commands = parsed["runcmd"].as_array().context("no runcmd")?;
    let lines: Option<Vec<&str>> = commands.iter().map(Value::as_str).collect();
    Ok(lines.context("not lines")?.join("\n"))
}

impl Scene {
    pub(crate) async fn set() -> Result<Self> {
        let values = [
            "gateway.enabled=true",
            "gateway.replicas=1",
            "gateway.drainSeconds=1",
        ];
        let stage = Stage::up("doctor", 2, &values).await?;
        let front_door = stage
            .address_of("steward-system", "steward-gateway")
            .await?;
        stage.name(&format!("*.{DOMAIN}"), front_door)?;
        stage.apply(&tenant("t1", HOST)).await?;
        let t1 = stage.tenant("tenants", "t1").await?;
        let test = std::env::current_exe()?;
        let folder = test
            .parent()
            .and_then(|deps| deps.parent())
            .context("the test lies in no folder")?;
        let kubeconfig = stage.lab.cluster()?.kubeconfig();
        let work = tempfile::tempdir()?;
        let scene = Self {
            stage,
            t1,
            front_door,
            steward: folder.join("steward"),
            kubeconfig,
            work,
            machine: Mutex::default(),
        };
        for (number, form) in [(1, "--script"), (2, "--cloud-init")] {
            scene.join(number, form).await.context(form)?;
        }
        Ok(scene)
    }

    /// Lets a worker join by what `steward join` prints for machines.
    async fn join(&self, number: u8, form: &str) -> Result<()> {
        let words = ["join", "t1", "-n", "tenants", "--ttl", "30m", form];
        let printed = self.steward(&words).await?;
        let printed = String::from_utf8(printed.stdout)?;
        let script = match form {
            "--cloud-init" => commands_of(&printed)?,
            _ => printed,
        };
        // The lab's hosts share one kernel, and have no systemd: preflight would say so.
        let lenient = script.replace("kubeadm join", "kubeadm join --ignore-preflight-errors=all");
        ensure!(lenient != script, "nothing joins in {script:?}");
        self.stage.lab.worker(number)?.script(&lenient).await?;
        self.t1.node_ready(&format!("worker-{number}")).await
    }

    /// `steward …` where one sits, against the management cluster.
    pub(crate) async fn steward(&self, words: &[&str]) -> Result<Output> {
        if let Some(machine) = self.machine() {
            return machine.steward(words).await;
        }
        let program = self.steward.display().to_string();
        let kubeconfig = self.kubeconfig.display().to_string();
        let mut command = vec![program.as_str(), "--kubeconfig", &kubeconfig];
        command.extend(words);
        Ok(self.stage.lab.client_host().exec(&command).await?)
    }

    /// What doctor finds, and the code it ends with.
    pub(crate) async fn examine(&self, patient: &str) -> Result<(Option<i32>, Vec<Value>)> {
        let output = self
            .steward(&["doctor", patient, "-n", "tenants", "-o", "json"])
            .await?;
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        let report: Value = serde_json::from_str(&text)
            .with_context(|| format!("doctor printed {text:?} and {errors:?}"))?;
        let findings = report[0]["findings"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        Ok((output.status.code(), findings))
    }

    /// Waits until doctor has nothing to say.
    pub(crate) async fn is_well(&self) -> Result<()> {
        wait_for("doctor to find nothing", HEALS, async || {
            let (code, findings) = self.examine("t1").await?;
            let wrong: Vec<&Value> = findings
                .iter()
                .filter(|f| f["severity"] != "fine")
                .collect();
            ensure!(
                wrong.is_empty() && code == Some(0),
                "ended with {code:?}: {wrong:#?}"
            );
            Ok(())
        })
        .await
    }

    /// Waits until doctor names the fault first, and returns that finding and how long the
    /// examination took.
    pub(crate) async fn is_named(&self, fault: Fault) -> Result<(Value, Duration)> {
        wait_for(&format!("doctor to name {fault:?}"), SHOWS, async || {
            let began = Instant::now();
            let (code, findings) = self.examine(fault.patient()).await?;
            let first = findings.first().cloned().unwrap_or_default();
            let named = first["check"]
                .as_str()
                .is_some_and(|check| fault.checks().contains(&check));
            let said = first["evidence"].as_str().is_some_and(|e| !e.is_empty())
                && first["fix"].is_string();
            let wrong: Vec<&Value> = findings
                .iter()
                .filter(|f| f["severity"] != "fine")
                .collect();
            ensure!(
                named && said && code == Some(1),
                "ended with {code:?}: {wrong:#?}"
            );
            ensure!(
                !fault.is_of_the_public_way() || findings.iter().any(|f| f["check"] == "nodes"),
                "nobody looked past the front door: {wrong:#?}"
            );
            Ok((first, began.elapsed()))
        })
        .await
    }

    /// Waits until doctor no longer names the fault, nobody else having helped.
    async fn is_healed(&self, fault: Fault) -> Result<()> {
        let what = format!("the advice to have ended {fault:?}");
        wait_for(&what, HEALS, async || {
            let (_, findings) = self.examine(fault.patient()).await?;
            let named = findings.iter().find(|f| {
                let check = f["check"].as_str().unwrap_or_default();
                f["severity"] != "fine" && fault.checks().contains(&check)
            });
            ensure!(named.is_none(), "{named:#?}");
            ensure!(
                findings.iter().any(|f| f["severity"] == "fine"),
                "nothing was seen"
            );
            Ok(())
        })
        .await
    }

    /// Does what doctor says. Says whether that was all there is to do.
    async fn follow(&self, fault: Fault, fix: &str) -> Result<bool> {
        match fault.repair() {
            Repair::OnTheNode => return Ok(false),
            Repair::Paste => {
                self.paste(fix).await?;
            }
            Repair::Records => self.make_records(&self.paste(fix).await?)?,
        }
        Ok(true)
    }

    /// Gives the name server the addresses that `steward dns` printed, as its owner would.
    fn make_records(&self, printed: &str) -> Result<()> {
        let mut made = 0;
        for line in printed.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let [name, .., "A", address] = words.as_slice() {
                self.stage
                    .name(name.trim_end_matches('.'), address.parse()?)?;
                made += 1;
            }
        }
        ensure!(made > 0, "no record of an address in {printed:?}");
        Ok(())
    }

    /// Runs what doctor says to paste, as a person would where doctor was run.
    async fn paste(&self, fix: &str) -> Result<String> {
        if let Some(machine) = self.machine() {
            return machine.paste(fix).await;
        }
        let folder = self.steward.parent().context("steward lies in no folder")?;
        let script = format!(
            "export KUBECONFIG={} PATH={}:$PATH; cd {}; {fix}",
            self.kubeconfig.display(),
            folder.display(),
            self.work.path().display()
        );
        self.stage
            .lab
            .client_host()
            .script(&script)
            .await
            .with_context(|| format!("paste {fix}"))
    }

    /// A script on the management cluster's host.
    pub(crate) async fn on_mgmt(&self, script: &str) -> Result<String> {
        Ok(self.stage.lab.mgmt().script(script).await?)
    }

    /// kubectl inside the tenant, from the client's host.
    pub(crate) async fn inside(&self, command: &str) -> Result<String> {
        let kubeconfig = self.t1.kubeconfig().display();
        let script = format!("kubectl --kubeconfig {kubeconfig} {command}");
        Ok(self.stage.lab.client_host().script(&script).await?)
    }

    /// Tells the operator to keep its hands off t1.
    pub(crate) async fn pause(&self) -> Result<()> {
        self.on_mgmt(
            "kubectl annotate tcp -n tenants t1 steward.butlerlabs.dev/paused=true --overwrite",
        )
        .await?;
        Ok(())
    }

    /// Makes a fault, has it named, follows the advice. Whatever happens, it is undone.
    pub(crate) async fn play(&self, fault: Fault) -> Result<String> {
        let kept = self.make(fault).await;
        let named = match &kept {
            Ok(_) => self.is_named(fault).await,
            Err(error) => Err(anyhow::anyhow!("{fault:?} could not be made: {error:#}")),
        };
        let followed = match &named {
            Ok((finding, _)) => {
                let fix = finding["fix"].as_str().unwrap_or_default();
                self.follow(fault, fix).await
            }
            Err(_) => Ok(false),
        };
        let healed = match &followed {
            // There nothing else was touched, and nothing is left to be undone.
            Ok(true) if fault == Fault::Clock => self.is_well().await,
            Ok(true) => self.is_healed(fault).await,
            _ => Ok(()),
        };
        let restored = self.undo(fault).await;
        drop(kept);
        let well = self.is_well().await;
        let (finding, took) = named?;
        followed?;
        healed?;
        restored?;
        well.with_context(|| format!("after {fault:?}"))?;
        let evidence = finding["evidence"].as_str().unwrap_or_default();
        Ok(format!(
            "{:<24} {:<26} {:>5} ms  {evidence}",
            format!("{fault:?}"),
            finding["check"].as_str().unwrap_or_default(),
            took.as_millis()
        ))
    }
}
