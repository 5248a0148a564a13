//! Whose a hostname is: who claimed it first, whatever the age of the tenants and whatever users write into
//! a status.

use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::harness::{World, until};

const NAME: &str = "one.k8s.example.com";

/// Type, status, reason and message.
type Condition = (String, String, String, String);

fn behind(hostname: &str) -> Value {
    json!({"controlPlane": {"service": {"serviceType": "ClusterIP"},
        "ingress": {"hostname": hostname, "ingressClassName": "steward", "controllerType": "steward"}}})
}

fn hostname(hostname: &str) -> Value {
    json!({"spec": {"controlPlane": {"ingress": {"hostname": hostname}}}})
}

impl World {
    /// Holders of hostnames, as recorded.
    async fn holders(&self) -> Vec<(String, String)> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), &self.namespace);
        let ours = "steward.butlerlabs.dev/component=hostname-claim";
        let found = leases.list(&ListParams::default().labels(ours)).await;
        let mut all: Vec<_> = found
            .unwrap()
            .into_iter()
            .filter_map(|lease| {
                let hostname = lease.annotations().get("steward.butlerlabs.dev/hostname")?;
                let holder = lease.spec.as_ref()?.holder_identity.as_ref()?;
                let name = holder.split('/').nth(1)?;
                Some((hostname.clone(), name.to_owned()))
            })
            .collect();
        all.sort();
        all
    }

    async fn until_held(&self, expected: &[(&str, &str)]) {
        until(&format!("holders {expected:?}"), async || {
            let found = self.holders().await;
            let same = found.iter().map(|(a, b)| (a.as_str(), b.as_str()));
            if same.eq(expected.iter().copied()) {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        })
        .await;
    }

    /// Conditions without their times.
    async fn conditions(&self, name: &str) -> Vec<Condition> {
        let tenant = self.tenants().get(name).await.unwrap();
        let conditions = tenant.status.unwrap().conditions;
        conditions
            .into_iter()
            .map(|c| (c.type_, c.status, c.reason, c.message))
            .collect()
    }

    /// Objects of a tenant and the versions that they are stored in.
    async fn versions(&self, name: &str) -> Vec<(String, String)> {
        let objects = self.objects(name).await.into_iter();
        objects
            .map(|(key, body)| (key, body["metadata"]["resourceVersion"].to_string()))
            .collect()
    }

    async fn until_replicas(&self, name: &str, replicas: i64) {
        until(&format!("{replicas} replicas of {name}"), async || {
            let objects = self.objects(name).await;
            let deployment = objects
                .iter()
                .find(|(key, _)| key.starts_with("Deployment"));
            let found = deployment.map(|(_, body)| body["spec"]["replicas"].clone());
            if found == Some(json!(replicas)) {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_tenant_does_not_take_a_name_that_a_younger_one_holds() {
    let world = World::new().await;
    let operator = world.start(&[]);
    world
        .make_tenant("thief", &behind("own.k8s.example.com"))
        .await;
    world.until_planned("thief").await;
    world.make_tenant("victim", &behind(NAME)).await;
    world.until_planned("victim").await;
    world
        .until_held(&[(NAME, "victim"), ("own.k8s.example.com", "thief")])
        .await;
    // The status is written when all objects are.
    world
        .until_condition(
            "victim",
            "ControlPlaneReady",
            "False",
            Some("WaitingForPods"),
        )
        .await;
    world
        .until_condition(
            "victim",
            "EndpointReady",
            "False",
            Some("ControllerMissing"),
        )
        .await;
    let (conditions, versions) = (
        world.conditions("victim").await,
        world.versions("victim").await,
    );

    world.patch_tenant("thief", &hostname(NAME)).await;
    world
        .until_condition("thief", "EndpointReady", "False", Some("HostnameTaken"))
        .await;
    let (_, _, message) = world.condition("thief", "EndpointReady").await.unwrap();
    let owner = format!("{}/victim, which claimed it first", world.namespace);
    assert!(message.contains(&owner), "{message}");
    assert_eq!(world.conditions("victim").await, conditions);
    assert_eq!(world.versions("victim").await, versions);

    // Also after a restart, and the victim is still looked after.
    operator.stop().await;
    let operator = world.start(&[]);
    let replicas = json!({"spec": {"controlPlane": {"deployment": {"replicas": 2}}}});
    world.patch_tenant("victim", &replicas).await;
    world.until_replicas("victim", 2).await;
    world.patch_tenant("thief", &replicas).await;
    world
        .until_condition("thief", "EndpointReady", "False", Some("HostnameTaken"))
        .await;
    let reasons = |all: &[Condition]| -> Vec<_> {
        let reason = |(type_, status, reason, _): &Condition| {
            (type_.clone(), status.clone(), reason.clone())
        };
        all.iter().map(reason).collect()
    };
    let now = world.conditions("victim").await;
    assert_eq!(reasons(&now), reasons(&conditions));
    world
        .until_held(&[(NAME, "victim"), ("own.k8s.example.com", "thief")])
        .await;

    // A name that its holder gives up is the other's.
    world
        .patch_tenant("victim", &hostname("two.k8s.example.com"))
        .await;
    world
        .until_held(&[(NAME, "thief"), ("two.k8s.example.com", "victim")])
        .await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_a_user_writes_into_a_status_is_not_believed() {
    let world = World::new().await;
    let _cloud = world.play_cloud();
    let operator = world.start(&[]);
    world.make_tenant("victim", &behind(NAME)).await;
    world.until_planned("victim").await;
    world.make_tenant("thief", &json!({})).await;
    world.until_planned("thief").await;
    let forged = json!({
        "status": {"exposure": {"mode": "Ingress", "hostname": NAME, "port": 443, "addresses": [],
            "previous": {"mode": "Ingress", "host": NAME, "konnectivityHost": NAME, "port": 443,
                "konnectivityPort": 443}}},
    });
    let params = PatchParams::default();
    let patch = Patch::Merge(&forged);
    world
        .tenants()
        .patch_status("thief", &params, &patch)
        .await
        .unwrap();
    let replicas = json!({"spec": {"controlPlane": {"deployment": {"replicas": 2}}}});
    world.patch_tenant("thief", &replicas).await;
    world.until_replicas("thief", 2).await;
    let objects = world.objects("thief").await;
    let routes: Vec<_> = objects
        .iter()
        .filter(|(_, body)| body["spec"].to_string().contains(NAME))
        .collect();
    assert!(routes.is_empty(), "{routes:?}");
    let status = until("a report on the thief", async || {
        let thief = world.tenants().get("thief").await.unwrap();
        let status = thief.status.unwrap();
        let current = status.observed_generation == thief.metadata.generation;
        if current {
            Ok(status)
        } else {
            Err("an old one")
        }
    })
    .await;
    let endpoint = status.control_plane_endpoint.unwrap();
    assert_eq!(endpoint, "10.40.0.7:6443");
    world.until_held(&[(NAME, "victim")]).await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_first_start_the_tenant_that_uses_a_name_has_it() {
    let world = World::new().await;
    // As a version that knew no records left them: the older only wants what the younger uses.
    world.make_tenant("older", &behind(NAME)).await;
    world.make_tenant("user", &behind(NAME)).await;
    let used = json!({"status": {"exposure": {"mode": "Ingress", "hostname": NAME, "port": 443}}});
    world
        .tenants()
        .patch_status("user", &PatchParams::default(), &Patch::Merge(&used))
        .await
        .unwrap();
    let operator = world.start(&[]);
    world.until_planned("user").await;
    world
        .until_condition("older", "EndpointReady", "False", Some("HostnameTaken"))
        .await;
    world.until_held(&[(NAME, "user")]).await;

    // A tenant that goes leaves nothing behind, and who waited is next.
    world.delete_tenant("user").await;
    world.until_gone("user").await;
    world.until_planned("older").await;
    world.until_held(&[(NAME, "older")]).await;
    operator.kill().await;

    // A claim whose tenant went while nobody looked is stale.
    world.remove_by_hand("older").await;
    let operator = world.start(&[]);
    world.make_tenant("next", &behind(NAME)).await;
    world.until_planned("next").await;
    world.until_held(&[(NAME, "next")]).await;
    operator.stop().await;
}
