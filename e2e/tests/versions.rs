//! Every minor of Kubernetes that we promise to run: as a new tenant with a worker of the same
//! release, and as a step of one tenant's way from the oldest to the newest.
//!
//! Apart from the other stories because it takes six releases of Kubernetes, which take
//! minutes each to compile the first time.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use steward_e2e::{Stage, Tenant, wait_for};
use steward_lab::images::catalogue::Item;
use steward_lab::parts::Release;
use steward_lab::{HostId, Nudge};

/// One worker for each release, and one for the tenant that is upgraded.
const WORKERS: u8 = 7;
const TRAVELLER: u8 = 7;

fn tenant(name: &str, release: Release) -> String {
    format!(
        "apiVersion: steward.butlerlabs.dev/v1alpha1
kind: TenantControlPlane
metadata: {{ name: {name}, namespace: tenants }}
spec:
  kubernetes: {{ version: {release} }}
  controlPlane:
    deployment: {{ replicas: 1 }}
    service: {{ serviceType: ClusterIP }}
    ingress: {{ hostname: {name}.k8s.example.com, ingressClassName: steward, controllerType: steward }}
  # The lab has CoreDNS of one version only; everything else is of the release.
  addons: {{ coreDNS: {{ imageTag: v1.14.2 }}, kubeProxy: {{}}, konnectivity: {{}}, tcpProxy: {{}} }}
"
    )
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "compiles six releases of Kubernetes: make versions"]
async fn every_minor_runs_and_leads_to_the_next() -> Result<()> {
    let stage = Stage::up("versions", WORKERS, &["gateway.enabled=true"]).await?;
    stage.load(&Release::ALL.map(Item::Kubernetes)).await?;
    let front_door = stage
        .address_of("steward-system", "steward-gateway")
        .await?;
    stage.name("*.k8s.example.com", front_door)?;
    stage.kubectl(&["create", "namespace", "tenants"]).await?;
    for (number, release) in (1..).zip(Release::ALL) {
        let begun = Instant::now();
        let _fence = stage.fence_in(number, front_door)?;
        a_new_tenant_of(&stage, release, number).await?;
        eprintln!("{release} made, joined and used in {:.0?}", begun.elapsed());
    }
    let _fence = stage.fence_in(TRAVELLER, front_door)?;
    one_tenant_goes_through_all(&stage).await
}

async fn a_new_tenant_of(stage: &Stage, release: Release, number: u8) -> Result<()> {
    let name = format!("t{number}");
    stage.apply(&tenant(&name, release)).await?;
    let tenant = stage.tenant("tenants", &name).await?;
    install(stage, number, release).await?;
    tenant.join(&stage.lab.worker(number)?).await?;
    everything_is_of(&tenant, number, release).await?;
    pods_reach_the_api(&tenant).await?;
    let words = [
        "delete",
        "tcp",
        &name,
        "-n",
        "tenants",
        "--wait",
        "--timeout=240s",
    ];
    stage.kubectl(&words).await?;
    Ok(())
}

/// From the oldest to the newest, a minor at a time. The worker follows only when it has to.
async fn one_tenant_goes_through_all(stage: &Stage) -> Result<()> {
    let oldest = Release::ALL[0];
    stage.apply(&tenant("traveller", oldest)).await?;
    let traveller = stage.tenant("tenants", "traveller").await?;
    install(stage, TRAVELLER, oldest).await?;
    traveller.join(&stage.lab.worker(TRAVELLER)?).await?;
    everything_is_of(&traveller, TRAVELLER, oldest).await?;
    pods_reach_the_api(&traveller).await?;
    let mut kubelet = oldest;
    for pair in Release::ALL.windows(2) {
        let [from, to] = *pair else { continue };
        stage.apply(&tenant("traveller", to)).await?;
        if minor(to)? > minor(kubelet)? + 3 {
            held_up(
                stage,
                &format!("worker-{TRAVELLER} (v{})", kubelet.version()),
            )
            .await?;
            answers(&traveller, from).await?;
            install(stage, TRAVELLER, from).await?;
            let worker = stage.lab.worker(TRAVELLER)?;
            worker.nudge("kubelet", Nudge::Kill)?;
            kubelet = from;
        }
        answers(&traveller, to).await?;
        everything_is_of(&traveller, TRAVELLER, kubelet).await?;
        pods_reach_the_api(&traveller).await?;
        eprintln!("{from} became {to}, with a kubelet of {kubelet}");
    }
    Ok(())
}

fn minor(release: Release) -> Result<u32> {
    let minor = release.minor().trim_start_matches("1.");
    minor.parse().context("a minor that is no number")
}

async fn install(stage: &Stage, worker: u8, release: Release) -> Result<()> {
    stage
        .install_kubernetes(HostId::Worker(worker), release)
        .await
}

async fn held_up(stage: &Stage, node: &str) -> Result<()> {
    let path = "jsonpath={.status.conditions[?(@.type==\"VersionSkewSupported\")].message}";
    let words = ["get", "tcp", "traveller", "-n", "tenants", "-o", path];
    wait_for("the kubelet that is too old to be named", 120, async || {
        let message = stage.kubectl(&words).await?;
        ensure!(
            message.contains(node) && message.contains("held up"),
            "{message}"
        );
        Ok(())
    })
    .await
}

async fn answers(tenant: &Tenant, release: Release) -> Result<()> {
    let wanted = format!("\"gitVersion\": \"{release}\"");
    wait_for(&format!("{release} to answer"), 300, async || {
        let found = tenant.kubectl(&["get", "--raw", "/version"]).await?;
        ensure!(found.contains(&wanted), "{found}");
        Ok(())
    })
    .await
}

/// The worker is Ready, with a kubelet of this release, and so is all that the operator put there.
async fn everything_is_of(tenant: &Tenant, worker: u8, release: Release) -> Result<()> {
    let node = format!("worker-{worker}");
    tenant.node_ready(&node).await?;
    wait_for(&format!("a kubelet of {release}"), 120, async || {
        let path = "jsonpath={.status.nodeInfo.kubeletVersion}";
        let seen = tenant.kubectl(&["get", "node", &node, "-o", path]).await?;
        ensure!(seen == release.to_string(), "{seen}");
        Ok(())
    })
    .await?;
    for what in [
        "ds/kube-proxy",
        "ds/konnectivity-agent",
        "ds/steward-tcp-proxy",
        "deploy/coredns",
    ] {
        let words = [
            "rollout",
            "status",
            what,
            "-n",
            "kube-system",
            "--timeout=240s",
        ];
        tenant.kubectl(&words).await?;
    }
    Ok(())
}

/// By name, with its service account, from a pod that stays; and exec goes through konnectivity.
async fn pods_reach_the_api(tenant: &Tenant) -> Result<()> {
    let pod = tenant.toolbox("asker").await?;
    pod.ask_api("/version").await?;
    Ok(())
}
