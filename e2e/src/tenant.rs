//! One tenant, as its owner sees it: a kubeconfig, workers, pods.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use steward_lab::Host;

use crate::pods::Pod;
use crate::stage::{kubectl, wait_for, with_input};

/// A tenant that is available.
pub struct Tenant {
    namespace: String,
    name: String,
    kubeconfig: PathBuf,
    client: Host,
}

impl Tenant {
    pub(crate) fn new(namespace: &str, name: &str, kubeconfig: PathBuf, client: Host) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            kubeconfig,
            client,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its namespace in the management cluster.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Its administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &PathBuf {
        &self.kubeconfig
    }

    /// The same tenant as seen from another host, where `client` has no way to it.
    #[must_use]
    pub fn seen_from(self, client: Host) -> Self {
        Self { client, ..self }
    }

    /// Leads a port of a pod to a port of the `client` host, until dropped.
    pub fn forward(&self, pod: &str, ports: &str) -> Result<tokio::process::Child> {
        let kubeconfig = self.kubeconfig.display().to_string();
        let words = [
            "kubectl",
            "--kubeconfig",
            &kubeconfig,
            "port-forward",
            pod,
            ports,
        ];
        Ok(self.client.spawn(&words)?)
    }

    /// kubectl from the `client` host, by the endpoint in the kubeconfig.
    pub async fn kubectl(&self, words: &[&str]) -> Result<String> {
        kubectl(&self.client, Some(&self.kubeconfig), words).await
    }

    /// `kubectl apply -f -` from the `client` host.
    pub async fn apply(&self, manifest: &str) -> Result<String> {
        let kubeconfig = self.kubeconfig.display().to_string();
        with_input(
            &self.client,
            &["kubectl", "--kubeconfig", &kubeconfig, "apply", "-f", "-"],
            manifest,
        )
        .await
    }

    /// The command that `kubeadm token create` prints for joining a worker.
    pub async fn join_command(&self) -> Result<String> {
        let kubeconfig = self.kubeconfig.display().to_string();
        let words = [
            "kubeadm",
            "token",
            "create",
            "--print-join-command",
            "--kubeconfig",
            &kubeconfig,
        ];
        let printed = self.client.run(&words).await?;
        let line = printed.lines().find(|l| l.starts_with("kubeadm join"));
        Ok(line.context("no join command was printed")?.to_owned())
    }

    /// Lets a worker join with what `kubeadm token create` prints, and nothing else changed.
    pub async fn join(&self, worker: &Host) -> Result<()> {
        let line = self.join_command().await?;
        // The lab's hosts share one kernel, and have no systemd: preflight would say so.
        let mut words: Vec<&str> = line.split_whitespace().collect();
        words.push("--ignore-preflight-errors=all");
        let joined =
            tokio::time::timeout(std::time::Duration::from_mins(3), worker.run(&words)).await;
        match joined {
            Ok(outcome) => outcome.map(|_| ()).context("kubeadm join"),
            Err(_) => bail!("kubeadm join on {} did not end within 180 s", worker.id()),
        }
    }

    /// Waits until a node is Ready.
    pub async fn node_ready(&self, node: &str) -> Result<()> {
        wait_for(
            &format!("node {node} of tenant {}", self.name),
            180,
            async || {
                let path = "jsonpath={.status.conditions[?(@.type==\"Ready\")]}";
                let ready = self.kubectl(&["get", "node", node, "-o", path]).await?;
                let pods = self
                    .kubectl(&["get", "pods", "-A", "-o", "wide"])
                    .await
                    .unwrap_or_default();
                if ready.contains("\"status\":\"True\"") {
                    Ok(())
                } else {
                    bail!("{ready}\n{pods}")
                }
            },
        )
        .await
    }

    /// Starts a pod of the toolbox image that stays, and waits until it runs.
    pub async fn toolbox(&self, name: &str) -> Result<Pod<'_>> {
        let manifest = format!(
            "apiVersion: v1
kind: Pod
metadata: {{ name: {name} }}
spec:
  containers:
  - {{ name: box, image: 'steward.lab/toolbox:1', imagePullPolicy: IfNotPresent, command: [ sleep, '36000' ] }}
  terminationGracePeriodSeconds: 0
"
        );
        self.pod(name, &manifest).await
    }

    /// Starts a pod of one's own making, and waits until it runs.
    pub async fn pod(&self, name: &str, manifest: &str) -> Result<Pod<'_>> {
        // The default ServiceAccount appears a moment after its namespace.
        wait_for("the pod to be admitted", 60, async || {
            self.apply(manifest).await
        })
        .await?;
        wait_for(
            &format!("pod {name} of tenant {}", self.name),
            180,
            async || {
                let phase = self
                    .kubectl(&["get", "pod", name, "-o", "jsonpath={.status.phase}"])
                    .await?;
                if phase == "Running" {
                    return Ok(());
                }
                let events = self
                    .kubectl(&["get", "events", "-A", "--sort-by=.lastTimestamp"])
                    .await;
                let pods = self
                    .kubectl(&["get", "pods", "-A", "-o", "wide"])
                    .await
                    .unwrap_or_default();
                bail!("phase {phase}\n{pods}\n{}", events.unwrap_or_default())
            },
        )
        .await?;
        Ok(Pod::new(self, name))
    }
}
