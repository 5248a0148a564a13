//! The side in the management cluster.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, ListParams};
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use steward_api::{DataStore, TenantControlPlane};

use super::Branch;
use crate::cluster::Management;
use crate::evidence::trouble;
use crate::output::Health;

/// A certificate that ends sooner than this is worth a look.
const SOON: i64 = 7;

/// Looks at everything that carries the tenant's label.
pub(super) async fn look(cluster: &Management, tenant: &TenantControlPlane) -> Branch {
    let name = tenant.name_any();
    let (deployment, services, routes, secrets, maps, budgets, store) = tokio::join!(
        deployment(cluster, &name),
        services(cluster, &name),
        routes(cluster, &name),
        secrets(cluster, &name),
        names::<ConfigMap>(cluster, &name, "ConfigMap"),
        names::<PodDisruptionBudget>(cluster, &name, "PodDisruptionBudget"),
        datastore(cluster, tenant),
    );
    let mut children = conditions(tenant);
    children.extend(deployment);
    children.extend(services);
    children.extend(routes);
    children.extend(store);
    children.extend(secrets);
    children.extend(maps);
    children.extend(budgets);
    Branch::new("management cluster", "").with(children)
}

fn conditions(tenant: &TenantControlPlane) -> Vec<Branch> {
    let all = tenant.status.iter().flat_map(|s| &s.conditions);
    // Progressing is false when all is quiet, and true on the way: neither is trouble.
    let steps = all.filter(|c| c.type_ != "Progressing");
    steps
        .map(|c| {
            let health = if c.status == "True" {
                Health::Good
            } else {
                Health::Bad
            };
            Branch::new("condition", &c.type_).is(health, &c.message)
        })
        .collect()
}

fn of_tenant(name: &str) -> ListParams {
    ListParams::default().labels(&format!("steward.butlerlabs.dev/name={name}"))
}

fn api<K>(cluster: &Management) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    Api::namespaced(cluster.client.clone(), &cluster.namespace)
}

async fn deployment(cluster: &Management, name: &str) -> Vec<Branch> {
    let found = match api::<Deployment>(cluster).get_opt(name).await {
        Ok(Some(found)) => found,
        Ok(None) => return vec![Branch::new("Deployment", name).is(Health::Bad, "missing")],
        Err(error) => {
            return vec![Branch::new("Deployment", name).is(Health::Warn, error.to_string())];
        }
    };
    let wanted = found.spec.and_then(|s| s.replicas).unwrap_or(1);
    let ready = found.status.unwrap_or_default().ready_replicas.unwrap_or(0);
    let pods = api::<Pod>(cluster).list(&of_tenant(name)).await;
    let pods = pods.map(|l| l.items).unwrap_or_default();
    let pods = pods
        .iter()
        .filter(|p| p.metadata.deletion_timestamp.is_none())
        .map(|pod| {
            let node = pod
                .spec
                .as_ref()
                .and_then(|s| s.node_name.clone())
                .unwrap_or_default();
            let branch = Branch::new("Pod", pod.name_any());
            match trouble(pod) {
                Some(what) => branch.is(Health::Warn, what),
                None => branch.is(Health::Good, format!("on {node}")),
            }
        });
    let health = if ready >= wanted {
        Health::Good
    } else if ready > 0 {
        Health::Warn
    } else {
        Health::Bad
    };
    vec![
        Branch::new("Deployment", name)
            .is(health, format!("{ready} of {wanted} ready"))
            .with(pods.collect()),
    ]
}

async fn services(cluster: &Management, name: &str) -> Vec<Branch> {
    let found = api::<Service>(cluster).list(&of_tenant(name)).await;
    let mut branches = Vec::new();
    for service in found.map(|l| l.items).unwrap_or_default() {
        let name = service.name_any();
        let wanted = ListParams::default().labels(&format!("kubernetes.io/service-name={name}"));
        let slices = api::<EndpointSlice>(cluster).list(&wanted).await;
        let ready = slices.map(|l| l.items).unwrap_or_default();
        let ready = ready.iter().flat_map(|s| s.endpoints.iter());
        let ready = ready
            .filter(|e| e.conditions.as_ref().and_then(|c| c.ready).unwrap_or(true))
            .count();
        let kind = service.spec.and_then(|s| s.type_).unwrap_or_default();
        let health = if ready > 0 { Health::Good } else { Health::Bad };
        branches
            .push(Branch::new("Service", name).is(health, format!("{kind}, {ready} endpoints")));
    }
    branches
}

async fn routes(cluster: &Management, name: &str) -> Vec<Branch> {
    let mut branches = Vec::new();
    for ingress in api::<Ingress>(cluster)
        .list(&of_tenant(name))
        .await
        .map(|l| l.items)
        .unwrap_or_default()
    {
        let spec = ingress.spec.clone().unwrap_or_default();
        let hosts: Vec<String> = spec
            .rules
            .iter()
            .flatten()
            .filter_map(|r| r.host.clone())
            .collect();
        let class = spec.ingress_class_name.unwrap_or_default();
        let detail = format!("class {class}, {}", hosts.join(", "));
        branches.push(Branch::new("Ingress", ingress.name_any()).is(Health::Good, detail));
    }
    for (group, version, kind) in [
        ("traefik.io", "v1alpha1", "IngressRouteTCP"),
        ("gateway.networking.k8s.io", "v1", "TLSRoute"),
    ] {
        let found = cluster
            .dynamic(group, version, kind)
            .list(&of_tenant(name))
            .await;
        let found = found.map(|l| l.items).unwrap_or_default();
        branches.extend(found.iter().map(|o| Branch::new(kind, o.name_any())));
    }
    branches
}

/// Secrets, and how long the certificates in them last.
async fn secrets(cluster: &Management, name: &str) -> Vec<Branch> {
    let found = api::<Secret>(cluster).list(&of_tenant(name)).await;
    let now = Timestamp::now();
    let found = found.map(|l| l.items).unwrap_or_default();
    let branch = |secret: &Secret| {
        let texts = secret
            .data
            .iter()
            .flatten()
            .filter_map(|(_, v)| std::str::from_utf8(&v.0).ok());
        let ends = texts
            .filter(|t| t.starts_with("-----BEGIN CERTIFICATE"))
            .filter_map(|t| steward_pki::inspect(t).ok());
        let branch = Branch::new("Secret", secret.name_any());
        let Some(first) = ends.map(|f| f.not_after).min() else {
            return branch;
        };
        let days = (first.as_second() - now.as_second()).div_euclid(86_400);
        let health = if days < 0 {
            Health::Bad
        } else if days < SOON {
            Health::Warn
        } else {
            Health::Good
        };
        branch.is(health, format!("{days} days left"))
    };
    found.iter().map(branch).collect()
}

async fn names<K>(cluster: &Management, name: &str, kind: &str) -> Vec<Branch>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let found = api::<K>(cluster).list_metadata(&of_tenant(name)).await;
    let found = found.map(|l| l.items).unwrap_or_default();
    found
        .iter()
        .map(|o| Branch::new(kind, o.name_any()))
        .collect()
}

async fn datastore(cluster: &Management, tenant: &TenantControlPlane) -> Vec<Branch> {
    let status = tenant.status.clone().unwrap_or_default();
    let name = status
        .storage
        .and_then(|s| s.data_store_name)
        .or_else(|| tenant.spec.data_store.clone());
    let Some(name) = name else { return Vec::new() };
    let stores: Api<DataStore> = Api::all(cluster.client.clone());
    let branch = Branch::new("DataStore", &name);
    vec![match stores.get_opt(&name).await {
        Ok(None) => branch.is(Health::Bad, "missing"),
        Err(error) => branch.is(Health::Warn, error.to_string()),
        Ok(Some(found)) => {
            let conditions = found.status.unwrap_or_default().conditions;
            match conditions.iter().find(|c| c.type_ == "Ready") {
                Some(c) if c.status == "True" => branch.is(Health::Good, &c.message),
                Some(c) => branch.is(Health::Bad, &c.message),
                None => branch.is(Health::Warn, "nobody has looked at it yet"),
            }
        }
    }]
}
