//! One IP for all: two tenants behind one front door, each with a worker and a pod.

use anyhow::{Context, Result, ensure};
use steward_e2e::{Stage, Tenant, wait_for};

const DOMAIN: &str = "k8s.example.com";

fn tenant(name: &str) -> String {
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
    ingress: {{ hostname: {name}.{DOMAIN}, ingressClassName: steward, controllerType: steward }}
  addons: {{ coreDNS: {{}}, kubeProxy: {{}}, konnectivity: {{}}, tcpProxy: {{}} }}
"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tenants_share_one_address_and_their_pods_need_not_know() -> Result<()> {
    let stage = Stage::up("oneip", 2, &["gateway.enabled=true"]).await?;
    let front_door = stage
        .address_of("steward-system", "steward-gateway")
        .await?;
    stage.name(&format!("*.{DOMAIN}"), front_door)?;

    stage.apply(&tenant("t1")).await?;
    stage.apply(&tenant("t2")).await?;
    let t1 = stage.tenant("tenants", "t1").await?;
    let t2 = stage.tenant("tenants", "t2").await?;

    let mut fences = Vec::new();
    for (tenant, number) in [(&t1, 1), (&t2, 2)] {
        kubectl_works_by_hostname(tenant).await?;
        let worker = stage.lab.worker(number)?;
        // Kept for the rest of the story: dropping it would open the way again.
        fences.push(stage.fence_in(number, front_door)?);
        tenant.join(&worker).await?;
        tenant.node_ready(&format!("worker-{number}")).await?;
        a_pod_lists_its_own_namespaces(tenant).await?;
        logs_come_back(tenant).await?;
    }
    credentials_of_one_are_refused_by_the_other(&stage, &t1).await?;
    an_unknown_name_gets_an_alert(&stage, &front_door.to_string()).await?;
    deleting_a_tenant_leaves_nothing(&stage, &t2).await
}

async fn kubectl_works_by_hostname(tenant: &Tenant) -> Result<()> {
    let namespaces = tenant.kubectl(&["get", "namespaces", "-o", "name"]).await?;
    ensure!(namespaces.contains("namespace/kube-system"), "{namespaces}");
    Ok(())
}

/// A pod may not list namespaces unless somebody lets it: grant that, then let it ask over HTTP/2.
async fn a_pod_lists_its_own_namespaces(tenant: &Tenant) -> Result<()> {
    let grant = [
        "create",
        "clusterrolebinding",
        "look",
        "--clusterrole=view",
        "--serviceaccount=default:default",
    ];
    tenant.kubectl(&grant).await?;
    let marker = format!("only-{}", tenant.name());
    tenant.kubectl(&["create", "namespace", &marker]).await?;
    let pod = tenant.toolbox("asker").await?;
    let answer = pod.ask_api("/api/v1/namespaces").await?;
    ensure!(
        answer.contains(&marker),
        "the pod saw another cluster: {answer}"
    );
    Ok(())
}

async fn logs_come_back(tenant: &Tenant) -> Result<()> {
    wait_for("logs of CoreDNS", 120, async || {
        let logs = tenant
            .kubectl(&["logs", "-n", "kube-system", "deployment/coredns"])
            .await?;
        ensure!(logs.contains("CoreDNS"), "{logs}");
        Ok(())
    })
    .await
}

async fn credentials_of_one_are_refused_by_the_other(stage: &Stage, t1: &Tenant) -> Result<()> {
    let kubeconfig = t1.kubeconfig().display().to_string();
    let words = [
        "kubectl",
        "--kubeconfig",
        &kubeconfig,
        "--server",
        "https://t2.k8s.example.com:443",
        "--insecure-skip-tls-verify",
        "get",
        "namespaces",
    ];
    // The verification of the server is skipped on purpose: it would already refuse; here
    // the neighbour's API server itself has to.
    let output = stage.lab.client_host().exec(&words).await?;
    ensure!(!output.status.success(), "t1's administrator got into t2");
    Ok(())
}

async fn an_unknown_name_gets_an_alert(stage: &Stage, address: &str) -> Result<()> {
    let script = format!(
        "openssl s_client -connect {address}:443 -servername nobody.{DOMAIN} </dev/null 2>&1 || true"
    );
    let seen = stage.lab.client_host().script(&script).await?;
    ensure!(seen.contains("unrecognized name"), "{seen}");
    Ok(())
}

async fn deleting_a_tenant_leaves_nothing(stage: &Stage, tenant: &Tenant) -> Result<()> {
    let (namespace, name) = (tenant.namespace(), tenant.name());
    stage
        .kubectl(&[
            "delete",
            "tenantcontrolplane",
            name,
            "-n",
            namespace,
            "--timeout=120s",
        ])
        .await?;
    wait_for("everything of the tenant to be gone", 120, async || {
        let label = format!("steward.butlerlabs.dev/name={name}");
        let kinds = "secrets,configmaps,services,deployments,pods,ingresses,poddisruptionbudgets";
        let left = stage
            .kubectl(&["get", kinds, "-n", namespace, "-l", &label, "-o", "name"])
            .await?;
        ensure!(left.trim().is_empty(), "still there: {left}");
        Ok(())
    })
    .await
    .context("delete")
}
