//! The objects a plan is made of: which kinds there are, how one is named, and in
//! which order they are written.
//!
//! [`Kind`] is the only list of kinds in the project. Apply, prune, watches and the
//! chart's RBAC are derived from it, so a kind that is written but not pruned, or
//! not permitted, cannot happen.

use kube::core::{ApiResource, GroupVersionKind};
use serde::Serialize;
use serde_json::Value;

/// Every kind that Steward writes, in the management cluster or in a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `v1/Secret`
    Secret,
    /// `v1/ConfigMap`
    ConfigMap,
    /// `v1/Service`
    Service,
    /// `v1/ServiceAccount`
    ServiceAccount,
    /// `v1/Endpoints`
    Endpoints,
    /// `apps/v1/Deployment`
    Deployment,
    /// `apps/v1/StatefulSet`
    StatefulSet,
    /// `apps/v1/DaemonSet`
    DaemonSet,
    /// `policy/v1/PodDisruptionBudget`
    PodDisruptionBudget,
    /// `networking.k8s.io/v1/Ingress`
    Ingress,
    /// `networking.k8s.io/v1/NetworkPolicy`
    NetworkPolicy,
    /// `traefik.io/v1alpha1/IngressRouteTCP`
    IngressRouteTcp,
    /// `gateway.networking.k8s.io/v1/TLSRoute`
    TlsRouteV1,
    /// `gateway.networking.k8s.io/v1alpha3/TLSRoute`
    TlsRouteV1Alpha3,
    /// `gateway.networking.k8s.io/v1alpha2/TLSRoute`
    TlsRouteV1Alpha2,
    /// `discovery.k8s.io/v1/EndpointSlice`
    EndpointSlice,
    /// `rbac.authorization.k8s.io/v1/Role`
    Role,
    /// `rbac.authorization.k8s.io/v1/RoleBinding`
    RoleBinding,
    /// `rbac.authorization.k8s.io/v1/ClusterRole`
    ClusterRole,
    /// `rbac.authorization.k8s.io/v1/ClusterRoleBinding`
    ClusterRoleBinding,
    /// `admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy`
    ValidatingAdmissionPolicy,
    /// `admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding`
    ValidatingAdmissionPolicyBinding,
}

/// Names one object: kind, namespace (none for cluster-scoped kinds) and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// What it is.
    pub kind: Kind,
    /// Where it is, when its kind lives in a namespace.
    pub namespace: Option<String>,
    /// What it is called.
    pub name: String,
}

/// When an object is written. Stages are applied in this order; everything of one
/// stage may be applied at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Stage {
    /// The Service: its address is needed by all that follows.
    Expose,
    /// Secrets with keys that are never replaced: whatever follows is made with them.
    Keys,
    /// Secrets with certificates.
    Pki,
    /// Kubeconfigs and configuration files.
    Config,
    /// The pods. Datastore wishes are fulfilled before this stage begins.
    Workload,
    /// What leads clients to the pods: Ingress, IngressRouteTCP, TLSRoute.
    FrontDoor,
}

/// One object as it should be, ready for server-side apply.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Which object.
    pub key: ObjectKey,
    /// When it is written.
    pub stage: Stage,
    /// Why it is there: becomes the event's note and the command line's explanation.
    pub because: &'static str,
    /// The whole body, `apiVersion` and `kind` included.
    pub body: Value,
}

impl Kind {
    /// All kinds, for registries and tests.
    pub const ALL: [Self; 22] = [
        Self::Secret,
        Self::ConfigMap,
        Self::Service,
        Self::ServiceAccount,
        Self::Endpoints,
        Self::Deployment,
        Self::StatefulSet,
        Self::DaemonSet,
        Self::PodDisruptionBudget,
        Self::Ingress,
        Self::NetworkPolicy,
        Self::IngressRouteTcp,
        Self::TlsRouteV1,
        Self::TlsRouteV1Alpha3,
        Self::TlsRouteV1Alpha2,
        Self::EndpointSlice,
        Self::Role,
        Self::RoleBinding,
        Self::ClusterRole,
        Self::ClusterRoleBinding,
        Self::ValidatingAdmissionPolicy,
        Self::ValidatingAdmissionPolicyBinding,
    ];

    /// Group, version, kind and plural.
    pub const fn names(self) -> (&'static str, &'static str, &'static str, &'static str) {
        const GATEWAY: &str = "gateway.networking.k8s.io";
        const RBAC: &str = "rbac.authorization.k8s.io";
        const ADMISSION: &str = "admissionregistration.k8s.io";
        match self {
            Self::Secret => ("", "v1", "Secret", "secrets"),
            Self::ConfigMap => ("", "v1", "ConfigMap", "configmaps"),
            Self::Service => ("", "v1", "Service", "services"),
            Self::ServiceAccount => ("", "v1", "ServiceAccount", "serviceaccounts"),
            Self::Endpoints => ("", "v1", "Endpoints", "endpoints"),
            Self::Deployment => ("apps", "v1", "Deployment", "deployments"),
            Self::StatefulSet => ("apps", "v1", "StatefulSet", "statefulsets"),
            Self::DaemonSet => ("apps", "v1", "DaemonSet", "daemonsets"),
            Self::PodDisruptionBudget => (
                "policy",
                "v1",
                "PodDisruptionBudget",
                "poddisruptionbudgets",
            ),
            Self::Ingress => ("networking.k8s.io", "v1", "Ingress", "ingresses"),
            Self::NetworkPolicy => (
                "networking.k8s.io",
                "v1",
                "NetworkPolicy",
                "networkpolicies",
            ),
            Self::IngressRouteTcp => (
                "traefik.io",
                "v1alpha1",
                "IngressRouteTCP",
                "ingressroutetcps",
            ),
            Self::TlsRouteV1 => (GATEWAY, "v1", "TLSRoute", "tlsroutes"),
            Self::TlsRouteV1Alpha3 => (GATEWAY, "v1alpha3", "TLSRoute", "tlsroutes"),
            Self::TlsRouteV1Alpha2 => (GATEWAY, "v1alpha2", "TLSRoute", "tlsroutes"),
            Self::EndpointSlice => ("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
            Self::Role => (RBAC, "v1", "Role", "roles"),
            Self::RoleBinding => (RBAC, "v1", "RoleBinding", "rolebindings"),
            Self::ClusterRole => (RBAC, "v1", "ClusterRole", "clusterroles"),
            Self::ClusterRoleBinding => (RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings"),
            Self::ValidatingAdmissionPolicy => (
                ADMISSION,
                "v1",
                "ValidatingAdmissionPolicy",
                "validatingadmissionpolicies",
            ),
            Self::ValidatingAdmissionPolicyBinding => (
                ADMISSION,
                "v1",
                "ValidatingAdmissionPolicyBinding",
                "validatingadmissionpolicybindings",
            ),
        }
    }

    /// Whether objects of this kind live in a namespace.
    pub const fn namespaced(self) -> bool {
        !matches!(
            self,
            Self::ClusterRole
                | Self::ClusterRoleBinding
                | Self::ValidatingAdmissionPolicy
                | Self::ValidatingAdmissionPolicyBinding
        )
    }

    /// What a dynamic client needs to address this kind.
    pub fn api_resource(self) -> ApiResource {
        let (group, version, kind, plural) = self.names();
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
    }

    /// `apiVersion` as it stands in a manifest.
    pub fn api_version(self) -> String {
        let (group, version, ..) = self.names();
        if group.is_empty() {
            version.to_owned()
        } else {
            format!("{group}/{version}")
        }
    }
}

impl ObjectKey {
    /// Names an object in a namespace.
    pub fn new(kind: Kind, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        debug_assert!(kind.namespaced(), "{kind:?} has no namespace");
        Self {
            kind,
            namespace: Some(namespace.into()),
            name: name.into(),
        }
    }

    /// Names an object that belongs to no namespace.
    pub fn cluster(kind: Kind, name: impl Into<String>) -> Self {
        debug_assert!(!kind.namespaced(), "{kind:?} needs a namespace");
        Self {
            kind,
            namespace: None,
            name: name.into(),
        }
    }
}

impl std::fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (_, _, kind, _) = self.kind.names();
        match &self.namespace {
            Some(namespace) => write!(f, "{kind} {namespace}/{}", self.name),
            None => write!(f, "{kind} {}", self.name),
        }
    }
}
