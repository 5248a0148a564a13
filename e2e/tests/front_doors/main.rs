//! The front doors other people run, and the documents that describe this system: each
//! carries tenants, and their workers and pods with nothing else in reach.

mod seeds;

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use steward_e2e::{Stage, Tenant, Watch, front_door, wait_for};
use steward_lab::images::catalogue::Item;
use steward_lab::parts::Release;

fn tenant(name: &str, exposure: &str) -> String {
    format!(
        "apiVersion: steward.butlerlabs.dev/v1alpha1
kind: TenantControlPlane
metadata: {{ name: {name}, namespace: tenants }}
spec:
  kubernetes: {{ version: v1.36.3 }}
  controlPlane:
    deployment: {{ replicas: 1 }}
    service: {{ serviceType: ClusterIP }}
    {exposure}
  addons: {{ coreDNS: {{}}, kubeProxy: {{}}, konnectivity: {{}}, tcpProxy: {{}} }}
"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn every_front_door_carries_tenants_in_every_way_it_knows() -> Result<()> {
    let stage = Stage::bare("doors", 6).await?;
    stage.apply_crds("gateway-api").await?;
    stage.apply_crds("traefik").await?;
    stage.install(&["gateway.enabled=true"]).await?;
    let items = [
        Item::Traefik,
        Item::HaproxyIngress,
        Item::Kubernetes(Release::V1_31),
    ];
    stage.load(&items).await?;
    for namespace in ["tenants", "apezzuto", "kcm-system"] {
        stage.kubectl(&["create", "namespace", namespace]).await?;
    }
    let traefik = front_door::install(&stage, "traefik").await?;
    stage.name("*.traefik.example.com", traefik)?;
    // Stays to the end, and with it one watch of its pod: whatever else is routed by the same
    // front door, and the others that come and go, must not be felt.
    let first = tenant_behind(&stage, "by-crd", BY_CRD).await?;
    let _fence = stage.fence_in(1, traefik)?;
    worker_and_pod(&stage, &first, 1).await?;
    let watch = Watch::begin(&first).await?;
    through_traefik(&stage, traefik).await?;
    seeds::the_first(&stage, traefik).await?;
    seeds::the_fourth(&stage).await?;
    seeds::the_second_and_the_fifth(&stage).await?;
    let haproxy = front_door::install(&stage, "haproxy-ingress").await?;
    seeds::the_third(&stage, haproxy).await?;
    its_own_route_changes(&stage).await?;
    let age = watch.still_hears_after(Duration::from_mins(5)).await?;
    println!("one watch has been open for {} s", age.as_secs());
    Ok(())
}

/// Traefik reads the first tenant's route anew.
async fn its_own_route_changes(stage: &Stage) -> Result<()> {
    let change = r#"{"spec":{"controlPlane":{"ingress":{"additionalMetadata":{"annotations":{"changed":"yes"}}}}}}"#;
    stage.patch("tenants", "by-crd", change).await?;
    wait_for("the route to change", 60, async || {
        let path = "jsonpath={.metadata.annotations.changed}";
        let words = [
            "get",
            "ingressroutetcp",
            "by-crd",
            "-n",
            "tenants",
            "-o",
            path,
        ];
        let seen = stage.kubectl(&words).await?;
        ensure!(seen == "yes", "{seen}");
        Ok(())
    })
    .await
}

const BY_CRD: &str = "ingress: { hostname: by-crd.traefik.example.com, ingressClassName: traefik, controllerType: traefik }";
const BY_ROUTE: &str = "gateway: { hostname: by-route.traefik.example.com, parentRefs: [ { name: traefik, namespace: traefik } ] }";
const BY_NGINX: &str = "ingress: { hostname: by-nginx.traefik.example.com, ingressClassName: nginx, controllerType: nginx }";

async fn tenant_behind(stage: &Stage, name: &str, exposure: &str) -> Result<Tenant> {
    stage.apply(&tenant(name, exposure)).await?;
    stage.tenant("tenants", name).await
}

/// By the Gateway API and by the annotations of ingress-nginx, beside the one by its own
/// kind. Two tenants at a time: more is too much for one small machine.
async fn through_traefik(stage: &Stage, address: Ipv4Addr) -> Result<()> {
    for (number, name, exposure) in [(2, "by-route", BY_ROUTE), (3, "by-nginx", BY_NGINX)] {
        let tenant = tenant_behind(stage, name, exposure).await?;
        let _fence = stage.fence_in(number, address)?;
        worker_and_pod(stage, &tenant, number).await?;
        delete(stage, "tenants", name).await?;
    }
    Ok(())
}

/// Waits until a condition says all of these words.
async fn condition(
    stage: &Stage,
    namespace: &str,
    name: &str,
    type_: &str,
    words: &[&str],
) -> Result<()> {
    let path = format!("jsonpath={{.status.conditions[?(@.type==\"{type_}\")]}}");
    let look = ["get", "tcp", name, "-n", namespace, "-o", &path];
    wait_for(&format!("{type_} of {name}"), 180, async || {
        let said = stage.kubectl(&look).await?;
        ensure!(words.iter().all(|word| said.contains(word)), "{said}");
        Ok(())
    })
    .await
}

async fn delete(stage: &Stage, namespace: &str, name: &str) -> Result<()> {
    let words = ["delete", "tcp", name, "-n", namespace, "--timeout=180s"];
    stage.kubectl(&words).await?;
    Ok(())
}

/// Join, Ready, a pod that asks its own API server, and exec through konnectivity, all
/// with nothing reachable but the front door's one port.
async fn worker_and_pod(stage: &Stage, tenant: &Tenant, number: u8) -> Result<()> {
    tenant.join(&stage.lab.worker(number)?).await?;
    tenant.node_ready(&format!("worker-{number}")).await?;
    let pod = tenant.toolbox("asker").await?;
    pod.ask_api("/version")
        .await
        .with_context(|| format!("tenant {}", tenant.name()))?;
    Ok(())
}
