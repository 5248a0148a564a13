//! The way to a tenant's API server that no front door and no name server is on: the
//! management cluster forwards a port to one of its pods.
//!
//! For looking only: what people use is the public way, and that is what is judged.

use std::sync::Arc;

use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use kube::client::ConfigExt as _;
use kube::{Client, ResourceExt};
use rustls::pki_types::ServerName;
use steward_doctor::{Seen, Unseen};
use tower::ServiceBuilder;

use super::unseen;
use crate::cluster::Management;

/// A name that every API server's certificate has.
const NAME: &str = "kubernetes.default.svc";

/// A client of the tenant that goes through the management cluster.
pub(super) async fn client(cluster: &Management, tenant: &str) -> Seen<Client> {
    let failed = |what: String| Unseen::NotLooked(what);
    let config = cluster.tenant_config(tenant).await;
    let config = config.map_err(|e| failed(e.to_string()))?;
    let mut tls = config
        .rustls_client_config()
        .map_err(|e| failed(e.to_string()))?;
    tls.alpn_protocols = vec![b"h2".to_vec()];

    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let (pod, port) = serving(&pods, tenant).await?;
    let mut forwarder = pods
        .portforward(&pod, &[port])
        .await
        .map_err(|e| unseen(&e))?;
    let stream = forwarder
        .take_stream(port)
        .ok_or_else(|| failed("the port was not forwarded".to_owned()))?;
    let name = ServerName::try_from(NAME).map_err(|e| failed(e.to_string()))?;
    let stream = tokio_rustls::TlsConnector::from(Arc::new(tls))
        .connect(name, stream)
        .await
        .map_err(|e| failed(format!("TLS to pod {pod}: {e}")))?;
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .map_err(|e| failed(format!("HTTP to pod {pod}: {e}")))?;
    tokio::spawn(connection);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .service(tower::service_fn(move |request| {
            let mut sender = sender.clone();
            async move {
                sender.ready().await?;
                sender.send_request(request).await
            }
        }));
    Ok(Client::new(service, "default"))
}

/// A pod whose API server runs, and its port: a ready one if there is any.
async fn serving(pods: &Api<Pod>, tenant: &str) -> Seen<(String, u16)> {
    let wanted = ListParams::default().labels(&format!("steward.butlerlabs.dev/name={tenant}"));
    let found = pods.list(&wanted).await.map_err(|e| unseen(&e))?;
    let candidates = found.iter().filter_map(|pod| {
        let status = pod.status.as_ref()?;
        let server = status.container_statuses.iter().flatten().find(|c| {
            c.name == "kube-apiserver" && c.state.as_ref().is_some_and(|s| s.running.is_some())
        })?;
        Some((server.ready, pod.name_any(), port(pod)?))
    });
    let best = candidates.max_by_key(|(ready, _, _)| *ready);
    let (_, pod, port) =
        best.ok_or_else(|| Unseen::NotLooked("no pod of its API server runs".to_owned()))?;
    Ok((pod, port))
}

fn port(pod: &Pod) -> Option<u16> {
    let containers = &pod.spec.as_ref()?.containers;
    let server = containers.iter().find(|c| c.name == "kube-apiserver")?;
    let port = server.ports.iter().flatten().next()?.container_port;
    u16::try_from(port).ok()
}
