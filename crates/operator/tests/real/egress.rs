//! What a tenant's administrator can make the API server dial, with the egress selector that the
//! operator wrote. The attacker names an address of its choice: in a webhook, and as a node's.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use kube::{Client, api::PostParams};
use serde_json::{Value, json};
use steward_lab::fixture::ApiServer;
use tokio::{
    net::{TcpListener, UnixListener},
    task::JoinHandle,
};

use crate::harness::{PATIENCE, World, until};

const SOCKET: &str = "/run/konnectivity/konnectivity-server.socket";

/// Counts who comes, and hangs up.
struct Victim {
    port: u16,
    visits: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Victim {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let visits = Arc::new(AtomicUsize::new(0));
        let count = visits.clone();
        let task = tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { port, visits, task }
    }

    fn visits(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The egress selector that the operator wrote for a tenant.
async fn selector(world: &World, tenant: &str) -> String {
    let objects = world.objects(tenant).await;
    let name = format!("{tenant}-konnectivity-egress-selector-configuration");
    let (_, map) = objects
        .into_iter()
        .find(|(key, _)| key.ends_with(&name))
        .unwrap();
    let text = map["data"]["egress-selector-configuration.yaml"].as_str();
    text.unwrap().to_owned()
}

async fn server(folder: &Path, selector: &str) -> ApiServer {
    let file = folder.join("egress.yaml");
    std::fs::write(&file, selector).unwrap();
    ApiServer::builder()
        .argument(format!("--egress-selector-config-file={}", file.display()))
        .start()
        .await
        .unwrap()
}

async fn post(client: &Client, path: &str, body: &Value) {
    let request = kube::core::Request::new(path)
        .create(&PostParams::default(), body.to_string().into_bytes())
        .unwrap();
    client.request::<Value>(request).await.unwrap();
}

/// A webhook by URL, and a pod on a node whose kubelet is the victim.
async fn lay_bait(server: &ApiServer, port: u16) -> Client {
    let client = server.client().await.unwrap();
    let kubelet = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        },
    });
    post(&client, "/api/v1/nodes", &kubelet).await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p1", "namespace": "default"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "example.com/c"}]},
    });
    post(&client, "/api/v1/namespaces/default/pods", &pod).await;
    let hook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "bait"},
        "webhooks": [{
            "name": "bait.example.com",
            "clientConfig": {"url": format!("https://127.0.0.1:{port}/")},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
            "failurePolicy": "Fail", "sideEffects": "None", "timeoutSeconds": 5,
            "admissionReviewVersions": ["v1"],
        }],
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    post(&client, path, &hook).await;
    client
}

/// What comes of a write that the webhook is asked about.
async fn call_webhook(client: &Client) -> Result<(), String> {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"generateName": "m-", "namespace": "default"},
    });
    let request = kube::core::Request::new("/api/v1/namespaces/default/configmaps")
        .create(&PostParams::default(), map.to_string().into_bytes())
        .unwrap();
    let answer = client.request::<Value>(request).await;
    answer.map(drop).map_err(|error| error.to_string())
}

/// What comes of asking for a pod's log.
async fn call_kubelet(client: &Client) -> Result<(), String> {
    let request = http::Request::get("/api/v1/namespaces/default/pods/p1/log")
        .body(Vec::new())
        .unwrap();
    let answer = client.request_text(request).await;
    answer.map(drop).map_err(|error| error.to_string())
}

/// A webhook counts a moment after it was made.
async fn until_refused(client: &Client) -> String {
    let mut said = String::new();
    until("the webhook to be asked", async || {
        match call_webhook(client).await {
            Ok(()) => Err("not asked yet"),
            Err(error) => {
                said = error;
                Ok(())
            }
        }
    })
    .await;
    said
}

/// Fails unless a call comes to the tunnel before it ends.
async fn came_by<T: std::fmt::Debug>(tunnel: &UnixListener, call: impl Future<Output = T>) {
    tokio::select! {
        biased;
        come = tokio::time::timeout(PATIENCE, tunnel.accept()) => drop(come.unwrap().unwrap()),
        ended = call => panic!("nothing came to the tunnel: {ended:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_the_tenant_names_is_not_dialled_from_here() {
    let world = World::new().await;
    let cloud = world.play_cloud();
    let operator = world.start(&[]);
    let no_tunnel = json!({"addons": {"konnectivity": null}});
    world.make_tenant("shut", &no_tunnel).await;
    world.make_tenant("tunnel", &json!({})).await;
    world.until_planned("shut").await;
    world.until_planned("tunnel").await;
    let shut = selector(&world, "shut").await;
    let tunnel = selector(&world, "tunnel").await;
    operator.stop().await;
    cloud.abort();
    let folder = tempfile::tempdir().unwrap();

    // Without an egress selector the victim is called twice, so that the bait is known to work.
    let victim = Victim::new().await;
    let open = ApiServer::start().await.unwrap();
    let client = lay_bait(&open, victim.port).await;
    until_refused(&client).await;
    let by_webhook = victim.visits();
    assert!(by_webhook > 0);
    call_kubelet(&client).await.unwrap_err();
    assert!(victim.visits() > by_webhook);
    drop(open);

    let victim = Victim::new().await;
    let closed = server(folder.path(), &shut).await;
    let client = lay_bait(&closed, victim.port).await;
    for said in [
        until_refused(&client).await,
        call_kubelet(&client).await.unwrap_err(),
    ] {
        assert!(said.contains("spec.controlPlane.egress"), "{said}");
    }
    assert_eq!(victim.visits(), 0);
    drop(closed);

    // With a tunnel both calls come to its socket, and nowhere else. Here each kind has one of its own,
    // because a call that failed is tried again for a while.
    let victim = Victim::new().await;
    let [kubelets, urls] = ["cluster", "controlplane"].map(|kind| folder.path().join(kind));
    assert_eq!(tunnel.matches(SOCKET).count(), 2, "{tunnel}");
    let tunnel = tunnel
        .replacen(SOCKET, &kubelets.display().to_string(), 1)
        .replacen(SOCKET, &urls.display().to_string(), 1);
    let [kubelets, urls] = [kubelets, urls].map(|path| UnixListener::bind(path).unwrap());
    let tunnelled = server(folder.path(), &tunnel).await;
    let client = lay_bait(&tunnelled, victim.port).await;
    came_by(&urls, until_refused(&client)).await;
    came_by(&kubelets, call_kubelet(&client)).await;
    assert_eq!(victim.visits(), 0);
}
