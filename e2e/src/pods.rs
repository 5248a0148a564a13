//! A pod inside a tenant that does as it is told.

use anyhow::{Result, bail};

use crate::stage::wait_for;
use crate::tenant::Tenant;

/// Where a pod finds its own credentials.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// A running pod.
pub struct Pod<'t> {
    tenant: &'t Tenant,
    name: String,
}

impl<'t> Pod<'t> {
    pub(crate) fn new(tenant: &'t Tenant, name: &str) -> Self {
        Self {
            tenant,
            name: name.to_owned(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `kubectl exec`: goes from the client by hostname to the API server, and from
    /// there through konnectivity to the kubelet.
    pub async fn exec(&self, words: &[&str]) -> Result<String> {
        let mut command = vec!["exec", self.name.as_str(), "--"];
        command.extend(words);
        self.tenant.kubectl(&command).await
    }

    /// Asks its own API server as any program in a pod would: by the Service's name,
    /// with the mounted token and CA. Retried while the network is still coming up.
    pub async fn ask_api(&self, path: &str) -> Result<String> {
        let script = format!(
            "curl -sS --max-time 10 --cacert {ACCOUNT}/ca.crt -H \"Authorization: Bearer $(cat {ACCOUNT}/token)\" -w '\\n%{{http_code}} %{{http_version}}' https://kubernetes.default.svc{path}"
        );
        wait_for(
            &format!("an answer from https://kubernetes.default.svc{path}"),
            120,
            async || {
                let answer = self.exec(&["sh", "-c", &script]).await?;
                if answer.trim_end().ends_with("200 2") {
                    Ok(answer)
                } else {
                    bail!("{answer}")
                }
            },
        )
        .await
    }
}
