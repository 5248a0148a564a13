//! The front doors other people run: each carries a tenant, its worker and its pods.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, ensure};
use steward_e2e::{Stage, Tenant};
use steward_lab::images::catalogue::Item;

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

async fn install(stage: &Stage, name: &str) -> Result<Ipv4Addr> {
    let file = format!("{}/front-doors/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    let manifest = std::fs::read_to_string(&file).with_context(|| file.clone())?;
    stage.apply(&manifest).await?;
    let deployment = format!("deployment/{name}");
    let rolled = stage
        .kubectl(&[
            "rollout",
            "status",
            "-n",
            name,
            &deployment,
            "--timeout=120s",
        ])
        .await;
    if let Err(error) = rolled {
        anyhow::bail!("{error:#}\n{}", stage.what_happened(name).await);
    }
    let address = stage.address_of(name, name).await?;
    stage.name(&format!("*.{name}.example.com"), address)?;
    Ok(address)
}

#[tokio::test(flavor = "multi_thread")]
async fn traefik_and_haproxy_carry_tenants_in_every_way_they_know() -> Result<()> {
    let stage = Stage::up("doors", 2, &[]).await?;
    stage.load(&[Item::Traefik, Item::HaproxyIngress]).await?;
    stage.apply_crds("gateway-api").await?;
    stage.apply_crds("traefik").await?;
    stage.kubectl(&["create", "namespace", "tenants"]).await?;
    let traefik = install(&stage, "traefik").await?;
    let haproxy = install(&stage, "haproxy-ingress").await?;

    let ways = [
        (
            "by-crd",
            "ingress: { hostname: by-crd.traefik.example.com, ingressClassName: traefik, controllerType: traefik }",
        ),
        (
            "by-route",
            "gateway: { hostname: by-route.traefik.example.com, parentRefs: [ { name: traefik, namespace: traefik } ] }",
        ),
        (
            "by-nginx",
            "ingress: { hostname: by-nginx.traefik.example.com, ingressClassName: nginx, controllerType: nginx }",
        ),
        (
            "by-haproxy",
            "ingress: { hostname: by-haproxy.haproxy-ingress.example.com, ingressClassName: haproxy-ingress, controllerType: haproxy-ingress }",
        ),
    ];
    for (name, exposure) in ways {
        stage.apply(&tenant(name, exposure)).await?;
        let tenant = stage.tenant("tenants", name).await?;
        let namespaces = tenant.kubectl(&["get", "namespaces", "-o", "name"]).await?;
        ensure!(
            namespaces.contains("namespace/kube-system"),
            "{name}: {namespaces}"
        );
        match name {
            "by-crd" => worker_and_pod(&stage, &tenant, 1, traefik).await?,
            "by-haproxy" => worker_and_pod(&stage, &tenant, 2, haproxy).await?,
            // Two control planes at a time are enough for one small machine.
            _ => drop(
                stage
                    .kubectl(&[
                        "delete",
                        "tenantcontrolplane",
                        name,
                        "-n",
                        "tenants",
                        "--timeout=120s",
                    ])
                    .await?,
            ),
        }
    }
    Ok(())
}

/// Join, Ready, a pod that asks its own API server, and exec through konnectivity, all
/// with nothing reachable but the front door's one port.
async fn worker_and_pod(
    stage: &Stage,
    tenant: &Tenant,
    number: u8,
    front_door: Ipv4Addr,
) -> Result<()> {
    let _fence = stage.fence_in(number, front_door)?;
    tenant.join(&stage.lab.worker(number)?).await?;
    tenant.node_ready(&format!("worker-{number}")).await?;
    let pod = tenant.toolbox("asker").await?;
    pod.ask_api("/version")
        .await
        .with_context(|| format!("tenant {}", tenant.name()))?;
    Ok(())
}
