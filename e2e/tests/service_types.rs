//! Tenants without an address of their own, on a node's port and inside the cluster's network only; and what
//! the API server does with pods: logs, port-forward, an API that a pod serves.

use anyhow::{Context, Result, ensure};
use steward_e2e::{Stage, Tenant, wait_for};

const TENANTS: &str = "apiVersion: v1
kind: Namespace
metadata: { name: tenants }
---
apiVersion: steward.butlerlabs.dev/v1alpha1
kind: TenantControlPlane
metadata: { name: ported, namespace: tenants }
spec:
  kubernetes: { version: v1.36.3 }
  networkProfile: { address: 10.10.0.2, port: 30443 }
  controlPlane:
    deployment: { replicas: 1 }
    service: { serviceType: NodePort }
  addons: { coreDNS: {}, kubeProxy: {}, konnectivity: {} }
---
apiVersion: steward.butlerlabs.dev/v1alpha1
kind: TenantControlPlane
metadata: { name: inner, namespace: tenants }
spec:
  kubernetes: { version: v1.36.3 }
  # Its workers route the management cluster's Services: their own must not be the same.
  networkProfile: { serviceCidr: 10.112.0.0/16, dnsServiceIPs: [ 10.112.0.10 ] }
  controlPlane:
    deployment: { replicas: 1 }
    service: { serviceType: ClusterIP }
  addons: { coreDNS: {}, kubeProxy: {}, konnectivity: {} }
";

/// One may have no pods, the other asks for images that nobody has.
const STOPPED: &str = "apiVersion: v1
kind: Namespace
metadata: { name: poor }
---
apiVersion: v1
kind: ResourceQuota
metadata: { name: none, namespace: poor }
spec: { hard: { pods: '0' } }
---
apiVersion: steward.butlerlabs.dev/v1alpha1
kind: TenantControlPlane
metadata: { name: stopped, namespace: poor }
spec:
  kubernetes: { version: v1.36.3 }
  controlPlane: { deployment: { replicas: 1 }, service: { serviceType: ClusterIP } }
---
apiVersion: steward.butlerlabs.dev/v1alpha1
kind: TenantControlPlane
metadata: { name: unbuilt, namespace: tenants }
spec:
  kubernetes: { version: v1.36.2 }
  controlPlane: { deployment: { replicas: 1 }, service: { serviceType: ClusterIP } }
";

/// Answers one question over TLS: which kinds it serves. That is all an aggregated API must know.
const EXTENSION: &str = r#"apiVersion: v1
kind: Pod
metadata: { name: extension, labels: { app: extension } }
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: server
    image: steward.lab/toolbox:1
    imagePullPolicy: IfNotPresent
    workingDir: /tmp
    command:
    - sh
    - -ec
    - |
      mkdir -p apis/extension.example.com
      body='{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"extension.example.com/v1","resources":[]}'
      printf 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s' \
        ${#body} "$body" > apis/extension.example.com/v1
      printf '[req]\ndistinguished_name=dn\n[dn]\n' > openssl.conf
      export OPENSSL_CONF=/tmp/openssl.conf
      openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=extension \
        -addext subjectAltName=DNS:extension.default.svc -keyout key.pem -out cert.pem
      echo it begins
      exec openssl s_server -accept 8443 -cert cert.pem -key key.pem -HTTP
---
apiVersion: v1
kind: Service
metadata: { name: extension }
spec: { selector: { app: extension }, ports: [ { port: 443, targetPort: 8443 } ] }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn tenants_on_a_node_port_and_on_a_cluster_ip_are_whole_clusters() -> Result<()> {
    let stage = Stage::up("types", 2, &[]).await?;
    stage.apply(TENANTS).await?;
    let ported = stage.tenant("tenants", "ported").await?;
    stage.apply(STOPPED).await?;
    // Nobody outside the cluster has a way to a ClusterIP, unless the network is made so.
    let inner = stage.tenant("tenants", "inner").await?;
    let inner = inner.seen_from(stage.lab.mgmt());
    let route = ["ip", "route", "add", "10.96.0.0/12", "via", "10.10.0.2"];
    stage.lab.router().run(&route).await?;

    for (tenant, worker) in [(&ported, 1), (&inner, 2)] {
        let found = tenant.kubectl(&["get", "namespaces", "-o", "name"]).await?;
        ensure!(found.contains("namespace/kube-system"), "{found}");
        tenant.join(&stage.lab.worker(worker)?).await?;
    }
    for (tenant, worker) in [(&ported, "worker-1"), (&inner, "worker-2")] {
        tenant.node_ready(worker).await?;
        a_pod_runs_and_can_be_asked(tenant).await?;
    }
    what_stops_pods_is_named_and_heals(&stage).await?;
    a_forwarded_port_leads_to_the_pod(&stage, &ported).await?;
    an_api_that_a_pod_serves_is_part_of_the_tenant(&ported).await?;
    writes_are_refused_while_they_are_limited(&stage, &ported).await?;
    nothing_is_left(&stage).await
}

async fn a_pod_runs_and_can_be_asked(tenant: &Tenant) -> Result<()> {
    wait_for("the pod to be admitted", 120, async || {
        tenant.apply(EXTENSION).await
    })
    .await?;
    wait_for("its first words in the log", 180, async || {
        let log = tenant.kubectl(&["logs", "extension"]).await?;
        ensure!(log.contains("it begins"), "{log}");
        Ok(())
    })
    .await?;
    let name = tenant
        .kubectl(&["exec", "extension", "--", "hostname"])
        .await?;
    ensure!(name.trim() == "extension", "{name}");
    Ok(())
}

async fn what_stops_pods_is_named_and_heals(stage: &Stage) -> Result<()> {
    for (namespace, name, reason) in [
        ("poor", "stopped", "QuotaExceeded"),
        ("tenants", "unbuilt", "ImageUnavailable"),
    ] {
        wait_for(&format!("{name} to say {reason}"), 180, async || {
            let path = "jsonpath={.status.conditions[?(@.type==\"ControlPlaneReady\")]}";
            let words = ["get", "tcp", name, "-n", namespace, "-o", path];
            let condition = stage.kubectl(&words).await?;
            ensure!(condition.contains(reason), "{condition}");
            Ok(())
        })
        .await?;
    }
    let words = ["delete", "quota", "none", "-n", "poor"];
    stage.kubectl(&words).await?;
    let change = r#"{"spec":{"kubernetes":{"version":"v1.36.3"}}}"#;
    stage.patch("tenants", "unbuilt", change).await?;
    stage.tenant("tenants", "unbuilt").await?;
    stage.tenant("poor", "stopped").await?;
    // A namespace takes its tenant along, and does not hang on it.
    let words = ["delete", "namespace", "poor", "--timeout=180s"];
    stage.kubectl(&words).await?;
    Ok(())
}

async fn a_forwarded_port_leads_to_the_pod(stage: &Stage, tenant: &Tenant) -> Result<()> {
    let _forward = tenant.forward("pod/extension", "18443:8443")?;
    let url = "https://127.0.0.1:18443/apis/extension.example.com/v1";
    wait_for("an answer through port-forward", 120, async || {
        let words = ["curl", "-ksS", "--max-time", "10", url];
        let answer = stage.lab.client_host().run(&words).await?;
        ensure!(answer.contains("APIResourceList"), "{answer}");
        Ok(())
    })
    .await
}

/// The API server dials the Service of a pod on a worker, which it can reach by konnectivity only.
async fn an_api_that_a_pod_serves_is_part_of_the_tenant(tenant: &Tenant) -> Result<()> {
    let words = ["exec", "extension", "--", "base64", "-w0", "/tmp/cert.pem"];
    let authority = tenant.kubectl(&words).await?;
    let service = format!(
        "apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {{ name: v1.extension.example.com }}
spec:
  group: extension.example.com
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 10
  service: {{ name: extension, namespace: default }}
  caBundle: {}
",
        authority.trim()
    );
    tenant.apply(&service).await?;
    wait_for("the aggregated API to answer", 180, async || {
        let words = ["get", "--raw", "/apis/extension.example.com/v1"];
        let answer = tenant.kubectl(&words).await?;
        ensure!(answer.contains("extension.example.com/v1"), "{answer}");
        Ok(())
    })
    .await?;
    let words = ["delete", "apiservice", "v1.extension.example.com"];
    tenant.kubectl(&words).await?;
    Ok(())
}

async fn writes_are_refused_while_they_are_limited(stage: &Stage, tenant: &Tenant) -> Result<()> {
    limit(stage, true).await?;
    wait_for("creations to be refused", 120, async || {
        let made = ["create", "configmap", "late", "--dry-run=server"];
        let refused = match tenant.kubectl(&made).await {
            Err(refused) => format!("{refused:#}"),
            Ok(made) => anyhow::bail!("{made}"),
        };
        ensure!(refused.contains("limited write permissions"), "{refused}");
        Ok(())
    })
    .await?;
    // What was there can be changed and deleted, and asking is not writing.
    tenant
        .kubectl(&["label", "service", "extension", "seen=yes"])
        .await?;
    tenant.kubectl(&["auth", "can-i", "create", "pods"]).await?;
    tenant.kubectl(&["logs", "extension", "--tail=1"]).await?;
    tenant.kubectl(&["delete", "service", "extension"]).await?;
    wait_for("the state to be told", 120, async || {
        let path = "jsonpath={.status.kubernetesResources.version.status}";
        let words = ["get", "tcp", "ported", "-n", "tenants", "-o", path];
        let word = stage.kubectl(&words).await?;
        ensure!(word == "WriteLimited", "{word}");
        Ok(())
    })
    .await?;
    limit(stage, false).await?;
    wait_for("creations to be allowed again", 120, async || {
        tenant
            .kubectl(&["create", "configmap", "late", "--dry-run=server"])
            .await
    })
    .await?;
    Ok(())
}

async fn limit(stage: &Stage, blocked: bool) -> Result<()> {
    let change = format!(r#"{{"spec":{{"writePermissions":{{"blockCreation":{blocked}}}}}}}"#);
    let words = [
        "patch",
        "tcp",
        "ported",
        "-n",
        "tenants",
        "--type=merge",
        "-p",
        &change,
    ];
    stage.kubectl(&words).await?;
    Ok(())
}

/// Deleted tenants leave a namespace as if nothing had ever been there.
async fn nothing_is_left(stage: &Stage) -> Result<()> {
    let words = ["delete", "tcp", "--all", "-n", "tenants", "--timeout=180s"];
    stage.kubectl(&words).await?;
    wait_for("an empty namespace", 180, async || {
        let kinds = stage
            .kubectl(&[
                "api-resources",
                "--namespaced",
                "--verbs=list",
                "-o",
                "name",
            ])
            .await?;
        let kinds: Vec<&str> = kinds
            .lines()
            .filter(|kind| !kind.starts_with("events"))
            .collect();
        let kinds = kinds.join(",");
        let left = stage
            .kubectl(&["get", &kinds, "-n", "tenants", "-o", "name"])
            .await?;
        let left: Vec<&str> = left
            .lines()
            .filter(|line| !of_every_namespace(line))
            .collect();
        ensure!(left.is_empty(), "still there: {left:?}");
        Ok(())
    })
    .await
    .context("after deletion")
}

/// What Kubernetes puts into every namespace.
fn of_every_namespace(line: &str) -> bool {
    ["configmap/kube-root-ca.crt", "serviceaccount/default"].contains(&line)
}
