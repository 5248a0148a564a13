//! How a tenant's API server is dialled: which address, which name is verified, with which credentials.

use http::Uri;
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::connect::HttpConnector,
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Client, Config,
    client::ConfigExt,
    config::{KubeConfigOptions, Kubeconfig},
};
use rustls::client::Resumption;
use std::time::Duration;
use tower::ServiceBuilder;

use crate::{apply::owned, error::Error};

/// A tenant whose API server is not there is known to be so after this.
const CONNECT: Duration = Duration::from_secs(5);
/// A silent connection is tried this often, and given up after [`CONNECT`].
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Where and as whom a tenant is dialled.
#[derive(Clone)]
pub struct Target {
    /// What is dialled.
    pub url: Uri,
    /// The name its certificate must have, when not that of the URL.
    pub server_name: Option<String>,
    /// Kubeconfig with the credentials; its address is not used.
    pub kubeconfig: String,
}

impl Target {
    /// Changes with address or credentials.
    pub fn fingerprint(&self) -> String {
        let parts = serde_json::json!([self.url.to_string(), self.server_name, self.kubeconfig]);
        owned::digest(&parts)
    }

    /// A client that keeps one HTTP/2 connection, so that a dozen watches cost one.
    ///
    /// # Errors
    /// When the kubeconfig can't be used.
    pub async fn client(&self) -> Result<Client, Error> {
        let unusable = |reason: String| Error::TenantAccess {
            reason: format!(
                "its super-admin kubeconfig can't be used: {reason}; delete the Secret to have it made anew"
            ),
        };
        let kubeconfig =
            Kubeconfig::from_yaml(&self.kubeconfig).map_err(|error| unusable(error.to_string()))?;
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(|error| unusable(error.to_string()))?;
        config.cluster_url = self.url.clone();
        let mut tls = config
            .rustls_client_config()
            .map_err(|error| unusable(error.to_string()))?;
        // There is one connection, to one server.
        tls.resumption = Resumption::in_memory_sessions(1);
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT));
        tcp.set_keepalive(Some(KEEP_ALIVE));
        let mut https = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_only();
        if let Some(name) = &self.server_name {
            let name = name
                .clone()
                .try_into()
                .map_err(|_| unusable(format!("`{name}` is no server name")))?;
            https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
        }
        let http = hyper_util::client::legacy::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .http2_only(true)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .http2_keep_alive_timeout(CONNECT)
            .build(https.enable_http2().wrap_connector(tcp));
        let service = ServiceBuilder::new()
            .layer(config.base_uri_layer())
            .service(http);
        Ok(Client::new(service, "default"))
    }
}
