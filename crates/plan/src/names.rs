//! Names of everything a tenant consists of: objects, keys of Secrets, labels, files in
//! the pod. They are those of the original, so that clients written for it keep working.

use steward_api::metadata::labels;

/// Who owns the fields we write.
pub const FIELD_MANAGER: &str = "steward-operator";
/// Value of [`labels::PROJECT`].
pub const PROJECT: &str = "steward";
/// Name of the pods' port that clients enter by: the gate's if there is one, the API
/// server's own otherwise. The Service targets it by name, so that pods with and without
/// gate can serve side by side while one replaces the other.
pub const ENTRY_PORT: &str = "entry";
/// Prefix of the annotations on pods that carry checksums of what they were made from.
pub const COMPONENT_PREFIX: &str = "component.steward.butlerlabs.dev";
/// Port of the API server inside the pod.
pub const API_SERVER_PORT: u16 = 6443;
/// Port of the gate inside the pod.
pub const GATE_PORT: u16 = 7443;
/// Port of the gate for probes and metrics.
pub const GATE_ADMIN_PORT: u16 = 7480;
/// Port of the konnectivity server for agents, inside the pod.
pub const KONNECTIVITY_PORT: u16 = 8132;
/// ALPN id by which the gate knows konnectivity agents.
pub const KONNECTIVITY_ALPN: &str = "steward-konnectivity/1";
/// Port that the node proxy answers.
pub const TCP_PROXY_PORT: u16 = 6443;
/// Where the node proxy that opens TLS listens, on every address of its node: another port,
/// so that it can start beside one of the other kind.
pub const TERMINATE_PORT: u16 = 6444;

/// Names of the objects of one tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// Name of the tenant.
    pub tenant: String,
    /// Its namespace.
    pub namespace: String,
}

macro_rules! suffixed {
    ($($(#[$doc:meta])* $name:ident => $suffix:literal,)+) => {
        impl Names {
            $($(#[$doc])* pub fn $name(&self) -> String { format!("{}{}", self.tenant, $suffix) })+
        }
    };
}

suffixed! {
    /// Secret: the cluster CA.
    ca => "-ca",
    /// Secret: CA of the front proxy.
    front_proxy_ca => "-front-proxy-ca-certificate",
    /// Secret: keys for service account tokens.
    service_account => "-sa-certificate",
    /// Secret: the API server's certificate.
    api_server => "-api-server-certificate",
    /// Secret: certificate with which the API server calls kubelets.
    kubelet_client => "-api-server-kubelet-client-certificate",
    /// Secret: certificate with which the API server calls aggregated APIs.
    front_proxy_client => "-front-proxy-client-certificate",
    /// Secret: kubeconfigs of administrators.
    admin_kubeconfig => "-admin-kubeconfig",
    /// Secret: kubeconfig of the controller manager.
    controller_manager_kubeconfig => "-controller-manager-kubeconfig",
    /// Secret: kubeconfig of the scheduler.
    scheduler_kubeconfig => "-scheduler-kubeconfig",
    /// Secret: connection to the datastore.
    datastore_config => "-datastore-config",
    /// Secret: client certificate for the datastore.
    datastore_certificate => "-datastore-certificate",
    /// Secret: certificate of the konnectivity server.
    konnectivity_certificate => "-konnectivity-certificate",
    /// Secret: kubeconfig of the konnectivity server.
    konnectivity_kubeconfig => "-konnectivity-kubeconfig",
    /// Secret: certificate of the gate's end of tunnels.
    gate_certificate => "-gate-certificate",
    /// Secret: certificate of the node proxy in Terminate mode.
    tcp_proxy_certificate => "-tcp-proxy-certificate",
    /// `ConfigMap`: kubeadm's configuration.
    kubeadm_config => "-kubeadmconfig",
    /// `ConfigMap`: says where the API server's calls go, usually through konnectivity.
    egress_selector => "-konnectivity-egress-selector-configuration",
    /// Second TLSRoute.
    konnectivity_route => "-konnectivity",
}

impl Names {
    /// Labels of everything that belongs to the tenant.
    pub fn labels(&self, component: &str) -> std::collections::BTreeMap<String, String> {
        let mut all = self.selector();
        all.insert(labels::PROJECT.into(), PROJECT.into());
        all.insert(labels::COMPONENT.into(), component.into());
        all
    }

    /// Label that selects the tenant's pods, and all of its objects.
    pub fn selector(&self) -> std::collections::BTreeMap<String, String> {
        [(labels::NAME.to_owned(), self.tenant.clone())].into()
    }

    /// `<tcp>.<ns>.svc`: how the operator reaches the tenant.
    pub fn service_host(&self) -> String {
        format!("{}.{}.svc", self.tenant, self.namespace)
    }
}

/// Annotation on a tenant: a JSON merge patch of kube-proxy's configuration, such as
/// `{"mode":"iptables"}`.
pub const KUBE_PROXY_ANNOTATION: &str = "steward.butlerlabs.dev/kube-proxy-config";
