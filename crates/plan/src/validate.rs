//! From what the user wrote and what was seen to values that builders can trust.
//!
//! Everything that may be wrong is found here and said as a [`Problem`]; whatever gets
//! through is parsed, defaulted and consistent, so that no builder can fail. Nothing is
//! decided here about objects.

mod certificates;
mod egress;
mod exposure;
mod hostname;
mod keys;
mod network;
mod storage;
mod upgrade;

use std::collections::BTreeSet;

use kube::ResourceExt as _;
use serde_json::{Value, json};
use steward_api::{
    TenantControlPlane, TenantControlPlaneSpec,
    conditions::{ConditionType, Reason},
    flags,
    hostnames::PublicNames,
    tenant_control_plane::{IngressControllerType, ServiceType},
};

pub use certificates::Certificates;
pub use egress::Egress;
pub use exposure::{Exposure, NodeProxy};
pub(crate) use keys::token_files;
pub use keys::{AuthoritySource, Wish};
pub use network::Network;
pub use storage::Storage;

use crate::{
    build::{inside::check_kube_proxy, kubelet},
    names::Names,
    observed::Observed,
    outcome::Wait,
    problem::Problem,
    settings::Settings,
    version::Version,
};

/// A tenant that can be planned: every value parsed, defaulted and checked.
#[derive(Debug, Clone)]
pub struct Validated {
    /// Names of its objects.
    pub names: Names,
    /// Its uid.
    pub uid: String,
    /// What the user wrote, for what needs no parsing.
    pub spec: TenantControlPlaneSpec,
    /// The version to run now: the wanted one, or the installed one while an upgrade
    /// is held up.
    pub version: Version,
    /// Ranges, addresses and ports.
    pub network: Network,
    /// How it is reached.
    pub exposure: Exposure,
    /// The proxy on the nodes, if there is one.
    pub node_proxy: Option<NodeProxy>,
    /// Where its data is; none while nothing is known about it.
    pub storage: Option<Storage>,
    /// Lifetimes and kinds of keys, and authorities the user brought.
    pub certificates: Certificates,
    /// Where connections that the control plane opens may go.
    pub egress: Egress,
    /// The kubelets' configuration, the user's patches applied.
    pub kubelet: Value,
    /// What is held up though the spec is right.
    pub waits: Vec<Wait>,
}

/// Checks a tenant, together with what surrounds it.
pub fn validate(settings: &Settings, observed: &Observed) -> Result<Validated, Vec<Problem>> {
    let mut problems = Problems::default();
    let tenant = &observed.tenant;
    let spec = &tenant.spec;
    let names = Names {
        tenant: tenant.name_any(),
        namespace: tenant.namespace().unwrap_or_default(),
    };
    problems.extend(hostname::check_object_name(&names.tenant));
    problems.extend(check_containers(spec));
    problems.extend(check_kube_proxy(tenant));

    let mut waits = notices(spec);
    let version = problems.take(upgrade::version(observed, &mut waits));
    waits.extend(version.as_ref().and_then(|version| limits(spec, version)));
    let network = problems.take(network::parse(spec));
    let exposure = problems.take(exposure::parse(observed));
    let node_proxy = problems.take(exposure::node_proxy(observed, network.as_ref()));
    let certificates = problems.take(certificates::parse(settings, observed, &names));
    let egress = problems.take(egress::parse(observed));
    waits.extend(
        egress
            .as_ref()
            .and_then(|egress| egress::notice(settings, spec, egress)),
    );
    let storage = storage::resolve(settings, observed, &names, &mut waits, &mut problems.0);
    let kubelet = match (&network, &version) {
        (Some(network), Some(version)) => {
            problems.take(kubelet::configuration(spec, network, version).map_err(|p| vec![p]))
        }
        _ => None,
    };
    match (
        version,
        network,
        exposure,
        node_proxy,
        certificates,
        egress,
        kubelet,
    ) {
        (
            Some(version),
            Some(network),
            Some(exposure),
            Some(node_proxy),
            Some(certificates),
            Some(egress),
            Some(kubelet),
        ) if problems.0.is_empty() => Ok(Validated {
            names,
            uid: tenant.uid().unwrap_or_default(),
            spec: spec.clone(),
            version,
            network,
            exposure,
            node_proxy,
            storage,
            certificates,
            egress,
            kubelet,
            waits,
        }),
        _ => Err(problems.0),
    }
}

/// Names that a tenant wants at the shared front doors: what others may not have then. What is no
/// name at all is not among them.
pub fn hostnames(tenant: &TenantControlPlane) -> Vec<String> {
    let Some(names) = public_names(tenant) else {
        return Vec::new();
    };
    let all: BTreeSet<String> = [names.api, names.konnectivity].into();
    all.into_iter()
        .filter(|name| hostname::fault(name).is_none())
        .collect()
}

/// `DataStores` that a tenant needs to be resolved.
pub fn datastore_names(settings: &Settings, tenant: &TenantControlPlane) -> Vec<String> {
    let main = storage::store_name(settings, tenant);
    let overrides = tenant.spec.data_store_overrides.iter();
    let all: BTreeSet<&str> = std::iter::once(main)
        .chain(storage::used(tenant))
        .chain(overrides.map(|other| other.data_store.as_str()))
        .collect();
    all.into_iter().map(str::to_owned).collect()
}

/// `DataStores` that hold something of a tenant: the one that it was set up in, and those for some resources.
pub(crate) fn stores_with_data(settings: &Settings, tenant: &TenantControlPlane) -> Vec<String> {
    let main = storage::used(tenant).unwrap_or_else(|| storage::store_name(settings, tenant));
    let overrides = tenant.spec.data_store_overrides.iter();
    let all: BTreeSet<&str> = std::iter::once(main)
        .chain(overrides.map(|other| other.data_store.as_str()))
        .collect();
    all.into_iter().map(str::to_owned).collect()
}

/// Secrets in the tenant's namespace that matter though they may not carry our label:
/// keys that somebody put back, and authorities that the user brought.
pub fn named_secrets(tenant: &TenantControlPlane) -> Vec<String> {
    let names = Names {
        tenant: tenant.name_any(),
        namespace: String::new(),
    };
    let mut all = vec![names.ca(), names.front_proxy_ca(), names.service_account()];
    if let Some(certificates) = &tenant.spec.certificates {
        all.extend(certificates.ca_secret_name.clone());
        all.extend(certificates.front_proxy_ca_secret_name.clone());
    }
    all
}

/// The public names; an agent that the user points at another name gives konnectivity
/// that name, because the first seed's manifests say it so.
pub(crate) fn public_names(tenant: &TenantControlPlane) -> Option<PublicNames> {
    let mut names = tenant.public_names()?;
    let agent = tenant
        .spec
        .addons
        .konnectivity
        .as_ref()
        .map(|k| &k.agent.extra_args);
    if let Some(host) = agent.and_then(|args| flags::value(args, "--proxy-server-host"))
        && host.parse::<std::net::IpAddr>().is_err()
        && !names.separate_konnectivity()
    {
        names.konnectivity = host.to_ascii_lowercase();
    }
    Some(names)
}

/// What the spec asks for and doesn't get.
fn notices(spec: &TenantControlPlaneSpec) -> Vec<Wait> {
    let mut all = Vec::new();
    let mut tell = |condition, message: &str| {
        all.push(wait(condition, Reason::NotSupported, message));
    };
    if spec.addons.worker_bootstrap.is_some() {
        let message = "spec.addons.workerBootstrap is not provided yet: nodes join with kubeadm";
        tell(ConditionType::AddonsReady, message);
    }
    let control_plane = &spec.control_plane;
    let ranges = control_plane
        .access
        .as_ref()
        .is_some_and(|access| !access.allowed_source_ranges.is_empty());
    let enforced = match (&control_plane.ingress, &control_plane.gateway) {
        (Some(ingress), _) => ingress.controller_type == IngressControllerType::Steward,
        (None, Some(_)) => true,
        (None, None) => control_plane.service.service_type == ServiceType::LoadBalancer,
    };
    if ranges && !enforced {
        let message = "spec.controlPlane.access.allowedSourceRanges is enforced by a LoadBalancer \
                       of the tenant's own and by steward-gateway, and by no other front door: \
                       restrict sources there";
        tell(ConditionType::Accepted, message);
    }
    all
}

/// What the tenant refuses to write.
fn limits(spec: &TenantControlPlaneSpec, version: &Version) -> Option<Wait> {
    let limits = spec.write_permissions.filter(|limits| limits.limited())?;
    let (reason, message) = if version.has_admission_policies() {
        (Reason::WriteLimited, limits.refusal())
    } else {
        let message = "spec.writePermissions needs Kubernetes 1.30 or newer, and is not enforced \
                       here: upgrade the tenant";
        (Reason::NotSupported, message.to_owned())
    };
    Some(wait(ConditionType::Accepted, reason, message))
}

fn check_containers(spec: &TenantControlPlaneSpec) -> Vec<Problem> {
    const OURS: [&str; 6] = [
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "konnectivity-server",
        "steward-gate",
        "kine",
    ];
    let deployment = &spec.control_plane.deployment;
    let field = "spec.controlPlane.deployment.additionalContainers";
    deployment
        .additional_containers
        .iter()
        .chain(&deployment.additional_init_containers)
        .filter(|container| OURS.contains(&container.name.as_str()))
        .map(|container| {
            let message = format!(
                "{:?} is a container of Steward: rename yours",
                container.name
            );
            Problem::invalid(field, message)
        })
        .collect()
}

/// Collects problems and hands on what is right.
#[derive(Default)]
struct Problems(Vec<Problem>);

impl Problems {
    fn take<T>(&mut self, result: Result<T, Vec<Problem>>) -> Option<T> {
        result.map_err(|found| self.extend(found)).ok()
    }

    fn extend(&mut self, found: impl IntoIterator<Item = Problem>) {
        self.0.extend(found);
    }
}

impl Validated {
    /// Whether clients enter through the gate.
    pub fn has_gate(&self) -> bool {
        let behind_a_name = matches!(self.exposure, Exposure::Ingress(_) | Exposure::Gateway(_));
        let guarded = self
            .spec
            .control_plane
            .access
            .as_ref()
            .is_some_and(|access| {
                access.max_connections.is_some() || access.max_handshakes_per_second.is_some()
            });
        behind_a_name || guarded || self.node_proxy.is_some()
    }

    /// The names at the shared front door.
    pub fn public_names(&self) -> Option<&PublicNames> {
        match &self.exposure {
            Exposure::Ingress(names) | Exposure::Gateway(names) => Some(names),
            Exposure::LoadBalancer | Exposure::NodePort | Exposure::ClusterIp => None,
        }
    }

    /// Whether the tenant refuses some writes.
    pub fn write_limited(&self) -> bool {
        let limits = self.spec.write_permissions.unwrap_or_default();
        limits.limited() && self.version.has_admission_policies()
    }

    /// Pods wanted; 0 is asleep.
    pub fn replicas(&self) -> i32 {
        self.spec.control_plane.deployment.replicas
    }

    /// Who owns the tenant's objects: they go when it goes.
    pub fn owner(&self) -> Value {
        json!({
            "apiVersion": format!("{}/{}", steward_api::GROUP, steward_api::VERSION),
            "kind": "TenantControlPlane",
            "name": self.names.tenant,
            "uid": self.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }
}

/// A wait of a step.
pub(crate) fn wait(condition: ConditionType, reason: Reason, message: impl Into<String>) -> Wait {
    Wait {
        condition,
        reason,
        message: message.into(),
        retry: None,
    }
}
