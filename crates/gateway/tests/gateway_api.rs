//! The Gateway API's TLS profile, told to a real API server: what users write with kubectl,
//! what the controller answers in their status, and what it routes.
//!
//! Owns no data plane: which connection follows from a route is shown elsewhere.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't set up its scene fails"
)]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use steward_gateway::kubernetes::controller::{self, Change, Config};
use steward_lab::fixture::ApiServer;
use steward_lab::parts::{self, Part, Release};
use steward_lab::progress::Progress;

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// An API server with the Gateway API, and the controller on it.
struct Cluster {
    server: ApiServer,
    kubectl: PathBuf,
    /// What the controller wants routed: host and number of backends.
    routed: Arc<Mutex<BTreeMap<String, usize>>>,
    controller: tokio::task::JoinHandle<()>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.controller.abort();
    }
}

impl Cluster {
    async fn start() -> Result<Self> {
        let server = ApiServer::start().await?;
        let options = parts::Options::from_env()?;
        let programs = parts::ensure_all(
            &[Part::Crds, Part::Kubernetes(Release::V1_36)],
            &options,
            &Progress::stderr(),
        )?;
        let kubectl = programs[&Part::Kubernetes(Release::V1_36)]
            .path("kubectl")?
            .to_owned();
        let crds = programs[&Part::Crds].share().context("no CRDs")?;
        let routed = Arc::new(Mutex::new(BTreeMap::new()));
        let config = Config {
            port: 443,
            publish_service: None,
            publish_addresses: vec!["192.0.2.10".parse()?],
        };
        let table = Arc::clone(&routed);
        let client = server.client().await?;
        let mut cluster = Self {
            server,
            kubectl,
            routed,
            controller: tokio::spawn(async {}),
        };
        let folder = crds.join("gateway-api").display().to_string();
        cluster.kubectl(&["apply", "--server-side", "-f", &folder], "")?;
        cluster.apply(BASE).await?;
        let apply = move |changes: Vec<Change>| {
            let mut table = table.lock().unwrap();
            for change in changes {
                match change {
                    Change::Set(host, goal) => table.insert(host, goal.backends.len()),
                    Change::Remove(host) => table.remove(&host),
                };
            }
        };
        cluster.controller = tokio::spawn(controller::run(client, config, apply, || ()));
        Ok(cluster)
    }

    fn kubectl(&self, words: &[&str], input: &str) -> Result<String> {
        let mut child = Command::new(&self.kubectl)
            .arg("--kubeconfig")
            .arg(self.server.kubeconfig())
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut stdin = child.stdin.take().context("no input")?;
        stdin.write_all(input.as_bytes())?;
        drop(stdin);
        let output = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "kubectl {words:?}: {said}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Applies; a kind that was installed a moment ago may not be served yet.
    async fn apply(&self, manifest: &str) -> Result<()> {
        steward_lab::poll(PATIENCE, async || {
            self.kubectl(&["apply", "-f", "-"], manifest).map(drop)
        })
        .await
    }

    /// Waits until something of an object is so.
    async fn until(&self, object: &str, what: &str, fits: impl Fn(&Value) -> bool) -> Result<()> {
        let seen = steward_lab::poll(PATIENCE, async || {
            let (kind, name) = object.split_once(' ').context("kind and name")?;
            let (namespace, name) = name.split_once('/').context("namespace and name")?;
            let text = self.kubectl(&["get", kind, name, "-n", namespace, "-o", "json"], "")?;
            let found: Value = serde_json::from_str(&text)?;
            ensure!(fits(&found["status"]), "{}", found["status"]);
            Ok(())
        });
        seen.await.with_context(|| format!("{object}: {what}"))
    }

    /// Waits for a condition of the route's first parent.
    async fn route_says(&self, route: &str, type_: &str, reason: &str, status: &str) -> Result<()> {
        let fits = |found: &Value| {
            let conditions = found["parents"][0]["conditions"].as_array();
            conditions.into_iter().flatten().any(|c| {
                c["type"] == type_
                    && c["reason"] == reason
                    && c["status"] == status
                    && c["observedGeneration"].is_i64()
            })
        };
        let what = format!("{type_}={status} ({reason})");
        self.until(&format!("tlsroute {route}"), &what, fits).await
    }

    /// Waits until a host is routed to so many addresses; none means no route.
    async fn routes(&self, host: &str, backends: Option<usize>) -> Result<()> {
        steward_lab::poll(PATIENCE, async || {
            let found = self.routed.lock().unwrap().get(host).copied();
            if found != backends {
                bail!("{host} has {found:?} backends");
            }
            Ok(())
        })
        .await
    }
}

const BASE: &str = "
apiVersion: v1
kind: Namespace
metadata: { name: infra }
---
apiVersion: v1
kind: Namespace
metadata: { name: tenants, labels: { tier: gold } }
---
apiVersion: v1
kind: Namespace
metadata: { name: strangers }
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: { name: steward }
spec: { controllerName: steward.butlerlabs.dev/gateway }
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: front, namespace: infra }
spec:
  gatewayClassName: steward
  listeners:
  - { name: tls, port: 443, protocol: TLS, hostname: '*.example.com', tls: { mode: Passthrough }, allowedRoutes: { namespaces: { from: Selector, selector: { matchLabels: { tier: gold } } } } }
  - { name: opened, port: 443, protocol: TLS, hostname: opened.example.org, tls: { mode: Terminate, certificateRefs: [ { name: some } ] } }
---
apiVersion: v1
kind: Service
metadata: { name: t1, namespace: tenants }
spec: { ports: [ { name: kube-apiserver, port: 6443 } ] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: t1-abc, namespace: tenants, labels: { kubernetes.io/service-name: t1 } }
addressType: IPv4
ports: [ { name: kube-apiserver, port: 7443 } ]
endpoints: [ { addresses: [ 10.0.0.1 ] }, { addresses: [ 10.0.0.2 ] } ]
---
apiVersion: v1
kind: Service
metadata: { name: elsewhere, namespace: strangers }
spec: { ports: [ { name: kube-apiserver, port: 6443 } ] }
";

/// A TLSRoute in `namespace/name` for a host, to a Service `namespace/name`.
fn route(place: &str, host: &str, to: &str) -> String {
    let (namespace, name) = place.split_once('/').unwrap();
    let (of, service) = to.split_once('/').unwrap();
    format!(
        "
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {{ name: {name}, namespace: {namespace} }}
spec:
  hostnames: [ '{host}' ]
  parentRefs: [ {{ name: front, namespace: infra }} ]
  rules: [ {{ backendRefs: [ {{ name: {service}, namespace: {of}, port: 6443 }} ] }} ]
"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateways_and_routes_are_answered_as_the_gateway_api_specifies() -> Result<()> {
    let cluster = Cluster::start().await?;
    a_route_attaches_and_is_counted(&cluster).await?;
    a_listener_that_opens_tls_is_refused(&cluster).await?;
    a_route_that_is_not_admitted_learns_why(&cluster).await?;
    another_namespace_has_to_grant_its_service(&cluster).await?;
    the_older_route_keeps_its_name_until_it_goes(&cluster).await?;
    what_is_gone_is_no_longer_routed(&cluster).await
}

async fn a_route_attaches_and_is_counted(cluster: &Cluster) -> Result<()> {
    cluster
        .apply(&route("tenants/t1", "t1.example.com", "tenants/t1"))
        .await?;
    cluster
        .route_says("tenants/t1", "Accepted", "Accepted", "True")
        .await?;
    cluster
        .route_says("tenants/t1", "ResolvedRefs", "ResolvedRefs", "True")
        .await?;
    cluster.routes("t1.example.com", Some(2)).await?;
    let programmed = |status: &Value| {
        let listener = &status["listeners"][0];
        status["addresses"][0]["value"] == "192.0.2.10"
            && listener["attachedRoutes"] == 1
            && listener["supportedKinds"][0]["kind"] == "TLSRoute"
            && holds(&status["conditions"], "Programmed", "True")
            && holds(&listener["conditions"], "Programmed", "True")
    };
    cluster
        .until("gateway infra/front", "one attached route", programmed)
        .await
}

fn holds(conditions: &Value, type_: &str, status: &str) -> bool {
    let mut all = conditions.as_array().into_iter().flatten();
    all.any(|c| c["type"] == type_ && c["status"] == status)
}

async fn a_listener_that_opens_tls_is_refused(cluster: &Cluster) -> Result<()> {
    let refused =
        |status: &Value| holds(&status["listeners"][1]["conditions"], "Accepted", "False");
    cluster
        .until("gateway infra/front", "no TLS opened", refused)
        .await
}

async fn a_route_that_is_not_admitted_learns_why(cluster: &Cluster) -> Result<()> {
    cluster
        .apply(&route("tenants/lost", "lost.example.net", "tenants/t1"))
        .await?;
    let (accepted, no) = ("Accepted", "False");
    cluster
        .route_says("tenants/lost", accepted, "NoMatchingListenerHostname", no)
        .await?;
    cluster
        .apply(&route(
            "strangers/s",
            "s.example.com",
            "strangers/elsewhere",
        ))
        .await?;
    cluster
        .route_says("strangers/s", accepted, "NotAllowedByListeners", no)
        .await?;
    cluster.routes("s.example.com", None).await
}

async fn another_namespace_has_to_grant_its_service(cluster: &Cluster) -> Result<()> {
    cluster
        .apply(&route(
            "tenants/far",
            "far.example.com",
            "strangers/elsewhere",
        ))
        .await?;
    let resolved = "ResolvedRefs";
    cluster
        .route_says("tenants/far", resolved, "RefNotPermitted", "False")
        .await?;
    cluster
        .apply(
            "
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: { name: g, namespace: strangers }
spec:
  from: [ { group: gateway.networking.k8s.io, kind: TLSRoute, namespace: tenants } ]
  to: [ { group: '', kind: Service } ]
",
        )
        .await?;
    cluster
        .route_says("tenants/far", resolved, resolved, "True")
        .await
}

async fn the_older_route_keeps_its_name_until_it_goes(cluster: &Cluster) -> Result<()> {
    cluster
        .apply(&route(
            "tenants/thief",
            "t1.example.com",
            "strangers/elsewhere",
        ))
        .await?;
    let accepted = "Accepted";
    cluster
        .route_says("tenants/thief", accepted, "HostnameConflict", "False")
        .await?;
    cluster.routes("t1.example.com", Some(2)).await?;
    cluster
        .apply(&route(
            "tenants/wide",
            "*.example.com",
            "strangers/elsewhere",
        ))
        .await?;
    cluster
        .route_says("tenants/wide", accepted, accepted, "True")
        .await?;
    cluster.routes("*.example.com", Some(0)).await?;
    cluster.routes("t1.example.com", Some(2)).await?;
    cluster.kubectl(&["delete", "tlsroute", "t1", "-n", "tenants"], "")?;
    cluster
        .route_says("tenants/thief", accepted, accepted, "True")
        .await
}

async fn what_is_gone_is_no_longer_routed(cluster: &Cluster) -> Result<()> {
    cluster.kubectl(&["delete", "tlsroute", "--all", "-n", "tenants"], "")?;
    for host in ["t1.example.com", "*.example.com", "far.example.com"] {
        cluster.routes(host, None).await?;
    }
    let none = |status: &Value| status["listeners"][0]["attachedRoutes"] == 0;
    cluster
        .until("gateway infra/front", "no routes", none)
        .await
}
