//! Inside a tenant: its own kube-apiserver, started from the very Secrets the operator made, on the
//! tenant's own corner of the datastore.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
};

use futures::future::join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::{Value, json};
use steward_api::{metadata::labels, tenant_control_plane::TenantState};
use steward_lab::{
    parts::{self, Options, Part, Release},
    progress::Progress,
};
use steward_operator::{
    apply::{Cluster, Engine},
    metrics::Metrics,
    observe::{inside_selector, secret_text},
    run::Extras,
    tenant::{Identity, Place, Target},
};
use steward_pki::Pair;
use steward_plan::{Kind, Live, names::PROJECT};

use crate::{
    harness::{World, until},
    programs::free_port,
};

/// A tenant's API server.
struct TenantServer {
    folder: tempfile::TempDir,
    arguments: Vec<String>,
    child: Option<Child>,
}

impl TenantServer {
    /// Writes the tenant's Secrets to files and starts a kube-apiserver on them.
    async fn start(world: &World, name: &str, uid: &str, port: u16) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (key, object) in world.objects(name).await {
            let Some(secret) = key
                .strip_prefix("Secret ")
                .and_then(|key| key.split('/').nth(1))
            else {
                continue;
            };
            for entry in object["data"]
                .as_object()
                .into_iter()
                .flat_map(|data| data.keys())
            {
                let text = secret_text(&object, entry).unwrap();
                std::fs::write(folder.path().join(format!("{secret}.{entry}")), text).unwrap();
            }
        }
        let file = |secret: &str, entry: &str| {
            folder
                .path()
                .join(format!("{name}-{secret}.{entry}"))
                .display()
                .to_string()
        };
        let arguments = vec![
            format!("--etcd-servers=https://{}", world.etcd.endpoint),
            format!("--etcd-prefix=/{uid}"),
            format!("--etcd-cafile={}", file("datastore-certificate", "ca.crt")),
            format!(
                "--etcd-certfile={}",
                file("datastore-certificate", "server.crt")
            ),
            format!(
                "--etcd-keyfile={}",
                file("datastore-certificate", "server.key")
            ),
            "--etcd-compaction-interval=0".into(),
            "--bind-address=127.0.0.1".into(),
            "--advertise-address=127.0.0.1".into(),
            format!("--secure-port={port}"),
            format!(
                "--tls-cert-file={}",
                file("api-server-certificate", "apiserver.crt")
            ),
            format!(
                "--tls-private-key-file={}",
                file("api-server-certificate", "apiserver.key")
            ),
            format!("--client-ca-file={}", file("ca", "ca.crt")),
            format!(
                "--service-account-key-file={}",
                file("sa-certificate", "sa.pub")
            ),
            format!(
                "--service-account-signing-key-file={}",
                file("sa-certificate", "sa.key")
            ),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local".into(),
            "--service-cluster-ip-range=10.96.0.0/16".into(),
            "--authorization-mode=Node,RBAC".into(),
            "--allow-privileged=true".into(),
            "--endpoint-reconciler-type=none".into(),
            format!("--cert-dir={}", folder.path().display()),
        ];
        let mut server = Self {
            folder,
            arguments,
            child: None,
        };
        server.run();
        server
    }

    fn run(&mut self) {
        let options = Options::from_env().unwrap();
        let kubernetes = parts::ensure(
            Part::Kubernetes(Release::default()),
            &options,
            &Progress::stderr(),
        )
        .unwrap();
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        let child = Command::new(kubernetes.path("kube-apiserver").unwrap())
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stderr(log)
            .spawn();
        self.child = Some(child.unwrap());
    }

    fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for TenantServer {
    fn drop(&mut self) {
        self.stop();
        if std::thread::panicking() {
            let log = std::fs::read_to_string(Path::new(self.folder.path()).join("log"))
                .unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!(
                "the tenant's API server said last:\n{}",
                lines[lines.len().saturating_sub(8)..].join("\n")
            );
        }
    }
}

fn place(namespace: &str, port: u16) -> Option<Place> {
    Some(Place {
        url: format!("https://127.0.0.1:{port}").parse().ok()?,
        server_name: Some(format!("blue.{namespace}.svc")),
    })
}

/// A client with all rights inside the tenant.
fn admin(authority: &Value, namespace: &str, port: u16) -> Client {
    let target = Target {
        place: place(namespace, port).unwrap(),
        authority: Pair {
            certificate: secret_text(authority, "ca.crt").unwrap(),
            key: secret_text(authority, "ca.key").unwrap(),
        },
    };
    target.client(Identity::Granting).unwrap()
}

const KINDS: [Kind; 9] = [
    Kind::ConfigMap,
    Kind::ServiceAccount,
    Kind::Role,
    Kind::RoleBinding,
    Kind::ClusterRole,
    Kind::ClusterRoleBinding,
    Kind::Deployment,
    Kind::DaemonSet,
    Kind::Service,
];

async fn ours(engine: &Engine) -> Live {
    engine
        .list(&KINDS, None, &inside_selector())
        .await
        .unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_kubeadm_expects_is_inside_and_stays_as_it_should_be() {
    let world = World::new().await;
    let cloud = world.play_cloud();
    let port = free_port();
    let namespace = world.namespace.clone();
    let extras = Extras {
        dial: Some(Arc::new(move |_| place(&namespace, port))),
        ..Extras::default()
    };
    let operator = world.start_with(world.client.clone(), &[], extras);
    let tenant = world.make_tenant("blue", &json!({})).await;
    world.until_planned("blue").await;
    let mut server =
        TenantServer::start(&world, "blue", tenant.metadata.uid.as_ref().unwrap(), port).await;
    world.run_pods("blue").await;

    let authority = world
        .objects("blue")
        .await
        .into_iter()
        .find(|(key, _)| key.ends_with("blue-ca"))
        .unwrap()
        .1;
    let client = admin(&authority, &world.namespace, port);
    let engine = Engine::new(client.clone(), Cluster::Tenant, Metrics::default());
    for (place, name) in [
        ("kube-system", "kubeadm-config"),
        ("kube-system", "kubelet-config"),
        ("kube-public", "cluster-info"),
        ("kube-system", "coredns"),
    ] {
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), place);
        until(name, async || api.get(name).await.map(drop)).await;
    }
    world
        .until_condition("blue", "AddonsReady", "True", None)
        .await;

    let before = ours(&engine).await;
    assert!(
        before.0.len() > 20,
        "{:?}",
        before.0.keys().map(ToString::to_string).collect::<Vec<_>>()
    );
    for (key, object) in &before.0 {
        let path = steward_operator::apply::path(key.kind, key.namespace.as_deref());
        let params = kube::api::PatchParams {
            field_manager: Some("kubectl-edit".into()),
            ..Default::default()
        };
        let patch = kube::api::Patch::Merge(
            json!({"metadata": {"labels": {"steward.butlerlabs.dev/project": null}}}),
        );
        let request = kube::core::Request::new(path)
            .patch(&key.name, &params, &patch)
            .unwrap();
        client.request::<Value>(request).await.unwrap();
        until(&format!("{key} to be put right"), async || {
            if ours(&engine).await.0.contains_key(key) {
                Ok(())
            } else {
                Err("still edited")
            }
        })
        .await;
        engine.delete(key, None).await.unwrap();
        until(&format!("{key} to come back"), async || {
            match ours(&engine).await.0.get(key) {
                Some(found) if found["metadata"]["uid"] != object["metadata"]["uid"] => Ok(()),
                _ => Err("still gone"),
            }
        })
        .await;
    }

    limits_that_are_lifted_come_back(&world, &engine).await;

    // Without it the others go on, and it heals when it is back.
    server.stop();
    world.make_tenant("other", &json!({})).await;
    world.until_planned("other").await;
    world
        .patch_tenant("blue", &json!({"metadata": {"annotations": {"poke": "1"}}}))
        .await;
    world
        .until_condition("blue", "AddonsReady", "False", None)
        .await;
    server.run();
    world
        .until_condition("blue", "AddonsReady", "True", None)
        .await;
    flood(&world, &client).await;
    operator.stop().await;
    cloud.abort();
}

/// A tenant's administrator puts our label on more than there should be: that is said about this tenant, and is over
/// when it is over.
async fn flood(world: &World, client: &Client) {
    const MANY: usize = 520;
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    for start in (0..MANY).step_by(20) {
        join_all((start..start + 20).map(async |number| {
            let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
                "name": format!("flood-{number}"), "labels": {labels::PROJECT: PROJECT, "flood": "yes"}}});
            let object = serde_json::from_value(body).unwrap();
            api.create(&PostParams::default(), &object).await.unwrap();
        }))
        .await;
    }
    world
        .until_condition("blue", "AddonsReady", "False", Some("TooMuchInside"))
        .await;
    let (_, _, message) = world.condition("blue", "AddonsReady").await.unwrap();
    assert!(message.contains("more than 500 configmaps"), "{message}");
    let all = ListParams::default().labels("flood=yes");
    api.delete_collection(&DeleteParams::default(), &all)
        .await
        .unwrap();
    world
        .until_condition("blue", "AddonsReady", "True", None)
        .await;
}

/// The tenant's administrator deletes the policy and its binding. Both come back, and the tenant's owner reads of it.
async fn limits_that_are_lifted_come_back(world: &World, engine: &Engine) {
    let limits = json!({"spec": {"writePermissions": {"blockCreation": true}}});
    world.patch_tenant("blue", &limits).await;
    until("the limits to be reported", async || {
        let status = world.tenants().get("blue").await.unwrap().status;
        let state = status.and_then(|status| status.kubernetes_resources?.version);
        match state.map(|version| version.status) {
            Some(TenantState::WriteLimited) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    let kinds = [
        Kind::ValidatingAdmissionPolicy,
        Kind::ValidatingAdmissionPolicyBinding,
    ];
    let policies = async || {
        let found = engine.list(&kinds, None, &inside_selector()).await;
        found.unwrap_or_default().0
    };
    let before = policies().await;
    assert_eq!(before.len(), 2);
    for (key, object) in before {
        engine.delete(&key, None).await.unwrap();
        until(&format!("{key} to come back"), async || {
            match policies().await.get(&key) {
                Some(found) if found["metadata"]["uid"] != object["metadata"]["uid"] => Ok(()),
                _ => Err("still gone"),
            }
        })
        .await;
    }
    let path = format!(
        "/apis/events.k8s.io/v1/namespaces/{}/events",
        world.namespace
    );
    until("the event", async || {
        let request = http::Request::get(&path).body(Vec::new()).unwrap();
        let events: Value = world.client.request(request).await.unwrap();
        let all = events["items"].as_array().unwrap().iter();
        let told = |event: &&Value| event["reason"] == "WritePermissionsRestored";
        all.clone().find(told).map(drop).ok_or_else(|| {
            let reasons: Vec<_> = all.map(|event| event["reason"].clone()).collect();
            format!("{reasons:?}")
        })
    })
    .await;
}
