//! Tenants' own API servers, as processes of this machine: the operator finds them where their Services say,
//! and does inside them all that it does inside any tenant.
//!
//! Owns the processes and their addresses, and what a tenant's users would keep there. What pods would tell is
//! written into the Deployments by hand.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Secret, Service},
};
use kube::{
    Api, Client, Config, ResourceExt as _,
    api::{DynamicObject, ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

use super::{
    datastore::Datastore,
    stage::{NAMESPACE, Stage},
};
use crate::process::{Process, Program};

/// For one API server to start, and for the operator to be done inside all of them.
const LIMIT: Duration = Duration::from_mins(5);

/// Starts the API servers of these tenants one after another, and waits until all are Available. They run
/// until dropped.
pub(super) async fn start(
    stage: &Stage,
    tenants: &Api<DynamicObject>,
    bin: &Path,
    directory: &Path,
) -> Result<Vec<Process>> {
    let mut servers = Vec::new();
    for tenant in tenants.list(&ListParams::default()).await?.items {
        let name = tenant.name_any();
        let uid = tenant.uid().context("a tenant without a uid")?;
        let folder = directory.join(&name);
        write_secrets(stage, &name, &folder).await?;
        let address = address(stage, &name).await?;
        let server = Program::new(
            &name,
            &bin.join("kube-apiserver"),
            arguments(&folder, &name, &uid, &address),
        );
        let mut server = server.start(&folder)?;
        until_ready(&mut server, &folder, &name, &address).await?;
        tell(stage, &name).await?;
        servers.push(server);
    }
    let begun = Instant::now();
    loop {
        let all = tenants.list(&ListParams::default()).await?.items;
        let waiting = all.iter().find(|tenant| !available(tenant));
        let Some(waiting) = waiting else {
            return Ok(servers);
        };
        if begun.elapsed() > LIMIT {
            bail!(
                "{} is not Available: {}",
                waiting.name_any(),
                waiting.data["status"]["conditions"]
            );
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// What a tenant's users keep in it, MiB; the report's line says it too.
const OWN: usize = 32;
/// Of one of their objects.
const SIZE: usize = 32 * 1024;

/// Fills a tenant with objects that are none of the operator's business, of the kinds and in the namespace
/// that it looks at.
pub(super) async fn fill(directory: &Path, tenant: &str) -> Result<()> {
    let file = directory.join(tenant).join("admin-kubeconfig.admin.conf");
    let kubeconfig = Kubeconfig::read_from(&file).context("reading a tenant's kubeconfig")?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let objects: Api<ConfigMap> = Api::namespaced(Client::try_from(config)?, "kube-system");
    for number in 0..OWN * 1024 * 1024 / SIZE {
        let object = serde_json::from_value(json!({
            "metadata": { "name": format!("own-{number}") },
            "data": { "text": "x".repeat(SIZE) },
        }))?;
        objects
            .create(&PostParams::default(), &object)
            .await
            .context("creating an object inside a tenant")?;
    }
    Ok(())
}

fn available(tenant: &DynamicObject) -> bool {
    let conditions = tenant
        .data
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|c| c["type"] == "Available" && c["status"] == "True")
}

/// Files named `<secret>.<key>`, the tenant's name left out.
async fn write_secrets(stage: &Stage, tenant: &str, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let secrets: Api<Secret> = Api::namespaced(stage.client.clone(), NAMESPACE);
    let prefix = format!("{tenant}-");
    for secret in secrets.list(&ListParams::default()).await?.items {
        let name = secret.name_any();
        let Some(name) = name.strip_prefix(&prefix) else {
            continue;
        };
        for (key, value) in secret.data.into_iter().flatten() {
            fs::write(folder.join(format!("{name}.{key}")), value.0)?;
        }
    }
    Ok(())
}

/// The address of the tenant's Service, which becomes one of this machine.
async fn address(stage: &Stage, tenant: &str) -> Result<String> {
    let services: Api<Service> = Api::namespaced(stage.client.clone(), NAMESPACE);
    let service = services.get(tenant).await?;
    let address = service
        .spec
        .and_then(|spec| spec.cluster_ip)
        .context("a Service without address")?;
    let status = Command::new("ip")
        .args(["address", "add", &format!("{address}/32"), "dev", "lo"])
        .status()
        .context("starting `ip`")?;
    ensure!(status.success(), "adding the address {address} to lo");
    Ok(address)
}

fn arguments(folder: &Path, tenant: &str, uid: &str, address: &str) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    vec![
        format!("--etcd-servers=https://{}", Datastore::endpoint()),
        format!("--etcd-prefix=/{uid}"),
        format!("--etcd-cafile={}", file("datastore-certificate.ca.crt")),
        format!(
            "--etcd-certfile={}",
            file("datastore-certificate.server.crt")
        ),
        format!(
            "--etcd-keyfile={}",
            file("datastore-certificate.server.key")
        ),
        format!("--bind-address={address}"),
        format!("--advertise-address={address}"),
        "--secure-port=6443".into(),
        format!(
            "--tls-cert-file={}",
            file("api-server-certificate.apiserver.crt")
        ),
        format!(
            "--tls-private-key-file={}",
            file("api-server-certificate.apiserver.key")
        ),
        format!("--client-ca-file={}", file("ca.ca.crt")),
        format!(
            "--service-account-key-file={}",
            file("sa-certificate.sa.pub")
        ),
        format!(
            "--service-account-signing-key-file={}",
            file("sa-certificate.sa.key")
        ),
        format!("--service-account-issuer=https://{tenant}"),
        "--service-cluster-ip-range=10.96.0.0/16".into(),
        "--authorization-mode=Node,RBAC".into(),
        "--endpoint-reconciler-type=none".into(),
        "--etcd-compaction-interval=0".into(),
        "--allow-privileged=true".into(),
        format!("--cert-dir={}", folder.display()),
    ]
}

async fn until_ready(
    server: &mut Process,
    folder: &Path,
    tenant: &str,
    address: &str,
) -> Result<()> {
    let begun = Instant::now();
    let ca: PathBuf = folder.join("ca.ca.crt");
    let host = format!("{tenant}.{NAMESPACE}.svc");
    loop {
        server.check()?;
        let asked = Command::new("curl")
            .args(["-fsS", "--max-time", "5", "-o", "/dev/null", "--cacert"])
            .arg(&ca)
            .args(["--resolve", &format!("{host}:6443:{address}")])
            .arg(format!("https://{host}:6443/readyz"))
            .output()
            .context("starting `curl`")?;
        if asked.status.success() {
            return Ok(());
        }
        if begun.elapsed() > LIMIT {
            bail!(
                "{tenant}'s API server: {}",
                String::from_utf8_lossy(&asked.stderr).trim()
            );
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// What the kubelet would have told.
async fn tell(stage: &Stage, tenant: &str) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(stage.client.clone(), NAMESPACE);
    let generation = deployments.get(tenant).await?.metadata.generation;
    let status = json!({"status": {"observedGeneration": generation, "replicas": 1, "updatedReplicas": 1,
        "readyReplicas": 1, "availableReplicas": 1}});
    deployments
        .patch_status(tenant, &PatchParams::default(), &Patch::Merge(status))
        .await?;
    Ok(())
}
