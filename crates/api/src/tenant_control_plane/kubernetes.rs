//! `spec.kubernetes`: version, kubelets and admission plugins.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Kubernetes version and how nodes are configured.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesSpec {
    /// Kubernetes version, for example `v1.36.3`. Raise it one minor version at a time; it can't be
    /// lowered below the version that runs.
    #[schemars(length(min = 5, max = 64))]
    pub version: String,
    /// How kubelets of nodes that join are configured.
    #[serde(default)]
    pub kubelet: KubeletSpec,
    /// Admission plugins to turn on in kube-apiserver, instead of Steward's list. Without it, those
    /// that Kubernetes turns on by default and `NodeRestriction`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 48))]
    pub admission_controllers: Option<Vec<AdmissionController>>,
}

/// How kubelets of nodes that join are configured.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeletSpec {
    /// JSON patches (RFC 6902) to the `KubeletConfiguration` that nodes get when they join.
    #[serde(
        default,
        rename = "configurationJSONPatches",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(length(max = 64))]
    pub configuration_json_patches: Vec<JsonPatchOperation>,
    /// Which of a node's addresses the API server uses to reach its kubelet, best first.
    #[serde(default = "default_address_types")]
    #[schemars(length(min = 1, max = 5))]
    pub preferred_address_types: Vec<KubeletAddressType>,
    /// Deprecated: the cgroup driver of the kubelets. Use a JSON patch on `/cgroupDriver` instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroupfs: Option<CgroupDriver>,
}

impl Default for KubeletSpec {
    fn default() -> Self {
        Self {
            configuration_json_patches: Vec::new(),
            preferred_address_types: default_address_types(),
            cgroupfs: None,
        }
    }
}

/// One operation of a JSON patch.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JsonPatchOperation {
    /// What to do.
    pub op: JsonPatchOp,
    /// Where, as a JSON pointer such as `/maxPods`.
    #[schemars(length(max = 1024))]
    pub path: String,
    /// Where from, for `move` and `copy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub from: Option<String>,
    /// New value, for `add`, `replace` and `test`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_value")]
    pub value: Option<serde_json::Value>,
}

/// Operations of a JSON patch.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum JsonPatchOp {
    /// Add a value.
    #[default]
    Add,
    /// Remove what is there.
    Remove,
    /// Replace what is there.
    Replace,
    /// Move from another place.
    Move,
    /// Copy from another place.
    Copy,
    /// Fail unless this value is there.
    Test,
}

/// Kinds of addresses of a node.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
pub enum KubeletAddressType {
    /// Name of the host.
    Hostname,
    /// Address inside the network.
    InternalIP,
    /// Address outside the network.
    ExternalIP,
    /// Name inside the network.
    InternalDNS,
    /// Name outside the network.
    ExternalDNS,
}

impl KubeletAddressType {
    /// As kube-apiserver's flag spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hostname => "Hostname",
            Self::InternalIP => "InternalIP",
            Self::ExternalIP => "ExternalIP",
            Self::InternalDNS => "InternalDNS",
            Self::ExternalDNS => "ExternalDNS",
        }
    }
}

/// Cgroup drivers of a kubelet.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CgroupDriver {
    /// Leave cgroups to systemd.
    Systemd,
    /// Write cgroups directly.
    Cgroupfs,
}

/// Name of an admission plugin of kube-apiserver.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct AdmissionController(pub String);

impl JsonSchema for AdmissionController {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AdmissionController".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": ADMISSION_CONTROLLERS })
    }
}

/// Every admission plugin that some kube-apiserver since 1.23 knows.
pub const ADMISSION_CONTROLLERS: &[&str] = &[
    "AlwaysAdmit",
    "AlwaysDeny",
    "AlwaysPullImages",
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "ClusterTrustBundleAttest",
    "DefaultIngressClass",
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "DenyServiceExternalIPs",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "LimitPodHardAntiAffinityTopology",
    "LimitRanger",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "NamespaceLifecycle",
    "NodeDeclaredFeatureValidator",
    "NodeRestriction",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "PersistentVolumeLabel",
    "PodNodeSelector",
    "PodSecurity",
    "PodSecurityPolicy",
    "PodTolerationRestriction",
    "PodTopologyLabels",
    "Priority",
    "ResourceQuota",
    "RuntimeClass",
    "SecurityContextDeny",
    "ServiceAccount",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
];

fn default_address_types() -> Vec<KubeletAddressType> {
    vec![
        KubeletAddressType::InternalIP,
        KubeletAddressType::ExternalIP,
        KubeletAddressType::Hostname,
    ]
}

fn any_value(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}
