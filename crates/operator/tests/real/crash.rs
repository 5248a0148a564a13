//! The crash matrix: the operator is killed at each single write of a creation, an upgrade and a deletion,
//! and started again. The end is always the same.

use serde_json::{Value, json};

use crate::{
    faults::{Fault, Faults},
    harness::{World, until},
};
use steward_operator::run::Extras;

/// What must be the same at the end, whatever happened on the way: which objects, who owns them, what is
/// in them apart from keys and addresses.
async fn shape(world: &World, name: &str) -> Value {
    let mut all: Vec<Value> = Vec::new();
    // Only where a name begins: the namespace has random letters, among which a short name may be found.
    let named = format!("/{name}");
    for (key, object) in world.objects(name).await {
        let data: Vec<String> = object["data"]
            .as_object()
            .map(|data| data.keys().cloned().collect())
            .unwrap_or_default();
        let owner = &object["metadata"]["ownerReferences"][0];
        let containers: Vec<Value> = object["spec"]["template"]["spec"]["containers"]
            .as_array()
            .map(|all| {
                all.iter()
                    .map(|container| json!([container["name"], container["image"]]))
                    .collect()
            })
            .unwrap_or_default();
        all.push(json!({"key": key.replace(&named, "/NAME"), "data": data, "owner": owner["kind"], "containers": containers}));
    }
    let status = world.tenants().get(name).await.unwrap().status.unwrap();
    let conditions: Vec<Value> = status
        .conditions
        .iter()
        .map(|c| json!([c.type_, c.status, c.reason]))
        .collect();
    json!({"objects": all, "conditions": conditions})
}

async fn made(world: &World, name: &str) {
    world.until_planned(name).await;
    world
        .until_condition(name, "ControlPlaneReady", "False", Some("WaitingForPods"))
        .await;
    world
        .until_condition(name, "EndpointReady", "True", None)
        .await;
}

/// Each fault: death before and after every write.
fn faults(writes: usize) -> impl Iterator<Item = Fault> {
    (1..=writes).flat_map(|at| [Fault::DieBefore(at), Fault::DieAfter(at)])
}

/// Runs an operator that dies, then one that does not, until `done` holds. The last writes tell of what has
/// been done (events): whether there is one more of them depends on the order of things, so the first
/// operator may also come to its end alive.
async fn survive(world: &World, fault: Fault, begin: impl AsyncFnOnce(), done: impl AsyncFn()) {
    let faults = Faults::new(fault);
    let client = faults.client(&world.server).await;
    let mut doomed = world.start_with(client, &[], Extras::default());
    begin().await;
    let alive = async {
        done().await;
        doomed.finish().await;
    };
    let died = tokio::select! {
        () = faults.death() => true,
        () = alive => false,
    };
    if died {
        doomed.kill().await;
    }
    let operator = world.start(&[]);
    done().await;
    operator.stop().await;
}

/// How many writes something takes when nothing goes wrong.
async fn count(world: &World, begin: impl AsyncFnOnce(), done: impl AsyncFnOnce()) -> usize {
    let faults = Faults::new(Fault::None);
    let client = faults.client(&world.server).await;
    let operator = world.start_with(client, &[], Extras::default());
    begin().await;
    done().await;
    operator.stop().await;
    faults.writes()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_write_of_a_creation_or_a_deletion_it_ends_the_same() {
    let world = World::new().await;
    let cloud = world.play_cloud();
    let create = async |name: &str| drop(world.make_tenant(name, &json!({})).await);
    let writes = count(
        &world,
        async || create("model").await,
        async || made(&world, "model").await,
    )
    .await;
    let expected = shape(&world, "model").await;
    println!("a creation takes {writes} writes");
    let removal = count(
        &world,
        async || world.delete_tenant("model").await,
        async || world.until_gone("model").await,
    )
    .await;
    println!("a deletion takes {removal} writes");
    world.sweep("model").await;

    for (number, fault) in faults(writes).enumerate() {
        let name = format!("c{number}");
        survive(
            &world,
            fault,
            async || create(&name).await,
            async || made(&world, &name).await,
        )
        .await;
        assert_eq!(shape(&world, &name).await, expected, "{fault:?}");
        world.remove_by_hand(&name).await;
    }
    for (number, fault) in faults(removal).enumerate() {
        let name = format!("d{number}");
        let operator = world.start(&[]);
        create(&name).await;
        made(&world, &name).await;
        operator.stop().await;
        survive(
            &world,
            fault,
            async || world.delete_tenant(&name).await,
            async || world.until_gone(&name).await,
        )
        .await;
        world.sweep(&name).await;
    }
    assert_eq!(
        world.etcd.etcdctl("root", &["user", "list"]).unwrap(),
        "root\n"
    );
    assert_eq!(
        world
            .etcd
            .etcdctl("root", &["get", "/", "--prefix", "--keys-only"])
            .unwrap()
            .trim(),
        ""
    );
    cloud.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_write_of_an_upgrade_it_ends_the_same() {
    let world = World::new().await;
    let cloud = world.play_cloud();
    let upgraded = async |name: &str| {
        until("the new version", async || {
            let objects = world.objects(name).await;
            let deployment = objects
                .iter()
                .find(|(key, _)| key.starts_with("Deployment"))
                .map(|(_, object)| object.to_string());
            match deployment.filter(|text| text.contains("kube-apiserver:v1.36.3")) {
                Some(_) => Ok(()),
                None => Err("the old version"),
            }
        })
        .await;
        world
            .until_condition(name, "ControlPlaneReady", "False", None)
            .await;
    };
    let prepare = async |name: &str| {
        let operator = world.start(&[]);
        world
            .make_tenant(name, &json!({"kubernetes": {"version": "v1.35.4"}}))
            .await;
        made(&world, name).await;
        operator.stop().await;
    };
    let upgrade = async |name: &str| {
        world
            .patch_tenant(
                name,
                &json!({"spec": {"kubernetes": {"version": "v1.36.3"}}}),
            )
            .await;
    };
    prepare("model").await;
    let writes = count(
        &world,
        async || upgrade("model").await,
        async || upgraded("model").await,
    )
    .await;
    println!("an upgrade takes {writes} writes");
    let expected = shape(&world, "model").await["objects"].clone();
    world.remove_by_hand("model").await;
    for (number, fault) in faults(writes).enumerate() {
        let name = format!("u{number}");
        prepare(&name).await;
        survive(
            &world,
            fault,
            async || upgrade(&name).await,
            async || upgraded(&name).await,
        )
        .await;
        assert_eq!(shape(&world, &name).await["objects"], expected, "{fault:?}");
        world.remove_by_hand(&name).await;
    }
    cloud.abort();
}
