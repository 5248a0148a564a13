//! The five documents' examples, applied as they stand in `examples/`, with the objects and
//! the behaviour that each document promises.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use steward_e2e::haproxy::{self, Haproxy};
use steward_e2e::{Stage, Tenant, wait_for};
use steward_lab::{HostId, parts::Release};

use crate::{condition, delete, worker_and_pod};

async fn apply_example(stage: &Stage, name: &str) -> Result<()> {
    let file = format!("{}/../examples/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    let manifest = std::fs::read_to_string(&file).with_context(|| file.clone())?;
    stage.apply(&manifest).await?;
    Ok(())
}

async fn object(stage: &Stage, kind: &str, namespace: &str, name: &str) -> Result<Value> {
    let words = ["get", kind, name, "-n", namespace, "-o", "json"];
    Ok(serde_json::from_str(&stage.kubectl(&words).await?)?)
}

/// Each host of an Ingress with the Service's port behind it.
async fn rules(stage: &Stage, namespace: &str, name: &str) -> Result<Vec<(String, i64)>> {
    let ingress = object(stage, "ingress", namespace, name).await?;
    let rules = ingress["spec"]["rules"].as_array().context("no rules")?;
    let one = |rule: &Value| {
        let service = &rule["http"]["paths"][0]["backend"]["service"];
        ensure!(service["name"] == name, "{rule}");
        let port = service["port"]["number"].as_i64().context("no port")?;
        Ok((rule["host"].as_str().context("no host")?.to_owned(), port))
    };
    rules.iter().map(one).collect()
}

async fn answers(tenant: &Tenant, version: &str) -> Result<()> {
    let found = tenant.kubectl(&["get", "--raw", "/version"]).await?;
    ensure!(found.contains(version), "{found}");
    Ok(())
}

/// Steward, behind Traefik, with the Kubernetes that the document names, and a worker of it.
pub(crate) async fn the_first(stage: &Stage, traefik: Ipv4Addr) -> Result<()> {
    stage.name("*.k8s.example.com", traefik)?;
    stage.name("*.konnectivity.example.com", traefik)?;
    apply_example(stage, "seed-1-steward-ingress").await?;
    let tenant = stage.tenant("tenants", "tenant-01").await?;
    answers(&tenant, "v1.31.0").await?;
    let route = object(stage, "ingressroutetcp", "tenants", "tenant-01").await?;
    let matches: Vec<&Value> = route["spec"]["routes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|route| &route["match"])
        .collect();
    let wanted = [
        json!("HostSNI(`tenant-01.k8s.example.com`)"),
        json!("HostSNI(`tenant-01.konnectivity.example.com`)"),
    ];
    ensure!(matches == wanted.iter().collect::<Vec<_>>(), "{matches:?}");
    ensure!(route["spec"]["tls"]["passthrough"] == true, "{route}");
    // What the node proxy needs is there before the first node.
    let slice = "jsonpath={.endpoints[*].addresses[*]}";
    let words = ["get", "endpointslice", "kubernetes", "-o", slice];
    let address = tenant.kubectl(&words).await?;
    ensure!(address == "240.0.0.1", "{address}");
    let words = [
        "get",
        "pods,ds",
        "-n",
        "kube-system",
        "-l",
        "app=steward-tcp-proxy",
    ];
    let proxy = tenant.kubectl(&words).await?;
    ensure!(proxy.contains("steward-tcp-proxy"), "{proxy}");
    let _fence = stage.fence_in(6, traefik)?;
    stage
        .install_kubernetes(HostId::Worker(6), Release::V1_31)
        .await?;
    tenant.join(&stage.lab.worker(6)?).await?;
    tenant.node_ready("worker-6").await?;
    let kubelet = "jsonpath={.status.nodeInfo.kubeletVersion}";
    let kubelet = tenant
        .kubectl(&["get", "node", "worker-6", "-o", kubelet])
        .await?;
    ensure!(kubelet == "v1.31.0", "{kubelet}");
    // The document leaves Services and names to its reader.
    let addons = r#"{"spec":{"addons":{"kubeProxy":{},"coreDNS":{"imageTag":"v1.14.2"}}}}"#;
    stage.patch("tenants", "tenant-01", addons).await?;
    let pod = tenant.toolbox("asker").await?;
    wait_for("a pod to reach the API server", 180, async || {
        pod.ask_api("/version").await
    })
    .await?;
    delete(stage, "tenants", "tenant-01").await
}

/// The ingress addon: hosts made from namespace, name and domain; and the hosted control
/// plane with two hostnames. Both through HAProxy Technologies' annotations.
pub(crate) async fn the_second_and_the_fifth(stage: &Stage) -> Result<()> {
    let class = "apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: { name: haproxy }
spec: { controller: haproxy.org/ingress-controller/haproxy }
";
    stage.apply(class).await?;
    stage.name("*.clastix.cloud", haproxy::ADDRESS)?;
    apply_example(stage, "seed-2-ingress-domain").await?;
    let haproxy = Haproxy::start(stage, "apezzuto").await?;
    let tenant = stage.tenant("apezzuto", "tenant-00").await?;
    let found = rules(stage, "apezzuto", "tenant-00").await?;
    let wanted = [
        ("apezzuto-tenant-00.k8s.clastix.cloud".to_owned(), 6443),
        (
            "apezzuto-tenant-00.konnectivity.clastix.cloud".to_owned(),
            8132,
        ),
    ];
    ensure!(found == wanted, "{found:?}");
    let fence = stage.fence_in(4, haproxy::ADDRESS)?;
    worker_and_pod(stage, &tenant, 4).await?;
    fence.heal()?;
    haproxy.stop().await?;
    delete(stage, "apezzuto", "tenant-00").await?;

    stage.name("*.k0s.enopax.io", haproxy::ADDRESS)?;
    apply_example(stage, "seed-5-hosted-control-plane").await?;
    let haproxy = Haproxy::start(stage, "kcm-system").await?;
    let tenant = stage.tenant("kcm-system", "cluster01").await?;
    answers(&tenant, "v1.36.3").await?;
    let found = rules(stage, "kcm-system", "cluster01").await?;
    let wanted = [
        ("api.cluster01.k0s.enopax.io".to_owned(), 6443),
        ("konnectivity.cluster01.k0s.enopax.io".to_owned(), 8132),
    ];
    ensure!(found == wanted, "{found:?}");
    haproxy.stop().await?;
    delete(stage, "kcm-system", "cluster01").await?;
    stage
        .kubectl(&["delete", "ingressclass", "haproxy"])
        .await?;
    Ok(())
}

/// k0rdent's fields through ours, on the community's haproxy-ingress: two hostnames, a port,
/// annotations.
pub(crate) async fn the_third(stage: &Stage, address: Ipv4Addr) -> Result<()> {
    let class = "apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: { name: haproxy }
spec: { controller: haproxy-ingress.github.io/controller }
";
    stage.apply(class).await?;
    stage.name("*.172.96.1.2.nip.io", address)?;
    apply_example(stage, "seed-3-two-hostnames").await?;
    let tenant = stage.tenant("kcm-system", "test-cluster").await?;
    let found = rules(stage, "kcm-system", "test-cluster").await?;
    let wanted = [
        ("api.test-cluster.172.96.1.2.nip.io".to_owned(), 6443),
        (
            "konnectivity.test-cluster.172.96.1.2.nip.io".to_owned(),
            8132,
        ),
    ];
    ensure!(found == wanted, "{found:?}");
    let _fence = stage.fence_in(5, address)?;
    worker_and_pod(stage, &tenant, 5).await?;
    let agent = "jsonpath={.spec.template.spec.containers[0].args}";
    let words = [
        "get",
        "ds",
        "konnectivity-agent",
        "-n",
        "kube-system",
        "-o",
        agent,
    ];
    let agent = tenant.kubectl(&words).await?;
    ensure!(
        agent.contains("konnectivity.test-cluster.172.96.1.2.nip.io"),
        "{agent}"
    );
    a_front_door_that_opens_tls_is_named(stage).await
}

/// Without its annotation haproxy-ingress opens TLS, and shows a certificate of its own.
async fn a_front_door_that_opens_tls_is_named(stage: &Stage) -> Result<()> {
    let patch = r#"{"spec":{"controlPlane":{"ingress":{"controllerType":"generic","additionalMetadata":null}}}}"#;
    let mut words = vec!["patch", "tcp", "test-cluster", "-n", "kcm-system"];
    words.extend(["--type=merge", "-p", patch]);
    stage.kubectl(&words).await?;
    let type_ = "EndpointReady";
    condition(
        stage,
        "kcm-system",
        "test-cluster",
        type_,
        &["TlsTerminated"],
    )
    .await
}

/// A tenant with an address of its own beside two that share one, each for its own sources.
pub(crate) async fn the_fourth(stage: &Stage) -> Result<()> {
    let shared = stage
        .address_of("steward-system", "steward-gateway")
        .await?;
    stage.name("*.tcp.example.com", shared)?;
    apply_example(stage, "seed-4-both-patterns").await?;
    for name in ["own-address", "tenant-a", "tenant-b"] {
        stage.tenant("tenants", name).await?;
    }
    let own = stage.address_of("tenants", "own-address").await?;
    ensure!(own != shared, "one address for both");
    let endpoint = object(stage, "tcp", "tenants", "own-address").await?;
    let endpoint = &endpoint["status"]["controlPlaneEndpoint"];
    ensure!(*endpoint == format!("{own}:6443"), "{endpoint}");
    answers(&stage.tenant("tenants", "tenant-b").await?, "v1.36.3").await?;
    // The client is in neither tenant's ranges; the example says so of both ways.
    let closed = stage.tenant("tenants", "tenant-a").await?;
    wait_for("the client to be refused", 120, async || {
        let refused = answers(&closed, "v1.36.3").await;
        let said = refused.err().context("it is let in")?.to_string();
        ensure!(said.contains("access denied"), "{said}");
        Ok(())
    })
    .await?;
    let url = format!("https://{own}:6443/version");
    let words = ["curl", "-ksS", "--max-time", "3", &url];
    let output = stage.lab.client_host().exec(&words).await?;
    ensure!(!output.status.success(), "the client is let in at {own}");
    condition(stage, "tenants", "tenant-a", "Available", &["True"]).await?;
    for name in ["own-address", "tenant-a", "tenant-b"] {
        delete(stage, "tenants", name).await?;
    }
    Ok(())
}
