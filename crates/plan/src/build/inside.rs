//! Objects inside the tenant's own cluster: what `kubeadm init` would have left there,
//! and the addons.

mod bootstrap;
mod coredns;
mod endpoints;
mod konnectivity;
mod kube_proxy;
pub(crate) mod operator_access;
mod rbac;
mod tcp_proxy;
mod write_permissions;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use steward_api::metadata::{annotations, labels};
use steward_pki::Pair;

use super::meta::object;
use crate::{
    names::PROJECT,
    object::{Kind, Object, ObjectKey, Stage},
    observed::{Endpoints, Observed},
    outcome::Prune,
    settings::Settings,
    validate::Validated,
    version::Version,
    way::Ways,
};

pub(crate) use endpoints::endpoints;
pub(crate) use kube_proxy::check as check_kube_proxy;
pub(crate) use tcp_proxy::keys as tcp_proxy_keys;
pub(crate) use write_permissions::NAME as WRITE_PERMISSIONS;

/// Where the system's parts live.
pub(crate) const SYSTEM: &str = "kube-system";
/// Where everyone may look.
pub(crate) const PUBLIC: &str = "kube-public";

/// What the objects inside are made of.
pub(crate) struct Inputs<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) tenant: &'a Validated,
    pub(crate) observed: &'a Observed,
    pub(crate) ways: &'a Ways,
    /// Certificate of the cluster's authority, PEM.
    pub(crate) authority: &'a str,
    /// The node proxy's own certificate, in Terminate mode.
    pub(crate) proxy_certificate: Option<&'a Pair>,
    /// Where the `kubernetes` Service leads, if that is ours to say.
    pub(crate) endpoints: Option<Endpoints>,
}

/// All objects, in the order they are written: permissions, configuration, then pods.
pub(crate) fn objects(inputs: &Inputs<'_>) -> Vec<Object> {
    let mut all = operator_access::objects().to_vec();
    all.extend(rbac::objects(inputs.tenant));
    all.extend(write_permissions::objects(inputs.tenant));
    all.extend(bootstrap::objects(inputs));
    if let Some(target) = &inputs.endpoints {
        all.extend(endpoints(target));
    }
    if let Some(proxy) = &inputs.tenant.node_proxy {
        all.extend(tcp_proxy::objects(inputs, proxy));
    }
    let addons = &inputs.tenant.spec.addons;
    if let Some(addon) = &addons.kube_proxy {
        all.extend(kube_proxy::objects(inputs, addon));
    }
    if let Some(addon) = &addons.core_dns {
        all.extend(coredns::objects(inputs.tenant, addon));
    }
    if let Some(addon) = &addons.konnectivity {
        all.extend(konnectivity::objects(inputs, addon));
    }
    let endpoint = inputs.ways.active.authority();
    let dialling = all.iter_mut().filter(|object| {
        matches!(object.key.kind, Kind::DaemonSet | Kind::Deployment)
            && DIALLING.contains(&object.key.name.as_str())
    });
    for object in dialling {
        object.body["metadata"]["annotations"][annotations::ENDPOINT] = endpoint.clone().into();
    }
    all
}

/// Workloads that dial the API server where the whole world does. They say so, and the old
/// way stays until none of them dials it.
const DIALLING: [&str; 3] = ["kube-proxy", "konnectivity-agent", tcp_proxy::NAME];

/// Workloads inside whose progress bears on a plan. There is no need to list others, whatever their
/// labels.
pub fn workloads() -> Vec<ObjectKey> {
    let kinds = [Kind::DaemonSet, Kind::Deployment];
    DIALLING
        .iter()
        .flat_map(|name| kinds.map(|kind| ObjectKey::new(kind, SYSTEM, *name)))
        .collect()
}

/// Kinds that every version knows.
const KINDS: [Kind; 12] = [
    Kind::ConfigMap,
    Kind::Secret,
    Kind::Service,
    Kind::ServiceAccount,
    Kind::Deployment,
    Kind::DaemonSet,
    Kind::Role,
    Kind::RoleBinding,
    Kind::ClusterRole,
    Kind::ClusterRoleBinding,
    Kind::Endpoints,
    Kind::EndpointSlice,
];

/// What of ours may go inside the tenant when it isn't planned any more.
pub(crate) fn prune(version: &Version) -> Prune {
    let mut kinds = KINDS.to_vec();
    if version.has_admission_policies() {
        kinds.extend([
            Kind::ValidatingAdmissionPolicy,
            Kind::ValidatingAdmissionPolicyBinding,
        ]);
    }
    Prune {
        kinds,
        namespaces: vec![SYSTEM.into(), PUBLIC.into(), "default".into()],
        labels: [(labels::PROJECT.to_owned(), PROJECT.to_owned())].into(),
        keep: [Kind::Endpoints, Kind::EndpointSlice]
            .map(|kind| ObjectKey::new(kind, "default", "kubernetes"))
            .into(),
    }
}

/// Metadata of an object in a namespace of the tenant.
pub(super) fn named(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta {
        namespace: Some(namespace.into()),
        ..cluster_wide(name)
    }
}

/// Metadata of an object of the whole tenant.
pub(super) fn cluster_wide(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.into()),
        labels: Some([(labels::PROJECT.to_owned(), PROJECT.to_owned())].into()),
        ..ObjectMeta::default()
    }
}

/// Adds labels.
pub(super) fn labelled(mut metadata: ObjectMeta, more: &[(&str, &str)]) -> ObjectMeta {
    let all = metadata.labels.get_or_insert_default();
    all.extend(
        more.iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned())),
    );
    metadata
}

/// An object inside the tenant.
pub(super) fn make(kind: Kind, because: &'static str, resource: &impl Serialize) -> Object {
    object(kind, Stage::Config, because, resource)
}

/// YAML of a configuration file.
pub(super) fn yaml(value: &serde_json::Value) -> String {
    serde_saphyr::to_string(value).unwrap_or_default()
}
