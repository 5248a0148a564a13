//! Everything that carries a request is killed and replaced in turn, and every certificate
//! renewed, while 200 clients and 50 pods ask. What breaks is counted.
//!
//! One tenant's pods go end to end, the other's through a proxy that opens TLS.

mod steps;

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Result, ensure};
use steward_e2e::{Crowd, Figures, PodLoad, Stage, Target, Tenant, wait_for};

/// What a step may do to clients.
#[derive(Clone, Copy)]
enum Grace {
    /// It may cut connections, but a request on a new one must not fail.
    Seamless,
    /// A process is gone with what it carried, requests under way among it; but whoever connects
    /// from then on waits for the next one, and is not refused.
    NobodyRefused,
}

fn tenant(name: &str, mode: &str) -> String {
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
    deployment: {{ replicas: 2 }}
    service: {{ serviceType: ClusterIP }}
    ingress: {{ hostname: {name}.k8s.example.com, ingressClassName: steward, controllerType: steward }}
  addons: {{ coreDNS: {{}}, kubeProxy: {{}}, konnectivity: {{}}, tcpProxy: {{ mode: {mode} }} }}
"
    )
}

/// A tenant, its clients outside and its pods.
struct Party<'t> {
    tenant: &'t Tenant,
    clients: Crowd,
    pods: PodLoad,
}

/// What came of one step.
struct Outcome {
    what: &'static str,
    grace: Grace,
    clients: Figures,
    pods: Figures,
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes under load, on a machine of its own: make soak"]
async fn parts_are_killed_and_replaced_and_requests_find_their_way() -> Result<()> {
    let values = ["gateway.enabled=true", "gateway.replicas=2"];
    let stage = Stage::up("reliability", 2, &values).await?;
    let front_door = stage
        .address_of("steward-system", "steward-gateway")
        .await?;
    stage.name("*.k8s.example.com", front_door)?;
    stage.apply(&tenant("t1", "EndToEnd")).await?;
    stage.apply(&tenant("t2", "Terminate")).await?;
    let t1 = stage.tenant("tenants", "t1").await?;
    let t2 = stage.tenant("tenants", "t2").await?;
    let _fences = [
        stage.fence_in(1, front_door)?,
        stage.fence_in(2, front_door)?,
    ];
    let mut parties = [
        party(&stage, &t1, 1, front_door).await?,
        party(&stage, &t2, 2, front_door).await?,
    ];
    let mut outcomes = Vec::new();
    for step in steps::ALL {
        step.run(&stage).await?;
        let outcome = observe(&mut parties, step.what, step.grace).await?;
        outcome.tell();
        outcomes.push(outcome);
    }
    for outcome in outcomes {
        outcome.judge()?;
    }
    for party in parties {
        party.clients.finish().await.none_astray("at the end")?;
    }
    Ok(())
}

async fn party<'t>(
    stage: &Stage,
    tenant: &'t Tenant,
    number: u8,
    front_door: Ipv4Addr,
) -> Result<Party<'t>> {
    let worker = stage.lab.worker(number)?;
    tenant.join(&worker).await?;
    tenant.node_ready(&format!("worker-{number}")).await?;
    let name = format!("{}.k8s.example.com", tenant.name());
    let target = Target::of(tenant, &name, SocketAddr::from((front_door, 443))).await?;
    let pods = PodLoad::start(tenant, &worker, &target.uid, (25, 1)).await?;
    let clients = Crowd::start(&stage.lab.client_host(), &target, 100)?;
    Ok(Party {
        tenant,
        clients,
        pods,
    })
}

/// Lets every client come to its turn again after a step, and counts.
async fn observe(parties: &mut [Party<'_>], what: &'static str, grace: Grace) -> Result<Outcome> {
    let mut outcome = Outcome {
        what,
        grace,
        clients: Figures::default(),
        pods: Figures::default(),
    };
    for party in parties {
        let before = party.clients.look().answered;
        wait_for("every client to be answered again", 120, async || {
            let now = party.clients.look().answered;
            ensure!(
                now >= before + 200,
                "{} of tenant {}",
                now - before,
                party.tenant.name()
            );
            Ok(())
        })
        .await?;
        outcome.clients.add(party.clients.take());
        outcome.pods.add(party.pods.take().await?);
    }
    Ok(outcome)
}

impl Outcome {
    fn tell(&self) {
        eprintln!("{}", self.what);
        for (who, figures) in [("clients", &self.clients), ("pods", &self.pods)] {
            figures.tell(&format!("  {who}"));
        }
    }

    fn judge(&self) -> Result<()> {
        for (who, figures) in [("clients", &self.clients), ("pods", &self.pods)] {
            let during = format!("{}: {who}", self.what);
            match self.grace {
                Grace::Seamless => figures.none_failed(&during)?,
                Grace::NobodyRefused => figures.none_refused(&during)?,
            }
        }
        Ok(())
    }
}
