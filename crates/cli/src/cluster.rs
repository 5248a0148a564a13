//! The two clusters a command talks to: the management cluster, and a tenant.
//!
//! Owns connecting, finding a tenant, and its kubeconfig.

mod harmless;

use std::path::Path;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DynamicObject, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Config, ResourceExt};
use steward_api::TenantControlPlane;

use crate::args::Cli;
use crate::problem::Problem;

/// How long to wait for a connection: a person is waiting.
const CONNECT: std::time::Duration = std::time::Duration::from_secs(5);

/// The management cluster as one user sees it.
pub struct Management {
    /// A client.
    pub client: Client,
    /// The namespace to work in.
    pub namespace: String,
}

impl Management {
    /// Connects as kubectl would.
    pub async fn connect(cli: &Cli) -> Result<Self, Problem> {
        let mut config = configuration(cli).await?;
        config.connect_timeout = Some(CONNECT);
        let namespace = cli
            .namespace
            .clone()
            .unwrap_or_else(|| config.default_namespace.clone());
        let client = Client::try_from(config).map_err(|e| Problem::NoCluster(e.to_string()))?;
        Ok(Self { client, namespace })
    }

    /// Tenants of our namespace.
    pub fn tenants(&self) -> Api<TenantControlPlane> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// One tenant, or a sentence with the names that look like it.
    pub async fn tenant(&self, name: &str) -> Result<TenantControlPlane, Problem> {
        let found = self.tenants().get_opt(name).await;
        let found = found.map_err(|e| Problem::from_api(&format!("read tenant {name}"), e))?;
        if let Some(tenant) = found {
            return Ok(tenant);
        }
        let all = self.tenants().list(&ListParams::default().limit(500)).await;
        let all = all.map_err(|e| Problem::from_api("list tenants", e))?;
        let near = all
            .iter()
            .map(ResourceExt::name_any)
            .filter(|n| looks_like(n, name))
            .take(3)
            .collect();
        Err(Problem::NoTenant {
            name: name.to_owned(),
            namespace: self.namespace.clone(),
            near,
        })
    }

    /// A Secret's value as text.
    pub async fn secret_text(&self, secret: &str, key: &str) -> Result<String, Problem> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let found = api.get_opt(secret).await;
        let found = found.map_err(|e| Problem::from_api(&format!("read Secret {secret}"), e))?;
        let value = found.and_then(|s| s.data.unwrap_or_default().remove(key));
        let missing = || Problem::Missing {
            secret: secret.to_owned(),
            key: key.to_owned(),
        };
        String::from_utf8(value.ok_or_else(missing)?.0).map_err(|_| missing())
    }

    /// The administrator's kubeconfig of a tenant, as text.
    pub async fn admin_kubeconfig(&self, tenant: &str) -> Result<String, Problem> {
        let text = self
            .secret_text(&format!("{tenant}-admin-kubeconfig"), "admin.conf")
            .await?;
        match harmless::fault(&text) {
            None => Ok(text),
            Some(why) => Err(unusable(tenant, &why)),
        }
    }

    /// A client for the tenant's own API server, by its public endpoint.
    pub async fn tenant_client(&self, tenant: &str) -> Result<Client, Problem> {
        let config = self.tenant_config(tenant).await?;
        Client::try_from(config).map_err(|e| unusable(tenant, &e))
    }

    /// Where a tenant's API server is, and the administrator's credentials there.
    pub async fn tenant_config(&self, tenant: &str) -> Result<Config, Problem> {
        let text = self.admin_kubeconfig(tenant).await?;
        let kubeconfig = Kubeconfig::from_yaml(&text).map_err(|e| unusable(tenant, &e))?;
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(|e| unusable(tenant, &e))?;
        config.connect_timeout = Some(CONNECT);
        Ok(config)
    }

    /// Objects of our namespace of a kind that may not be served.
    pub fn dynamic(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    /// The same cluster, seen from the namespace of a tenant.
    #[must_use]
    pub fn at(&self, tenant: &TenantControlPlane) -> Self {
        Self {
            client: self.client.clone(),
            namespace: tenant.namespace().unwrap_or_else(|| self.namespace.clone()),
        }
    }
}

fn unusable(tenant: &str, why: &dyn std::fmt::Display) -> Problem {
    Problem::Tenant {
        name: tenant.to_owned(),
        what: format!("its kubeconfig can't be used: {why}"),
    }
}

/// Whether an error says that nobody knows the kind.
pub fn not_served(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// As kubectl finds it: the file that was named, else `KUBECONFIG`, else the one in
/// the home folder, else the account of the pod we are in.
async fn configuration(cli: &Cli) -> Result<Config, Problem> {
    if let Some(file) = &cli.kubeconfig {
        return from_file(file, cli.context.clone()).await;
    }
    let options = KubeConfigOptions {
        context: cli.context.clone(),
        ..KubeConfigOptions::default()
    };
    match Config::from_kubeconfig(&options).await {
        Ok(config) => Ok(config),
        Err(error) if cli.context.is_some() => Err(Problem::NoCluster(error.to_string())),
        // In a pod there is no kubeconfig; outside, that it is missing is the news.
        Err(error) => Config::incluster().map_err(|_| Problem::NoCluster(error.to_string())),
    }
}

async fn from_file(file: &Path, context: Option<String>) -> Result<Config, Problem> {
    // A parser shows the line it stumbled over below its sentence; the sentence is enough.
    let first = |why: String| why.lines().next().unwrap_or_default().to_owned();
    let broken = |why: String| Problem::NoCluster(format!("{}: {}", file.display(), first(why)));
    let kubeconfig = Kubeconfig::read_from(file).map_err(|e| broken(e.to_string()))?;
    let options = KubeConfigOptions {
        context,
        ..KubeConfigOptions::default()
    };
    Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|e| broken(e.to_string()))
}

/// A slip of the finger: one contains the other, or at most two letters differ.
pub(crate) fn looks_like(candidate: &str, asked: &str) -> bool {
    candidate.contains(asked) || asked.contains(candidate) || distance(candidate, asked) <= 2
}

fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_is_recognised_and_a_stranger_is_not() {
        assert!(looks_like("tenant-01", "tennat-01"));
        assert!(looks_like("tenant-01", "tenant"));
        assert!(!looks_like("tenant-01", "prod"));
    }
}
