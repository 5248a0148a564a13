//! The lab with one tenant on it, and what doctor sees there.

use std::path::PathBuf;
use std::process::Output;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use steward_e2e::{Stage, Tenant, wait_for};

use crate::fault::Fault;

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
        for number in [1, 2] {
            t1.join(&stage.lab.worker(number)?).await?;
            t1.node_ready(&format!("worker-{number}")).await?;
        }
        let test = std::env::current_exe()?;
        let folder = test
            .parent()
            .and_then(|deps| deps.parent())
            .context("the test lies in no folder")?;
        let kubeconfig = stage.lab.cluster()?.kubeconfig();
        let work = tempfile::tempdir()?;
        Ok(Self {
            stage,
            t1,
            front_door,
            steward: folder.join("steward"),
            kubeconfig,
            work,
        })
    }

    /// `steward …` on the client's host, against the management cluster.
    pub(crate) async fn steward(&self, words: &[&str]) -> Result<Output> {
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

    /// Runs what doctor says to paste, as a person at the client's host would.
    pub(crate) async fn paste(&self, fix: &str) -> Result<()> {
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
            .with_context(|| format!("paste {fix}"))?;
        Ok(())
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
        let pasted = match &named {
            Ok((finding, _)) if fault.is_fixed_by_pasting() => {
                self.paste(finding["fix"].as_str().unwrap_or_default())
                    .await
            }
            _ => Ok(()),
        };
        let cured = fault.is_fixed_by_pasting() && named.is_ok() && pasted.is_ok();
        if !cured || fault.patient() != "t1" {
            self.undo(fault).await?;
        }
        drop(kept);
        let well = self.is_well().await;
        let (finding, took) = named?;
        pasted?;
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
