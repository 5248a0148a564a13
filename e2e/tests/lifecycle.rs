//! One tenant's life with an address of its own: made, used, upgraded, put to sleep, deleted.

use anyhow::{Context, Result, bail, ensure};
use steward_e2e::{Load, Stage, Tenant, wait_for};
use steward_lab::images::catalogue::Item;
use steward_lab::{HostId, parts::Release};

const TENANT: &str = "apiVersion: v1
kind: Namespace
metadata: { name: tenants }
---
apiVersion: steward.butlerlabs.dev/v1alpha1
kind: TenantControlPlane
metadata: { name: life, namespace: tenants }
spec:
  kubernetes: { version: v1.35.4 }
  controlPlane:
    deployment: { replicas: 2 }
    service: { serviceType: LoadBalancer }
  # The lab has CoreDNS of one version only.
  addons: { coreDNS: { imageTag: v1.14.2 }, kubeProxy: {}, konnectivity: {} }
";

const WEB: &str = "apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: web
        image: steward.lab/toolbox:1
        imagePullPolicy: IfNotPresent
        command: [ sh, -c, 'mkdir /tmp/w && echo it works > /tmp/w/index.html && exec busybox httpd -f -p 8080 -h /tmp/w' ]
---
apiVersion: v1
kind: Service
metadata: { name: web }
spec: { selector: { app: web }, ports: [ { port: 80, targetPort: 8080 } ] }
";

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_with_its_own_address_lives_through_everything() -> Result<()> {
    let stage = Stage::up("life", 1, &[]).await?;
    stage.load(&[Item::Kubernetes(Release::V1_35)]).await?;
    stage.apply(TENANT).await?;
    let tenant = stage.tenant("tenants", "life").await?;

    stage
        .install_kubernetes(HostId::Worker(1), Release::V1_35)
        .await?;
    tenant.join(&stage.lab.worker(1)?).await?;
    tenant.node_ready("worker-1").await?;
    a_service_answers_by_name(&tenant).await?;

    let made = upgrade_under_load(&stage, &tenant).await?;
    eprintln!("upgraded while {made} requests were made, none failed");
    sleep_and_wake(&stage, &tenant).await?;
    delete(&stage).await
}

async fn a_service_answers_by_name(tenant: &Tenant) -> Result<()> {
    tenant.apply(WEB).await?;
    let pod = tenant.toolbox("visitor").await?;
    wait_for("http://web to answer in a pod", 120, async || {
        let answer = pod
            .exec(&["curl", "-sS", "--max-time", "5", "http://web"])
            .await?;
        ensure!(answer.contains("it works"), "{answer}");
        Ok(())
    })
    .await
}

async fn upgrade_under_load(stage: &Stage, tenant: &Tenant) -> Result<u64> {
    let path = "jsonpath={.status.controlPlaneEndpoint}";
    let endpoint = stage
        .kubectl(&["get", "tcp", "life", "-n", "tenants", "-o", path])
        .await?;
    let url = format!("https://{}/api/v1/namespaces/default", endpoint.trim());
    let load = Load::start(
        &stage.lab.client_host(),
        stage.folder(),
        tenant.kubeconfig(),
        &url,
    )?;
    let change = r#"{"spec":{"kubernetes":{"version":"v1.36.3"}}}"#;
    stage
        .kubectl(&[
            "patch",
            "tcp",
            "life",
            "-n",
            "tenants",
            "--type=merge",
            "-p",
            change,
        ])
        .await?;
    wait_for("version v1.36.3 to run", 300, async || {
        let path = "jsonpath={.status.kubernetesResources.version}";
        let version = stage
            .kubectl(&["get", "tcp", "life", "-n", "tenants", "-o", path])
            .await?;
        let pods = stage
            .kubectl(&["get", "pods", "-n", "tenants", "-o", "name"])
            .await?;
        let settled = version.contains("\"v1.36.3\"")
            && version.contains("Ready")
            && pods.lines().count() == 2;
        if settled {
            Ok(())
        } else {
            bail!("{version}\n{pods}")
        }
    })
    .await?;
    load.finish().await
}

async fn sleep_and_wake(stage: &Stage, tenant: &Tenant) -> Result<()> {
    scale(stage, 0).await?;
    wait_for("the tenant to sleep", 120, async || {
        let pods = stage
            .kubectl(&["get", "pods", "-n", "tenants", "-o", "name"])
            .await?;
        ensure!(pods.trim().is_empty(), "{pods}");
        Ok(())
    })
    .await?;
    scale(stage, 2).await?;
    stage.tenant("tenants", "life").await?;
    wait_for("what was there before", 120, async || {
        let found = tenant
            .kubectl(&[
                "get",
                "deployment",
                "web",
                "-o",
                "jsonpath={.status.readyReplicas}",
            ])
            .await?;
        ensure!(found == "1", "{found}");
        Ok(())
    })
    .await
}

async fn scale(stage: &Stage, replicas: u8) -> Result<()> {
    let replicas = format!("--replicas={replicas}");
    stage
        .kubectl(&["scale", "tcp", "life", "-n", "tenants", &replicas])
        .await?;
    Ok(())
}

async fn delete(stage: &Stage) -> Result<()> {
    stage
        .kubectl(&["delete", "tcp", "life", "-n", "tenants", "--timeout=120s"])
        .await?;
    wait_for("nothing to be left", 120, async || {
        let kinds = "secrets,configmaps,services,deployments,pods,poddisruptionbudgets";
        let left = stage
            .kubectl(&[
                "get",
                kinds,
                "-n",
                "tenants",
                "-l",
                "steward.butlerlabs.dev/name=life",
                "-o",
                "name",
            ])
            .await?;
        ensure!(left.trim().is_empty(), "still there: {left}");
        Ok(())
    })
    .await
    .context("delete")
}
