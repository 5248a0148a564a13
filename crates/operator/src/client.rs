//! How API servers are dialled: with one HTTP/2 connection each.
//!
//! Owns: TLS, timeouts, keepalive and buffers of that connection. kube's own client speaks HTTP/1.1: a connection, with
//! its handshake and its buffers at both ends, for every watch and for every request that is under way.

use std::time::Duration;

use http::uri::Scheme;
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::connect::HttpConnector,
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder, ConfigExt, retry::RetryPolicy},
};
use rustls::client::Resumption;
use tower::{BoxError, ServiceBuilder, retry::RetryLayer, util::MapRequestLayer};

use crate::lease::fence;

/// A silent connection is tried this often, and given up after the time that a new one may take.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Unless the configuration says how long a new connection may take.
const CONNECT: Duration = Duration::from_secs(15);

/// What a server may send on one stream, and on all of them, before anybody reads it. Servers of tenants can't be
/// trusted to send only what was asked for.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;

/// Of one answer.
const HEADERS: u32 = 16 << 10;

/// A client of the API server that the configuration names.
///
/// # Errors
/// What is wrong with the configuration.
pub fn client(config: Config) -> Result<Client, BoxError> {
    // Rare ways are left to kube: proxies, plain HTTP, and credentials that a program hands out.
    let plain = config.cluster_url.scheme() != Some(&Scheme::HTTPS);
    if plain || config.proxy_url.is_some() || config.auth_info.exec.is_some() {
        // Its retries would come after the limit.
        let mut config = config;
        config.default_retry = false;
        let limit = MapRequestLayer::new(fence::limit::<Body>);
        return Ok(ClientBuilder::try_from(config)?.with_layer(&limit).build());
    }
    let patience = config.connect_timeout.unwrap_or(CONNECT);
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_connect_timeout(Some(patience));
    tcp.set_keepalive(Some(KEEP_ALIVE));
    // What the server has not received by then it must never receive.
    tcp.set_tcp_user_timeout(Some(fence::ON_THE_WIRE));
    // A request is several small frames: the second must not wait for the first one's acknowledgement.
    tcp.set_nodelay(true);
    let mut tls = config.rustls_client_config()?;
    // There is one connection, and it lasts: what it would take to resume it is not worth its memory.
    tls.resumption = Resumption::disabled();
    let mut https = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_only();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into()?;
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let http = hyper_util::client::legacy::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(KEEP_ALIVE)
        .http2_keep_alive_timeout(patience)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .http2_max_header_list_size(HEADERS)
        .build(https.enable_all_versions().wrap_connector(tcp));
    let retry = RetryLayer::new(RetryPolicy::server_retry());
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.default_retry.then_some(retry))
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_request(fence::limit::<Body>)
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(service, config.default_namespace))
}
