//! Kubeconfigs of tenants, out of the management cluster's secrets.

use std::{fs, io::Write, os::unix::fs::OpenOptionsExt, path::PathBuf};

use k8s_openapi::api::core::v1::Secret;
use kube::Api;

use super::Lab;
use crate::Error;

/// The key of the administrator's kubeconfig in a tenant's secret.
const KEY: &str = "admin.conf";

impl Lab {
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
