//! A namespace user who wants another tenant's data, or the operator's own credentials.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;
use steward_operator::{run::Extras, tenant::Place};
use tokio::net::TcpListener;

use crate::harness::World;

impl World {
    async fn secret(&self, name: &str) -> Option<Secret> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        api.get_opt(name).await.unwrap()
    }

    fn put(&self, user: &str, key: &str) {
        self.etcd.etcdctl(user, &["put", key, "secret"]).unwrap();
    }

    fn has(&self, key: &str) -> bool {
        let found = self.etcdctl_root(&["get", key]);
        found.contains("secret")
    }

    fn etcdctl_root(&self, words: &[&str]) -> String {
        self.etcd.etcdctl("root", words).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_neighbour_s_names_in_the_datastore_give_nothing_and_their_loss_takes_nothing() {
    let world = World::new().await;
    let cloud = world.play_cloud();
    let operator = world.start(&[]);
    let victim = world.make_tenant("victim", &json!({})).await;
    world.until_planned("victim").await;
    let uid = victim.metadata.uid.unwrap();
    world.put(&uid, &format!("/{uid}/registry/a"));

    for (thief, names) in [
        ("thief-user", json!({"dataStoreUsername": uid})),
        ("thief-schema", json!({"dataStoreSchema": uid})),
    ] {
        world.make_tenant(thief, &names).await;
        world
            .until_condition(thief, "DatastoreReady", "False", Some("DatastoreNameTaken"))
            .await;
        let (_, _, message) = world.condition(thief, "DatastoreReady").await.unwrap();
        assert!(message.contains("victim"), "{message}");
        let credentials = format!("{thief}-datastore-certificate");
        assert!(world.secret(&credentials).await.is_none(), "{credentials}");
        world.delete_tenant(thief).await;
        world.until_gone(thief).await;
    }
    assert!(world.has(&format!("/{uid}/registry/a")));
    // The victim's own credentials still open its data.
    let kept = world
        .etcd
        .etcdctl(&uid, &["get", &format!("/{uid}/registry/a")]);
    assert!(kept.unwrap().contains("secret"));

    world.delete_tenant("victim").await;
    world.until_gone("victim").await;
    assert!(!world.has(&format!("/{uid}/registry/a")));
    let left = world.etcdctl_root(&["get", "steward", "--prefix", "--keys-only"]);
    assert_eq!(left.trim(), "", "records are left behind");
    operator.stop().await;
    cloud.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kubeconfig_that_a_user_wrote_is_not_followed() {
    let world = World::new().await;
    let cloud = world.play_cloud();
    // Where the attacker would like to see the operator, and where the tenant should be.
    let trap = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let real = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let trap_port = trap.local_addr().unwrap().port();
    let real_port = real.local_addr().unwrap().port();
    let (trapped, reached) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    for (listener, count) in [(trap, trapped.clone()), (real, reached.clone())] {
        tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    let extras = Extras {
        dial: Some(Arc::new(move |_| {
            Some(Place {
                url: format!("https://127.0.0.1:{real_port}").parse().ok()?,
                server_name: None,
            })
        })),
        ..Extras::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let proof = folder.path().join("the-operator-ran-this");
    let operator = world.start_with(world.client.clone(), &[], extras);
    world.make_tenant("thief", &json!({})).await;
    world.until_planned("thief").await;
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\n\
         contexts: [{{name: x, context: {{cluster: x, user: x}}}}]\n\
         clusters: [{{name: x, cluster: {{server: 'https://127.0.0.1:{trap_port}', insecure-skip-tls-verify: true}}}}]\n\
         users: [{{name: x, user: {{tokenFile: /etc/hostname, exec: {{apiVersion: client.authentication.k8s.io/v1, \
         interactiveMode: Never, command: touch, args: ['{}']}}}}}}]\n",
        proof.display()
    );
    let api: Api<Secret> = Api::namespaced(world.client.clone(), &world.namespace);
    let entries = ["super-admin.svc", "admin.conf", "mine"].map(|key| (key, kubeconfig.clone()));
    let entries: std::collections::BTreeMap<_, _> = entries.into();
    let patch = json!({"stringData": entries});
    api.patch(
        "thief-admin-kubeconfig",
        &PatchParams::default(),
        &Patch::Merge(&patch),
    )
    .await
    .unwrap();
    world
        .patch_tenant(
            "thief",
            &json!({"metadata": {"annotations": {"steward.butlerlabs.dev/kubeconfig-secret-key": "mine"}}}),
        )
        .await;
    world.run_pods("thief").await;
    crate::harness::until("the operator to dial the tenant", async || {
        match reached.load(Ordering::SeqCst) {
            0 => Err("not yet"),
            _ => Ok(()),
        }
    })
    .await;
    assert_eq!(
        trapped.load(Ordering::SeqCst),
        0,
        "the attacker was dialled"
    );
    assert!(!proof.exists(), "the attacker's program ran");
    operator.stop().await;
    cloud.abort();
}
