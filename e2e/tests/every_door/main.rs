//! Everything, behind every front door: two tenants at once, each with a worker that can reach nothing
//! but the front door's port 443 and the name server, and that comes up from nothing; pods that ask in
//! every way, and watch for five minutes while routes change; people outside with all of kubectl; and
//! neighbours that can do nothing to each other.

mod door;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::{try_join, try_join_all};
use steward_e2e::haproxy::Haproxy;
use steward_e2e::promises::{clients, neighbours, nodes, pods};
use steward_e2e::{Resident, Stage, Watch, wait_for};
use steward_lab::images::catalogue::Item;
use tokio::sync::Semaphore;

use crate::door::{Addresses, Door};

/// Front doors with tenants at the same time: while the pods of one watch, the next one's come up.
const AT_ONCE: usize = 4;
/// How long one request of a pod stays open.
const WATCHED: Duration = Duration::from_mins(5);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a quarter of an hour, because pods watch for five minutes: make doors"]
async fn everything_works_behind_every_front_door() -> Result<()> {
    let doors = Door::chosen(std::env::var("STEWARD_DOORS").ok().as_deref())?;
    let workers = u8::try_from(2 * doors.len())?;
    let stage = Stage::bare("everydoor", workers).await?;
    stage.apply_crds("gateway-api").await?;
    stage.apply_crds("traefik").await?;
    stage.install(&["gateway.enabled=true"]).await?;
    stage.load(&[Item::Traefik, Item::HaproxyIngress]).await?;
    let addresses = Addresses::furnish(&stage).await?;
    let street = Street {
        stage: &stage,
        addresses,
        room: Semaphore::new(AT_ONCE),
        hands: Semaphore::new(1),
    };
    let houses = doors.iter().zip((1..).step_by(2));
    let houses = houses.map(|(door, worker)| street.live_behind(*door, worker));
    try_join_all(houses).await?;
    Ok(())
}

/// Where the front doors are.
struct Street<'s> {
    stage: &'s Stage,
    addresses: Addresses,
    /// For tenants.
    room: Semaphore,
    /// Whoever does something, has it: two small cores, and one name server that is taken away.
    hands: Semaphore,
}

impl Street<'_> {
    async fn live_behind(&self, door: Door, worker: u8) -> Result<()> {
        let told = self.everything_behind(door, worker).await;
        told.with_context(|| format!("behind {}", door.name()))
    }

    async fn everything_behind(&self, door: Door, worker: u8) -> Result<()> {
        let _room = self.room.acquire().await?;
        let busy = self.hands.acquire().await?;
        let begun = Instant::now();
        let (stage, address) = (self.stage, self.addresses.of(door));
        let (residents, haproxy) = self.move_in(door, worker).await?;
        let available = begun.elapsed();
        // Kept to the end: dropping them would open the way again.
        let _fences = [
            stage.fence_in(worker, address)?,
            stage.fence_in(worker + 1, address)?,
        ];
        nodes::nodes_come_up_from_nothing(stage, &residents).await?;
        let up = begun.elapsed();
        let [one, other] = &residents;
        for resident in &residents {
            clients::kubectl_works_by_hostname(resident).await?;
        }
        try_join(
            pods::they_ask_their_own_api_server(stage, one),
            pods::they_ask_their_own_api_server(stage, other),
        )
        .await?;
        let watches = [
            Watch::begin(&one.tenant).await?,
            Watch::begin(&other.tenant).await?,
        ];
        try_join(
            clients::logs_ports_and_measurements_come_back(stage, one),
            clients::logs_ports_and_measurements_come_back(stage, other),
        )
        .await?;
        for (one, other) in [(one, other), (other, one)] {
            neighbours::credentials_of_one_are_refused_by_the_other(stage, one, other).await?;
            neighbours::a_tunnel_under_a_neighbours_name_leads_nowhere(stage, one, other).await?;
        }
        let nobody = door.host("nobody");
        neighbours::an_unknown_name_gets_an_alert(stage, &address.to_string(), &nobody).await?;
        self.routes_change(door, one, haproxy.as_ref()).await?;
        println!(
            "{}: tenants after {} s, nodes and their pods after {} s, everything after {} s",
            door.name(),
            available.as_secs(),
            up.as_secs(),
            begun.elapsed().as_secs()
        );
        drop(busy);
        for watch in &watches {
            watch.wait_until(WATCHED).await;
        }
        let _busy = self.hands.acquire().await?;
        for watch in &watches {
            let age = watch.still_hears().await?;
            println!("{}: a watch of {} s hears", door.name(), age.as_secs());
        }
        self.move_out(&residents).await
    }

    /// Two tenants, which are Available only when the front door leads to them.
    async fn move_in(&self, door: Door, worker: u8) -> Result<([Resident; 2], Option<Haproxy>)> {
        for label in ["one", "other"] {
            self.stage.apply(&tenant(door, label, 1)).await?;
        }
        let haproxy = match door {
            Door::HaproxyTechnologies => Some(Haproxy::start(self.stage, door.name()).await?),
            _ => None,
        };
        let resident = async |label: &str, worker: u8| -> Result<Resident> {
            Ok(Resident {
                tenant: self.stage.tenant(door.name(), label).await?,
                host: door.host(label),
                worker,
            })
        };
        let residents = [
            resident("one", worker).await?,
            resident("other", worker + 1).await?,
        ];
        Ok((residents, haproxy))
    }

    /// The route of one is written anew, and a third tenant's comes and goes; that one sleeps, so nothing else does.
    async fn routes_change(
        &self,
        door: Door,
        one: &Resident,
        haproxy: Option<&Haproxy>,
    ) -> Result<()> {
        let stage = self.stage;
        let kind = if door.route() == "tlsroute" {
            "gateway"
        } else {
            "ingress"
        };
        let change = format!(
            r#"{{"spec":{{"controlPlane":{{"{kind}":{{"additionalMetadata":{{"annotations":{{"changed":"yes"}}}}}}}}}}}}"#
        );
        stage.patch(door.name(), one.tenant.name(), &change).await?;
        stage.apply(&tenant(door, "asleep", 0)).await?;
        let look = ["get", door.route(), "-n", door.name()];
        let mut all = look.to_vec();
        all.extend(["-o", "jsonpath={.items[*].metadata}"]);
        wait_for("the routes to change", 120, async || {
            let seen = stage.kubectl(&all).await?;
            ensure!(seen.contains(r#""changed":"yes""#), "{seen}");
            ensure!(seen.contains(r#""name":"asleep""#), "{seen}");
            Ok(())
        })
        .await?;
        if let Some(haproxy) = haproxy {
            haproxy.reload(stage).await?;
        }
        // Whatever reads the routes has read them by then; the watches hear later whether it mattered.
        tokio::time::sleep(Duration::from_secs(5)).await;
        delete(stage, door.name(), "asleep").await?;
        if let Some(haproxy) = haproxy {
            haproxy.reload(stage).await?;
        }
        one.tenant.kubectl(&["get", "--raw", "/version"]).await?;
        Ok(())
    }

    /// Their workers stay behind, with nothing running on them.
    async fn move_out(&self, residents: &[Resident; 2]) -> Result<()> {
        for resident in residents {
            let tenant = &resident.tenant;
            delete(self.stage, tenant.namespace(), tenant.name()).await?;
            resident.worker(self.stage)?.stop("kubelet")?;
        }
        Ok(())
    }
}

/// A tenant behind a front door. CoreDNS comes only when its node has come up without.
fn tenant(door: Door, label: &str, replicas: u8) -> String {
    format!(
        "apiVersion: steward.butlerlabs.dev/v1alpha1
kind: TenantControlPlane
metadata: {{ name: {label}, namespace: {} }}
spec:
  kubernetes: {{ version: v1.36.3 }}
  controlPlane:
    deployment: {{ replicas: {replicas} }}
    service: {{ serviceType: ClusterIP }}
    {}
  addons: {{ kubeProxy: {{}}, konnectivity: {{}}, tcpProxy: {{}} }}
",
        door.name(),
        door.exposure(&door.host(label))
    )
}

async fn delete(stage: &Stage, namespace: &str, name: &str) -> Result<()> {
    let words = ["delete", "tcp", name, "-n", namespace, "--timeout=180s"];
    stage.kubectl(&words).await?;
    Ok(())
}
