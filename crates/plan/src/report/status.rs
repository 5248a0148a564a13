//! The status besides its conditions: what was made, where it is, what runs.

mod parts;

use k8s_openapi::api::core::v1::LoadBalancerStatus;
use serde_json::Value;
use steward_api::{
    TenantControlPlaneStatus,
    tenant_control_plane::{
        DeploymentResourceStatus, ExposureStatus, GatewayResourceStatus, IngressResourceStatus,
        KubernetesResourcesStatus, LocalRef, RouteParentStatus, ServiceResourceStatus, TenantState,
        VersionStatus,
    },
};

use super::never_ran;
use crate::{
    build::front_door::tls_route_kind,
    object::Kind,
    observed::Observed,
    outcome::Plan,
    settings::Settings,
    validate::{Exposure, Validated},
    way::{self, Ways},
};

/// What conditions and status are both made from.
pub(super) struct Facts {
    pub(super) ways: Option<Ways>,
    pub(super) pods: Pods,
    pub(super) state: TenantState,
    installed: Option<String>,
}

/// How far the pods are.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pods {
    pub(super) wanted: i64,
    pub(super) ready: i64,
    pub(super) updated: i64,
    pub(super) done: bool,
}

impl Pods {
    /// Whether any pod answers.
    pub(super) fn serving(self) -> bool {
        self.ready > 0
    }

    fn read(deployment: Option<&Value>, tenant: &Validated) -> Self {
        let wanted = i64::from(tenant.replicas());
        let Some(live) = deployment else {
            return Self {
                wanted,
                ..Self::default()
            };
        };
        let count = |path: &str| live.pointer(path).and_then(Value::as_i64).unwrap_or(0);
        let (ready, updated) = (
            count("/status/readyReplicas"),
            count("/status/updatedReplicas"),
        );
        let seen = count("/status/observedGeneration") >= count("/metadata/generation");
        let alone = count("/status/replicas") == updated;
        let done = seen && updated >= wanted && ready >= wanted && alone && wanted > 0;
        Self {
            wanted,
            ready,
            updated,
            done,
        }
    }
}

/// What a Gateway says about a route.
pub(super) struct Parent(RouteParentStatus);

impl Parent {
    /// The words with which it refuses, if it does.
    pub(super) fn refusal(&self) -> Option<String> {
        let refused = self.0.conditions.iter().find(|condition| {
            ["Accepted", "ResolvedRefs"].contains(&condition.type_.as_str())
                && condition.status == "False"
        })?;
        Some(format!(
            "the Gateway {} refuses the route: {} ({})",
            self.0.parent_ref.name, refused.message, refused.reason
        ))
    }
}

impl Facts {
    pub(super) fn gather(_: &Settings, tenant: &Validated, observed: &Observed, _: &Plan) -> Self {
        let names = &tenant.names;
        let deployment = observed
            .live
            .get(Kind::Deployment, &names.namespace, &names.tenant);
        let pods = Pods::read(deployment, tenant);
        let old = version_status(observed);
        let before = old.and_then(|version| version.version.clone());
        let wanted = tenant.version.to_string();
        let installed = if pods.done {
            Some(wanted.clone())
        } else {
            before
        };
        let was = old.map_or(TenantState::Provisioning, |version| version.status);
        let state = state(tenant, pods, installed.as_deref(), &wanted, was);
        Self {
            ways: way::resolve(tenant, observed).ok(),
            pods,
            state,
            installed,
        }
    }
}

/// What the Gateways say about the tenant's route.
pub(super) fn route_parents(tenant: &Validated, observed: &Observed) -> Vec<Parent> {
    parents(tenant, observed).into_iter().map(Parent).collect()
}

fn version_status(observed: &Observed) -> Option<&VersionStatus> {
    observed
        .tenant
        .status
        .as_ref()?
        .kubernetes_resources
        .as_ref()?
        .version
        .as_ref()
}

/// The state in one word.
fn state(
    tenant: &Validated,
    pods: Pods,
    installed: Option<&str>,
    wanted: &str,
    was: TenantState,
) -> TenantState {
    if tenant.replicas() == 0 {
        return TenantState::Sleeping;
    }
    if installed.is_none() {
        return TenantState::Provisioning;
    }
    if installed != Some(wanted) {
        return TenantState::Upgrading;
    }
    if pods.serving() && tenant.write_limited() {
        TenantState::WriteLimited
    } else if pods.serving() {
        TenantState::Ready
    } else if never_ran(was) || was == TenantState::Sleeping {
        TenantState::Provisioning
    } else {
        TenantState::NotReady
    }
}

/// The status without conditions.
pub(super) fn status(
    tenant: &Validated,
    observed: &Observed,
    plan: &Plan,
    facts: &Facts,
) -> TenantControlPlaneStatus {
    let old = observed.tenant.status.clone().unwrap_or_default();
    let entries = parts::Entries {
        tenant,
        observed,
        plan,
        old: &old,
    };
    let endpoint = facts.ways.as_ref().map(|ways| ways.active.authority());
    TenantControlPlaneStatus {
        observed_generation: None,
        conditions: Vec::new(),
        control_plane_endpoint: endpoint.or_else(|| old.control_plane_endpoint.clone()),
        exposure: facts.ways.as_ref().map(exposure).or(old.exposure.clone()),
        storage: entries.storage(),
        certificates: Some(entries.certificates()),
        kubeconfig: entries.kubeconfigs(),
        kubernetes_resources: Some(resources(tenant, observed, facts)),
        kubeadm_config: entries.kubeadm_config(),
        kubeadm_phase: entries.phases(),
        addons: entries.addons(facts.ways.as_ref()),
        egress: Some(tenant.egress.status()),
    }
}

/// How the tenant is reached.
pub(crate) fn exposure(ways: &Ways) -> ExposureStatus {
    let way = &ways.active;
    let name = |host: &str| {
        host.parse::<std::net::IpAddr>()
            .is_err()
            .then(|| host.to_owned())
    };
    ExposureStatus {
        mode: Some(way.mode),
        hostname: name(&way.host),
        konnectivity_hostname: name(&way.konnectivity_host).filter(|other| *other != way.host),
        port: Some(way.port.into()),
        addresses: way.addresses.iter().map(ToString::to_string).collect(),
        previous: ways.leaving.as_ref().map(Into::into),
        released: ways.released.clone(),
    }
}

fn resources(tenant: &Validated, observed: &Observed, facts: &Facts) -> KubernetesResourcesStatus {
    let names = &tenant.names;
    let live = |kind| observed.live.get(kind, &names.namespace, &names.tenant);
    KubernetesResourcesStatus {
        version: Some(VersionStatus {
            version: facts.installed.clone(),
            status: facts.state,
        }),
        deployment: live(Kind::Deployment).map(|live| deployment(tenant, live)),
        service: live(Kind::Service).map(|live| ServiceResourceStatus {
            name: Some(names.tenant.clone()),
            namespace: Some(names.namespace.clone()),
            port: Some(tenant.network.port.into()),
            load_balancer: load_balancer(live),
        }),
        ingress: matches!(tenant.exposure, Exposure::Ingress(_))
            .then(|| live(Kind::Ingress).or_else(|| live(Kind::IngressRouteTcp)))
            .flatten()
            .map(|live| IngressResourceStatus {
                name: Some(names.tenant.clone()),
                namespace: Some(names.namespace.clone()),
                load_balancer: load_balancer(live),
            }),
        gateway: matches!(tenant.exposure, Exposure::Gateway(_)).then(|| GatewayResourceStatus {
            route_ref: Some(LocalRef {
                name: Some(names.tenant.clone()),
            }),
            parents: parents(tenant, observed),
            access_points: Vec::new(),
        }),
    }
}

fn load_balancer(live: &Value) -> Option<LoadBalancerStatus> {
    let found = live.pointer("/status/loadBalancer")?;
    serde_json::from_value(found.clone())
        .ok()
        .filter(|found: &LoadBalancerStatus| {
            found
                .ingress
                .as_ref()
                .is_some_and(|entries| !entries.is_empty())
        })
}

fn parents(tenant: &Validated, observed: &Observed) -> Vec<RouteParentStatus> {
    let names = &tenant.names;
    let kind = tls_route_kind(&observed.platform);
    observed
        .live
        .get(kind, &names.namespace, &names.tenant)
        .and_then(|route| route.pointer("/status/parents"))
        .and_then(|found| serde_json::from_value(found.clone()).ok())
        .unwrap_or_default()
}

fn deployment(tenant: &Validated, live: &Value) -> DeploymentResourceStatus {
    let count = |field: &str| {
        live["status"][field]
            .as_i64()
            .and_then(|number| i32::try_from(number).ok())
    };
    let selector = tenant.names.selector();
    let selector: Vec<String> = selector
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    DeploymentResourceStatus {
        name: Some(tenant.names.tenant.clone()),
        namespace: Some(tenant.names.namespace.clone()),
        selector: Some(selector.join(",")),
        replicas: Some(count("replicas").unwrap_or(0)),
        updated_replicas: count("updatedReplicas"),
        ready_replicas: count("readyReplicas"),
        available_replicas: count("availableReplicas"),
        unavailable_replicas: count("unavailableReplicas"),
        observed_generation: live["status"]["observedGeneration"].as_i64(),
        last_update: None,
    }
}
