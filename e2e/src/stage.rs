//! The management cluster with Steward installed as its chart installs it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use steward_lab::faults::{Allowed, Fault};
use steward_lab::images::catalogue::Item;
use steward_lab::parts::{self, Release};
use steward_lab::progress::Progress;
use steward_lab::{Host, HostId, Lab, poll};
use tokio::io::AsyncWriteExt;

use crate::tenant::Tenant;

/// Namespace of the operator, as the chart's documentation says.
const SYSTEM: &str = "steward-system";

/// A lab with Steward on it. Dropping it takes everything down.
pub struct Stage {
    /// The lab.
    pub lab: Lab,
    work: tempfile::TempDir,
}

/// Looks every moment until `look` gives something; after `seconds` fails with what was seen last.
pub async fn wait_for<T>(
    what: &str,
    seconds: u64,
    look: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    poll(Duration::from_secs(seconds), look)
        .await
        .map_err(|last| anyhow!("gave up on {what} after {seconds} s; last seen: {last:#}"))
}

impl Stage {
    /// Makes a lab, loads our images and installs the chart with these `--set` values.
    pub async fn up(name: &str, workers: u8, values: &[&str]) -> Result<Self> {
        let stage = Self::bare(name, workers).await?;
        stage.install(values).await?;
        Ok(stage)
    }

    /// Makes a lab and loads our images: for those who have something to do before the chart.
    pub async fn bare(name: &str, workers: u8) -> Result<Self> {
        let work = tempfile::tempdir()?;
        let lab = Lab::builder().name(name).workers(workers).up().await?;
        let stage = Self { lab, work };
        stage.load_images().await?;
        Ok(stage)
    }

    /// Our own images, packed from the programs beside this test.
    async fn load_images(&self) -> Result<()> {
        let folder = programs()?;
        let packed = steward_lab::images::pack(&folder, self.work.path());
        let packed = packed.context("pack our images; `make test` builds the programs first")?;
        let archives: Vec<PathBuf> = packed.into_iter().map(|archive| archive.path).collect();
        self.lab.load(&archives).await?;
        Ok(())
    }

    /// Installs the chart with these `--set` values.
    pub async fn install(&self, values: &[&str]) -> Result<()> {
        let chart = repository().join("charts/steward");
        let chart = chart
            .to_str()
            .context("the checkout's path is not text")?
            .to_owned();
        let mut words = vec![
            "helm",
            "install",
            "steward",
            &chart,
            "--namespace",
            SYSTEM,
            "--create-namespace",
        ];
        words.extend([
            "--set",
            "defaultDataStore.replicas=1",
            "--set",
            "defaultDataStore.emptyDir.enabled=true",
        ]);
        words.extend(["--wait", "--timeout", "180s"]);
        for value in values {
            words.extend(["--set", value]);
        }
        let installed = self.lab.mgmt().run(&words).await;
        if let Err(error) = installed {
            bail!("{error}\n{}", self.what_happened(SYSTEM).await);
        }
        Ok(())
    }

    /// kubectl on the management cluster.
    pub async fn kubectl(&self, words: &[&str]) -> Result<String> {
        kubectl(&self.lab.mgmt(), None, words).await
    }

    /// Merges a change into a tenant.
    pub async fn patch(&self, namespace: &str, tenant: &str, change: &str) -> Result<()> {
        let words = [
            "patch",
            "tcp",
            tenant,
            "-n",
            namespace,
            "--type=merge",
            "-p",
            change,
        ];
        self.kubectl(&words).await?;
        Ok(())
    }

    /// `kubectl apply -f -` on the management cluster.
    pub async fn apply(&self, manifest: &str) -> Result<String> {
        let mgmt = self.lab.mgmt();
        with_input(&mgmt, &["kubectl", "apply", "-f", "-"], manifest).await
    }

    /// A tenant that has been applied, once it is available.
    pub async fn tenant(&self, namespace: &str, name: &str) -> Result<Tenant> {
        let target = format!("tenantcontrolplane/{name}");
        let words = [
            "wait",
            "--for=condition=Available",
            &target,
            "-n",
            namespace,
            "--timeout=240s",
        ];
        if let Err(error) = self.kubectl(&words).await {
            let conditions = self
                .kubectl(&["describe", &target, "-n", namespace])
                .await
                .unwrap_or_default();
            bail!(
                "{error:#}\n{conditions}\n{}\n{}",
                self.what_happened(namespace).await,
                self.operator_log().await
            );
        }
        let kubeconfig = self.lab.tenant_kubeconfig(namespace, name).await?;
        Ok(Tenant::new(
            namespace,
            name,
            kubeconfig,
            self.lab.client_host(),
        ))
    }

    /// Makes foreign images known to every node.
    pub async fn load(&self, items: &[Item]) -> Result<()> {
        self.lab.load_items(items, &Progress::stderr()).await?;
        Ok(())
    }

    /// Puts another release's kubelet and kubeadm on a worker.
    pub async fn install_kubernetes(&self, on: HostId, release: Release) -> Result<()> {
        let progress = Progress::stderr();
        Ok(self.lab.install(on, release, &progress).await?)
    }

    /// Lets a worker reach nothing but the front door on port 443 and the name server:
    /// what a tenant's network typically allows.
    pub fn fence_in(&self, worker: u8, front_door: Ipv4Addr) -> Result<Fault> {
        let tcp = vec![SocketAddr::from((front_door, 443))];
        Ok(self
            .lab
            .fence_in(HostId::Worker(worker), &Allowed { tcp, names: true })?)
    }

    /// One of our programs, beside this test.
    pub fn program(&self, name: &str) -> Result<PathBuf> {
        Ok(programs()?.join(name))
    }

    /// A folder for files of this story.
    pub fn folder(&self) -> &Path {
        self.work.path()
    }

    /// The files of somebody else's CRDs, as the lab's parts bring them.
    pub async fn apply_crds(&self, of: &str) -> Result<()> {
        let options = parts::Options::from_env()?;
        let work = move || parts::ensure(parts::Part::Crds, &options, &Progress::stderr());
        let programs = tokio::task::spawn_blocking(work).await??;
        let folder = programs.share().context("the part has no files")?.join(of);
        let folder = folder.to_str().context("path")?.to_owned();
        self.kubectl(&["apply", "--server-side", "-f", &folder])
            .await?;
        Ok(())
    }

    /// Lets a name lead to an address on every host.
    pub fn name(&self, name: &str, address: Ipv4Addr) -> Result<()> {
        self.lab.dns_set(name, address)?;
        Ok(())
    }

    /// The address of a Service of type `LoadBalancer`.
    pub async fn address_of(&self, namespace: &str, service: &str) -> Result<Ipv4Addr> {
        wait_for(
            &format!("an address of Service {service}"),
            60,
            async || {
                let path = "jsonpath={.status.loadBalancer.ingress[0].ip}";
                let text = self
                    .kubectl(&["get", "service", service, "-n", namespace, "-o", path])
                    .await?;
                text.trim()
                    .parse()
                    .with_context(|| format!("{text:?} is no address"))
            },
        )
        .await
    }

    /// Pods and events of a namespace: what a person would look at first.
    pub async fn what_happened(&self, namespace: &str) -> String {
        let pods = self
            .kubectl(&["get", "pods", "-n", namespace, "-o", "wide"])
            .await;
        let events = self
            .kubectl(&["get", "events", "-n", namespace, "--sort-by=.lastTimestamp"])
            .await;
        format!(
            "{}\n{}",
            pods.unwrap_or_default(),
            events.unwrap_or_default()
        )
    }

    /// What the operator said.
    pub async fn operator_log(&self) -> String {
        let label = "app.kubernetes.io/component=controller-manager";
        self.kubectl(&["logs", "-n", SYSTEM, "-l", label, "--tail=60"])
            .await
            .unwrap_or_default()
    }
}

/// kubectl on a host, with a kubeconfig of its own if given.
pub(crate) async fn kubectl(
    host: &Host,
    kubeconfig: Option<&Path>,
    words: &[&str],
) -> Result<String> {
    let mut command = vec!["kubectl"];
    let path = kubeconfig.map(|p| p.display().to_string());
    if let Some(path) = &path {
        command.extend(["--kubeconfig", path]);
    }
    command.extend(words);
    Ok(host.run(&command).await?)
}

/// Runs a program on a host with text as its input.
pub(crate) async fn with_input(host: &Host, words: &[&str], input: &str) -> Result<String> {
    let (program, arguments) = words.split_first().context("no command")?;
    let mut command = host.command(program)?;
    command.args(arguments);
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn()?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    stdin.write_all(input.as_bytes()).await?;
    drop(stdin);
    let output = child.wait_with_output().await?;
    if !output.status.success() {
        bail!(
            "`{}`: {}",
            words.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The folder of our programs: the one this test was built into.
fn programs() -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    let folder = test
        .parent()
        .and_then(Path::parent)
        .context("the test lies in no folder")?;
    Ok(folder.to_owned())
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
