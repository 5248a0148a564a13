//! Tenants behind a shared front door: who has a name, what the front door shows, and what a
//! Gateway says of a route.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use k8s_openapi::{
    api::{core::v1::Secret, events::v1::Event},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use serde_json::{Value, json};
use steward_lab::{
    parts::{self, Part},
    progress::Progress,
};
use tokio_rustls::TlsAcceptor;

use crate::harness::{World, until};

fn behind(hostname: &str, port: u16) -> Value {
    json!({"controlPlane": {"service": {"serviceType": "ClusterIP"},
        "ingress": {"hostname": hostname, "port": port, "ingressClassName": "steward", "controllerType": "steward"}}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_tenants_with_one_hostname_the_older_keeps_it_until_it_goes() {
    let world = World::new().await;
    let operator = world.start(&[]);
    let spec = behind("one.k8s.example.com", 443);
    let old = world.make_tenant("old", &spec).await;
    world.until_planned("old").await;
    // Ages are told in whole seconds.
    let born = old.metadata.creation_timestamp.unwrap().0;
    until("the next second", async || {
        let age = jiff::Timestamp::now().duration_since(born).as_secs();
        if age > 1 { Ok(()) } else { Err("too soon") }
    })
    .await;
    world.make_tenant("young", &spec).await;
    world
        .until_condition("young", "EndpointReady", "False", Some("HostnameTaken"))
        .await;
    let (_, _, message) = world.condition("young", "EndpointReady").await.unwrap();
    let owner = format!("{}/old", world.namespace);
    assert!(message.contains(&owner), "{message}");
    let events: Api<Event> = Api::namespaced(world.client.clone(), &world.namespace);
    until("an event that names the other", async || {
        let all = events.list(&ListParams::default()).await.unwrap().items;
        let told = all.iter().any(|event| {
            let note = event.note.as_deref().unwrap_or_default();
            note.contains("HostnameTaken") && note.contains(&owner)
        });
        if told { Ok(()) } else { Err("none") }
    })
    .await;
    assert!(world.objects("young").await.is_empty(), "it gets nothing");

    world.delete_tenant("old").await;
    world.until_gone("old").await;
    world.until_planned("young").await;
    operator.stop().await;
}

/// A server on loopback that shows whatever certificate it was last given.
struct Door {
    address: SocketAddr,
    shown: Arc<Mutex<Arc<rustls::ServerConfig>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Door {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Door {
    async fn open(certificate: &str, key: &str) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shown = Arc::new(Mutex::new(config(certificate, key)));
        let current = Arc::clone(&shown);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let config = Arc::clone(&current.lock().unwrap());
                tokio::spawn(async move {
                    let _ = TlsAcceptor::from(config).accept(stream).await;
                });
            }
        });
        Self {
            address,
            shown,
            task,
        }
    }

    fn show(&self, certificate: &str, key: &str) {
        *self.shown.lock().unwrap() = config(certificate, key);
    }
}

fn config(certificate: &str, key: &str) -> Arc<rustls::ServerConfig> {
    let chain = CertificateDer::pem_slice_iter(certificate.as_bytes());
    let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let config = rustls::ServerConfig::builder().with_no_client_auth();
    Arc::new(config.with_single_cert(chain, key).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_front_door_is_judged_by_the_certificate_it_shows() {
    let world = World::new().await;
    // A neighbour's certificate will do for a front door that opens TLS itself.
    let operator = world.start(&[]);
    world
        .make_tenant("other", &behind("other.steward.invalid", 443))
        .await;
    let (wrong, wrong_key) = certificate(&world, "other").await;
    let door = Door::open(&wrong, &wrong_key).await;

    let spec = behind("shown.steward.invalid", door.address.port());
    world.make_tenant("shown", &spec).await;
    world
        .until_condition("shown", "EndpointReady", "False", Some("ControllerMissing"))
        .await;
    world.run_pods("shown").await;
    let found_at = json!({"status": {"loadBalancer": {"ingress": [{"ip": "127.0.0.1"}]}}});
    patch_status(
        &world,
        "networking.k8s.io/v1",
        "ingresses",
        "shown",
        &found_at,
    )
    .await;
    let class = json!({"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass",
        "metadata": {"name": "steward"}, "spec": {"controller": "steward.butlerlabs.dev/gateway"}});
    let classes: Api<k8s_openapi::api::networking::v1::IngressClass> =
        Api::all(world.client.clone());
    let apply = PatchParams::apply("test");
    classes
        .patch("steward", &apply, &Patch::Apply(&class))
        .await
        .unwrap();
    world
        .until_condition("shown", "EndpointReady", "False", Some("TlsTerminated"))
        .await;

    // Its own certificate, under a name that is in no DNS: it works, and is told.
    let (right, right_key) = certificate(&world, "shown").await;
    door.show(&right, &right_key);
    world
        .until_condition(
            "shown",
            "EndpointReady",
            "True",
            Some("HostnameNotResolved"),
        )
        .await;

    // Nobody tells us when it goes wrong again; a change of the tenant makes us look.
    door.show(&wrong, &wrong_key);
    let patch =
        json!({"spec": {"controlPlane": {"access": {"allowedSourceRanges": ["192.0.2.0/24"]}}}});
    world.patch_tenant("shown", &patch).await;
    world
        .until_condition("shown", "EndpointReady", "False", Some("TlsTerminated"))
        .await;
    operator.stop().await;
}

async fn certificate(world: &World, tenant: &str) -> (String, String) {
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.namespace);
    let name = format!("{tenant}-api-server-certificate");
    let mut found = (String::new(), String::new());
    until(&name, async || {
        let data = secrets.get(&name).await.map_err(|e| e.to_string())?.data;
        let data = data.ok_or("empty")?;
        let text = |key: &str| String::from_utf8(data[key].0.clone()).unwrap();
        found = (text("apiserver.crt"), text("apiserver.key"));
        Ok::<(), String>(())
    })
    .await;
    found
}

/// Plays the controller of a front door.
async fn patch_status(world: &World, version: &str, plural: &str, name: &str, patch: &Value) {
    let path = format!("/apis/{version}/namespaces/{}/{plural}", world.namespace);
    until(&format!("{plural} {name}"), async || {
        let request = kube::core::Request::new(&path)
            .patch_subresource(
                "status",
                name,
                &PatchParams::default(),
                &Patch::Merge(patch),
            )
            .unwrap();
        let written = world.client.request::<Value>(request).await;
        written.map(drop).map_err(|error| error.to_string())
    })
    .await;
}

async fn install_gateway_api(world: &World) {
    let options = parts::Options::from_env().unwrap();
    let programs = parts::ensure(Part::Crds, &options, &Progress::stderr()).unwrap();
    let file = programs
        .share()
        .unwrap()
        .join("gateway-api/gateway.networking.k8s.io_tlsroutes.yaml");
    let text = std::fs::read_to_string(file).unwrap();
    let crd: Value = serde_saphyr::from_str(&text).unwrap();
    let crds: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let apply = PatchParams::apply("test");
    let name = "tlsroutes.gateway.networking.k8s.io";
    crds.patch(name, &apply, &Patch::Apply(&crd)).await.unwrap();
    until("TLSRoutes to be served", async || {
        let version = "gateway.networking.k8s.io/v1";
        let served = world.client.list_api_group_resources(version).await;
        served.map(drop).map_err(|error| error.to_string())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_gateway_says_against_a_route_is_in_the_condition() {
    let world = World::new().await;
    let operator = world.start(&[]);
    let spec = json!({"controlPlane": {"service": {"serviceType": "ClusterIP"},
        "gateway": {"hostname": "g.k8s.example.com", "parentRefs": [{"name": "front", "namespace": "infra"}]}}});
    world.make_tenant("routed", &spec).await;
    world
        .until_condition(
            "routed",
            "EndpointReady",
            "False",
            Some("ControllerMissing"),
        )
        .await;
    operator.stop().await;

    install_gateway_api(&world).await;
    let operator = world.start(&[]);
    world.until_planned("routed").await;
    world
        .until_condition("routed", "EndpointReady", "False", Some("WaitingForRoute"))
        .await;
    let refusal = json!({"status": {"parents": [{
        "controllerName": "example.com/gateway",
        "parentRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "front", "namespace": "infra"},
        "conditions": [{"type": "Accepted", "status": "False", "reason": "NotAllowedByListeners",
            "message": "no listener admits this namespace", "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1}]}]}});
    let version = "gateway.networking.k8s.io/v1";
    patch_status(&world, version, "tlsroutes", "routed", &refusal).await;
    world
        .until_condition("routed", "EndpointReady", "False", Some("RouteNotAccepted"))
        .await;
    let (_, _, message) = world.condition("routed", "EndpointReady").await.unwrap();
    assert!(message.contains("no listener admits"), "{message}");

    // Somebody else's tenant goes on.
    let cloud = world.play_cloud();
    world.make_tenant("plain", &json!({})).await;
    world.until_planned("plain").await;
    cloud.abort();
    operator.stop().await;
}
