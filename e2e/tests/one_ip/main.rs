//! One IP for all: two tenants behind our own gateway, one by Ingress and one by the Gateway
//! API, each with a worker that can reach nothing but the gateway's port 443 and the name
//! server, and with pods that need not know.

mod neighbours;
mod secrets;

use anyhow::Result;
use steward_e2e::promises::{self, clients, nodes, pods};
use steward_e2e::{Resident, Stage, Watch};

const DOMAIN: &str = "k8s.example.com";

/// A Gateway of our class, as a platform team would write it.
const FRONT: &str = "apiVersion: v1
kind: Namespace
metadata: { name: tenants }
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: front, namespace: steward-system }
spec:
  gatewayClassName: steward
  listeners:
  - { name: tls, port: 443, protocol: TLS, hostname: '*.k8s.example.com', tls: { mode: Passthrough }, allowedRoutes: { namespaces: { from: All } } }
";

/// A tenant behind our gateway; `exposure` and `addons` as in its spec.
fn tenant(name: &str, exposure: &str, addons: &str) -> String {
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
  addons: {{ {addons} kubeProxy: {{}}, konnectivity: {{}}, tcpProxy: {{}} }}
"
    )
}

fn by_ingress(host: &str) -> String {
    format!(
        "ingress: {{ hostname: {host}.{DOMAIN}, ingressClassName: steward, controllerType: steward }}"
    )
}

fn by_gateway(host: &str) -> String {
    format!(
        "gateway: {{ hostname: {host}.{DOMAIN}, parentRefs: [ {{ name: front, namespace: steward-system }} ] }}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tenants_share_one_address_and_their_pods_need_not_know() -> Result<()> {
    let stage = Stage::bare("oneip", 2).await?;
    stage.apply_crds("gateway-api").await?;
    // Clients' addresses are kept, so that the gateway can tell who may connect.
    let values = [
        "gateway.enabled=true",
        "gateway.service.externalTrafficPolicy=Local",
    ];
    stage.install(&values).await?;
    let front_door = stage
        .address_of("steward-system", "steward-gateway")
        .await?;
    stage.name(&format!("*.{DOMAIN}"), front_door)?;

    stage.apply(FRONT).await?;
    // The first tenant gets its CoreDNS only when its node has come up without.
    stage.apply(&tenant("t1", &by_ingress("t1"), "")).await?;
    let addons = "coreDNS: {},";
    stage
        .apply(&tenant("t2", &by_gateway("t2"), addons))
        .await?;
    let t1 = resident(&stage, "t1", 1).await?;
    let t2 = resident(&stage, "t2", 2).await?;

    // Kept for the rest of the story: dropping them would open the way again.
    let _fences = [
        stage.fence_in(1, front_door)?,
        stage.fence_in(2, front_door)?,
    ];
    nodes::nodes_come_up_from_nothing(&stage, std::slice::from_ref(&t1)).await?;
    t2.tenant.join(&t2.worker(&stage)?).await?;
    t2.tenant.node_ready(&t2.node()).await?;

    for resident in [&t1, &t2] {
        clients::kubectl_works_by_hostname(resident).await?;
        pods::they_ask_their_own_api_server(&stage, resident).await?;
    }
    let watch = Watch::begin(&t1.tenant).await?;
    for resident in [&t1, &t2] {
        clients::logs_ports_and_measurements_come_back(&stage, resident).await?;
    }
    promises::neighbours::credentials_of_one_are_refused_by_the_other(&stage, &t1, &t2).await?;
    promises::neighbours::a_tunnel_under_a_neighbours_name_leads_nowhere(&stage, &t1, &t2).await?;
    neighbours::an_unknown_name_is_not_recognized(&stage, &front_door.to_string()).await?;
    neighbours::a_name_is_its_older_owners(&stage).await?;
    neighbours::a_name_without_a_good_record_is_told(&stage, front_door).await?;
    neighbours::only_allowed_sources_get_in(&stage, &t1.tenant).await?;
    neighbours::connections_are_limited_per_tenant(&stage, &t1.tenant, &t2.tenant).await?;
    // Its own route changed meanwhile; the request that is open did not feel it.
    let age = watch.still_hears().await?;
    println!("one watch has been open for {} s", age.as_secs());
    secrets::are_written_down_nowhere(&stage).await?;
    neighbours::deleting_a_tenant_leaves_nothing(&stage, &t2.tenant).await
}

async fn resident(stage: &Stage, name: &str, worker: u8) -> Result<Resident> {
    Ok(Resident {
        tenant: stage.tenant("tenants", name).await?,
        host: format!("{name}.{DOMAIN}"),
        worker,
    })
}
