//! One tenant that changes under load: how its pods reach the API server, and how everybody does.
//! Nobody who asks notices.

mod proxy;

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result, ensure};
use steward_e2e::{Crowd, Figures, PodLoad, Stage, Target, Tenant, wait_for};
use steward_lab::HostId;
use steward_lab::faults::{Allowed, Fault};

const NAME: &str = "t1.k8s.example.com";

/// The first seed's fields, each with something to show. `DIRECT` leads past the front door.
const TENANT: &str = "apiVersion: steward.butlerlabs.dev/v1alpha1
kind: TenantControlPlane
metadata: { name: t1, namespace: tenants }
spec:
  kubernetes: { version: v1.36.3 }
  controlPlane:
    deployment: { replicas: 1 }
    service: { serviceType: ClusterIP }
    ingress: { hostname: t1.k8s.example.com, ingressClassName: steward, controllerType: steward }
  addons:
    coreDNS: {}
    kubeProxy: {}
    konnectivity: {}
    tcpProxy:
      mode: Terminate
      internalEndpoint: DIRECT
      resources: { requests: { cpu: 10m, memory: 24Mi }, limits: { memory: 64Mi } }
";

/// A way to the tenant that is not the front door's: what a platform team has for emergencies.
const DIRECT: &str = "apiVersion: v1
kind: Namespace
metadata: { name: tenants }
---
apiVersion: v1
kind: Service
metadata: { name: direct, namespace: tenants }
spec:
  type: LoadBalancer
  selector: { steward.butlerlabs.dev/name: t1 }
  ports: [ { port: 443, targetPort: 7443 } ]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: front, namespace: tenants }
spec:
  gatewayClassName: steward
  listeners: [ { name: tls, port: 443, protocol: TLS, tls: { mode: Passthrough } } ]
";

/// Everything of the story.
struct Scene {
    stage: Stage,
    tenant: Tenant,
    front_door: Ipv4Addr,
    _fence: Fault,
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes under load, on a machine of its own: make soak"]
async fn a_tenant_changes_its_ways_and_nobody_notices() -> Result<()> {
    let scene = Scene::set().await?;
    let tenant = &scene.tenant;
    scene.proxy_that_opens_tls_is_as_described().await?;

    let address = SocketAddr::from((scene.front_door, 443));
    let target = Target::of(tenant, NAME, address).await?;
    let client = scene.stage.lab.client_host();
    let mut pods = PodLoad::start(tenant, &scene.stage.lab.worker(1)?, &target.uid, (4, 5)).await?;
    let outside = Crowd::start(&client, &target, 40)?;
    let mut steps: Vec<(&str, Figures)> = Vec::new();
    let mut step = |what, figures: Figures| {
        figures.tell(what);
        steps.push((what, figures));
    };
    scene.certificate_is_rotated_without_a_restart().await?;
    step("certificate of the proxy rotated", pods.take().await?);
    scene
        .proxy(r#"{"mode":"EndToEnd","internalEndpoint":null}"#)
        .await?;
    scene
        .wait_proxy("daemonset", "deployment", "240.0.0.1")
        .await?;
    step("Terminate to EndToEnd", pods.take().await?);
    scene.proxy(r#"{"mode":"Terminate"}"#).await?;
    scene
        .wait_proxy("deployment", "daemonset", "10.20.0.11")
        .await?;
    step("EndToEnd to Terminate", pods.take().await?);

    scene.to_gateway().await?;
    step("Ingress to Gateway", pods.take().await?);
    let mut by_address = Figures::default();
    for (away, back, mode) in [
        (
            "Gateway to LoadBalancer, proxy off",
            "LoadBalancer to Ingress, proxy EndToEnd",
            "EndToEnd",
        ),
        (
            "Ingress to LoadBalancer, proxy off",
            "LoadBalancer to Ingress, proxy Terminate",
            "Terminate",
        ),
    ] {
        let balanced = scene.to_load_balancer_without_proxy().await?;
        step(away, pods.take().await?);
        let own = Target {
            name: balanced.ip().to_string(),
            address: balanced,
            ..target.clone()
        };
        let crowd = Crowd::start(&client, &own, 20)?;
        scene.to_ingress_with_proxy(mode).await?;
        step(back, pods.take().await?);
        by_address.add(crowd.finish().await);
        scene.release(balanced).await?;
        step("the old address released", pods.take().await?);
    }

    let outside = outside.finish().await;
    outside.tell("clients by name, all the time");
    by_address.tell("clients by the tenant's own address, while it moved back");
    for (what, figures) in &steps {
        figures.none_failed(&format!("pods, {what}"))?;
    }
    by_address.none_failed("clients by the tenant's own address")?;
    outside.none_failed("clients by name")
}

impl Scene {
    async fn set() -> Result<Self> {
        let values = [
            "gateway.enabled=true",
            "gateway.replicas=1",
            "gateway.drainSeconds=2",
        ];
        let stage = Stage::bare("modes", 1).await?;
        stage.apply_crds("gateway-api").await?;
        stage.install(&values).await?;
        let front_door = stage
            .address_of("steward-system", "steward-gateway")
            .await?;
        stage.name(NAME, front_door)?;
        stage.apply(DIRECT).await?;
        let direct = stage.address_of("tenants", "direct").await?;
        stage
            .apply(&TENANT.replace("DIRECT", &direct.to_string()))
            .await?;
        let tenant = stage.tenant("tenants", "t1").await?;
        // The front door, the emergency way, and what the tenant's own address will be.
        let own = Ipv4Addr::from(u32::from(direct) + 1);
        let tcp = [(front_door, 443), (direct, 443), (own, 6443), (own, 8132)];
        let tcp = tcp.map(SocketAddr::from).to_vec();
        let fence = stage
            .lab
            .fence_in(HostId::Worker(1), &Allowed { tcp, names: true })?;
        tenant.join(&stage.lab.worker(1)?).await?;
        tenant.node_ready("worker-1").await?;
        Ok(Self {
            stage,
            tenant,
            front_door,
            _fence: fence,
        })
    }

    /// Changes the tenant.
    async fn patch(&self, change: &str) -> Result<()> {
        self.stage.patch("tenants", "t1", change).await
    }

    async fn of_tenant(&self, path: &str) -> Result<String> {
        let path = format!("jsonpath={path}");
        self.stage
            .kubectl(&["get", "tcp", "t1", "-n", "tenants", "-o", &path])
            .await
    }

    async fn moved(&self, mode: &str) -> Result<()> {
        wait_for(
            &format!("the tenant to be reached by {mode}"),
            240,
            async || {
                let now = self
                    .of_tenant("{.status.exposure.mode} {.status.conditions}")
                    .await?;
                ensure!(now.starts_with(&format!("{mode} ")), "{now}");
                Ok(())
            },
        )
        .await
    }

    /// Whether an object of the tenant's is there in the management cluster.
    async fn there(&self, kind: &str) -> Result<bool> {
        let words = [
            "get",
            kind,
            "t1",
            "-n",
            "tenants",
            "-o",
            "name",
            "--ignore-not-found",
        ];
        Ok(!self.stage.kubectl(&words).await?.trim().is_empty())
    }

    async fn gone(&self, kind: &str) -> Result<()> {
        wait_for(&format!("the {kind} to go"), 240, async || {
            ensure!(!self.there(kind).await?, "it is there");
            Ok(())
        })
        .await
    }

    /// Under the same name: the Ingress goes only when the Gateway has accepted the route.
    async fn to_gateway(&self) -> Result<()> {
        let change = r#"{"spec":{"controlPlane":{"ingress":null,"gateway":{"hostname":"t1.k8s.example.com","parentRefs":[{"name":"front"}]}}}}"#;
        self.patch(change).await?;
        self.moved("Gateway").await?;
        self.gone("ingress").await
    }

    /// To an address of its own, where pods need no proxy. The old name works on for the kubelet.
    async fn to_load_balancer_without_proxy(&self) -> Result<SocketAddr> {
        let by_gateway = self.there("tlsroute").await?;
        let route = if by_gateway { "tlsroute" } else { "ingress" };
        let change = r#"{"spec":{"controlPlane":{"gateway":null,"ingress":null,"service":{"serviceType":"LoadBalancer"}},"addons":{"tcpProxy":null}}}"#;
        self.patch(change).await?;
        self.moved("LoadBalancer").await?;
        let address = self.stage.address_of("tenants", "t1").await?;
        self.wait_proxy("", "daemonset,deployment", &address.to_string())
            .await?;
        ensure!(self.there(route).await?, "kubelets still use the name");
        Ok(SocketAddr::from((address, 6443)))
    }

    async fn to_ingress_with_proxy(&self, mode: &str) -> Result<()> {
        let change = r#"{"spec":{"controlPlane":{"ingress":{"hostname":"t1.k8s.example.com","ingressClassName":"steward","controllerType":"steward"},"service":{"serviceType":"ClusterIP"}},"addons":{"tcpProxy":{"mode":"MODE"}}}}"#;
        self.patch(&change.replace("MODE", mode)).await?;
        self.moved("Ingress").await?;
        let (there, gone, address) = match mode {
            "EndToEnd" => ("daemonset", "deployment", "240.0.0.1"),
            _ => ("deployment", "daemonset", "10.20.0.11"),
        };
        self.wait_proxy(there, gone, address).await?;
        self.gone("tlsroute").await
    }

    /// The address goes when the user says that no kubelet uses it.
    async fn release(&self, old: SocketAddr) -> Result<()> {
        let note = format!("steward.butlerlabs.dev/release-endpoint={old}");
        // What was said of an earlier time does not hold for this one.
        let annotate = async |note: &str| {
            let words = ["annotate", "tcp", "t1", "-n", "tenants", note];
            self.stage.kubectl(&words).await
        };
        annotate("steward.butlerlabs.dev/release-endpoint-").await?;
        wait_for("the operator to ask for a release", 60, async || {
            let told = self
                .of_tenant("{.status.conditions[?(@.type==\"EndpointReady\")].message}")
                .await?;
            ensure!(told.contains(&note), "{told}");
            Ok(())
        })
        .await?;
        annotate(&note).await?;
        wait_for("the address to be given back", 180, async || {
            let path = "jsonpath={.spec.type}";
            let now = self
                .stage
                .kubectl(&["get", "service", "t1", "-n", "tenants", "-o", path])
                .await?;
            ensure!(now == "ClusterIP", "{now}");
            Ok(())
        })
        .await
        .context("release")
    }
}
