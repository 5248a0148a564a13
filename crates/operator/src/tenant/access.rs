//! How a tenant's API server is dialled: which address, which name is verified, with which credentials.

use std::time::Duration;

use http::Uri;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use crate::{apply::owned, client::client, error::Error};

/// A tenant whose API server is not there is known to be so after this.
const CONNECT: Duration = Duration::from_secs(5);

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
        config.tls_server_name.clone_from(&self.server_name);
        config.connect_timeout = Some(CONNECT);
        // Whether to try again is for the reconcile to say.
        config.default_retry = false;
        client(config).map_err(|error| unusable(error.to_string()))
    }
}
