//! Tenants: their kubeconfigs, out of the management cluster's secrets, and clients
//! made of them.

use std::{
    fs,
    io::Write,
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
};

use http::Uri;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use super::Lab;
use crate::{Error, Forward, cluster, dns};

/// The key of the administrator's kubeconfig in a tenant's secret.
const KEY: &str = "admin.conf";

impl Lab {
    /// A client for a tenant's API server, usable in this process: it dials the
    /// server's address from `client`, as somebody outside would.
    pub async fn tenant_client(&self, namespace: &str, name: &str) -> Result<Client, Error> {
        let path = self.tenant_kubeconfig(namespace, name).await?;
        let text = fs::read_to_string(&path).map_err(Error::files("read", &path))?;
        self.client_for(&text).await
    }

    /// A client for any kubeconfig whose server can be reached from `client`.
    pub async fn client_for(&self, kubeconfig: &str) -> Result<Client, Error> {
        let config = cluster::config(kubeconfig, |server| self.way_to(server)).await?;
        Client::try_from(config).map_err(Error::kubernetes("make a client for the kubeconfig"))
    }

    /// A port of this machine that leads to a server by name or address.
    fn way_to(&self, server: &Uri) -> Result<SocketAddr, Error> {
        let host = server.host().unwrap_or_default();
        let unknown = || {
            Error::Invalid(format!(
                "the lab's name server does not know {host}: tell it with `steward-lab dns set {host} ADDRESS`"
            ))
        };
        let address: Ipv4Addr = match host.parse() {
            Ok(address) => address,
            Err(_) => dns::read(&self.layout)?.find(host).ok_or_else(unknown)?,
        };
        let to = SocketAddr::new(address.into(), server.port_u16().unwrap_or(443));
        Forward::lasting(&self.client_host(), to)
            .map_err(Error::files("open a way to", to.to_string()))
    }

    /// Writes a tenant's kubeconfig where every host can read it.
    pub async fn tenant_kubeconfig(&self, namespace: &str, name: &str) -> Result<PathBuf, Error> {
        let secret = format!("{name}-admin-kubeconfig");
        let secrets = Api::<Secret>::namespaced(self.cluster()?.client().await?, namespace);
        let found = secrets
            .get_opt(&secret)
            .await
            .map_err(Error::kubernetes(format!(
                "read secret {namespace}/{secret}"
            )))?;
        let text = found.and_then(|s| s.data?.remove(KEY)).ok_or_else(|| {
            Error::Invalid(format!(
                "tenant {namespace}/{name} has no kubeconfig yet: secret {secret} with key {KEY} is not there; see `kubectl get tcp -A`"
            ))
        })?;
        let folder = self.layout.folder().join("tenants").join(namespace);
        fs::create_dir_all(&folder).map_err(Error::files("make", &folder))?;
        let path = folder.join(format!("{name}.conf"));
        let mut file = fs::File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .map_err(Error::files("make", &path))?;
        file.write_all(&text.0)
            .map_err(Error::files("write", &path))?;
        Ok(path)
    }
}
