//! Entries of the status for single objects: name, checksum, time of change, expiry.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use steward_api::{
    TenantControlPlaneStatus,
    tenant_control_plane::{
        AddonStatus, AddonsStatus, CertificatesStatus, EtcdCertificatesStatus,
        KonnectivityAgentMode, KonnectivityAgentStatus, KonnectivityStatus, KubeadmConfigStatus,
        KubeadmPhaseStatus, KubeconfigsStatus, ObjectRefStatus, PhaseStatus, SecretRefStatus,
        StorageSetupStatus, StorageStatus, TcpProxyMode, TcpProxyStatus,
    },
};
use steward_pki::{Reading, inspect};

use super::super::since;
use crate::{
    build::pki::content_checksum,
    object::{Kind, Object},
    observed::Observed,
    outcome::Plan,
    secret,
    validate::Validated,
    way::{Ways, authority},
};

/// What entries are made from.
pub(super) struct Entries<'a> {
    pub(super) tenant: &'a Validated,
    pub(super) observed: &'a Observed,
    pub(super) plan: &'a Plan,
    pub(super) old: &'a TenantControlPlaneStatus,
}

impl Entries<'_> {
    fn planned(&self, name: &str) -> Option<&Object> {
        let kinds = [Kind::Secret, Kind::ConfigMap];
        self.plan
            .objects
            .iter()
            .find(|object| object.key.name == name && kinds.contains(&object.key.kind))
    }

    /// An entry of a Secret; the old one while the Secret isn't planned, or couldn't be made: what is told
    /// here has been there.
    fn secret(
        &self,
        name: &str,
        file: &str,
        old: Option<&SecretRefStatus>,
    ) -> Option<SecretRefStatus> {
        let namespace = &self.tenant.names.namespace;
        let made = self.observed.live.get(Kind::Secret, namespace, name);
        let Some(object) = self.planned(name).filter(|_| made.is_some()) else {
            return old.cloned();
        };
        let checksum = content_checksum(object);
        let expires = secret::data(&object.body)
            .get(file)
            .and_then(|text| expiry(text));
        Some(SecretRefStatus {
            secret_name: Some(name.to_owned()),
            last_update: Some(
                self.time(old.map(|old| (&old.checksum, &old.last_update)), &checksum),
            ),
            checksum: Some(checksum),
            expires: expires.map(Time),
        })
    }

    fn time(&self, old: Option<(&Option<String>, &Option<Time>)>, checksum: &str) -> Time {
        since(old, checksum, self.observed.now)
    }

    pub(super) fn storage(&self) -> Option<StorageStatus> {
        let old = self.old.storage.clone();
        let Some(storage) = &self.tenant.storage else {
            return old;
        };
        let old = old.unwrap_or_default();
        let names = &self.tenant.names;
        let setup = secret::checksum(&(&storage.schema, &storage.user, &storage.store.name));
        let before = old
            .setup
            .as_ref()
            .map(|setup| (&setup.checksum, &setup.last_update));
        Some(StorageStatus {
            driver: Some(storage.store.driver.clone()),
            data_store_name: Some(storage.store.name.clone()),
            config: self.secret(&names.datastore_config(), "", old.config.as_ref()),
            setup: Some(StorageSetupStatus {
                schema: Some(storage.schema.clone()),
                user: Some(storage.user.clone()),
                last_update: Some(self.time(before, &setup)),
                checksum: Some(setup),
            }),
            certificate: self.secret(
                &names.datastore_certificate(),
                "server.crt",
                old.certificate.as_ref(),
            ),
        })
    }

    pub(super) fn certificates(&self) -> CertificatesStatus {
        let old = self.old.certificates.clone().unwrap_or_default();
        let names = &self.tenant.names;
        CertificatesStatus {
            ca: self.secret(&names.ca(), "ca.crt", old.ca.as_ref()),
            api_server: self.secret(
                &names.api_server(),
                "apiserver.crt",
                old.api_server.as_ref(),
            ),
            api_server_kubelet_client: self.secret(
                &names.kubelet_client(),
                "apiserver-kubelet-client.crt",
                old.api_server_kubelet_client.as_ref(),
            ),
            front_proxy_ca: self.secret(
                &names.front_proxy_ca(),
                "front-proxy-ca.crt",
                old.front_proxy_ca.as_ref(),
            ),
            front_proxy_client: self.secret(
                &names.front_proxy_client(),
                "front-proxy-client.crt",
                old.front_proxy_client.as_ref(),
            ),
            sa: self.secret(&names.service_account(), "", old.sa.as_ref()),
            etcd: self
                .secret(
                    &names.datastore_certificate(),
                    "server.crt",
                    old.etcd.as_ref().and_then(|etcd| etcd.api_server.as_ref()),
                )
                .map(|entry| EtcdCertificatesStatus {
                    ca: None,
                    api_server: Some(entry),
                }),
        }
    }

    pub(super) fn kubeconfigs(&self) -> Option<KubeconfigsStatus> {
        let old = self.old.kubeconfig.clone().unwrap_or_default();
        let names = &self.tenant.names;
        let all = KubeconfigsStatus {
            admin: self.secret(&names.admin_kubeconfig(), "admin.conf", old.admin.as_ref()),
            controller_manager: self.secret(
                &names.controller_manager_kubeconfig(),
                "controller-manager.conf",
                old.controller_manager.as_ref(),
            ),
            scheduler: self.secret(
                &names.scheduler_kubeconfig(),
                "scheduler.conf",
                old.scheduler.as_ref(),
            ),
        };
        (all != KubeconfigsStatus::default()).then_some(all)
    }

    pub(super) fn kubeadm_config(&self) -> Option<KubeadmConfigStatus> {
        let old = self.old.kubeadm_config.clone();
        let name = self.tenant.names.kubeadm_config();
        let Some(object) = self.planned(&name) else {
            return old;
        };
        let checksum = content_checksum(object);
        let before = old.as_ref().map(|old| (&old.checksum, &old.last_update));
        Some(KubeadmConfigStatus {
            config_map_name: Some(name),
            last_update: Some(self.time(before, &checksum)),
            checksum: Some(checksum),
        })
    }

    pub(super) fn phases(&self) -> Option<KubeadmPhaseStatus> {
        let old = self.old.kubeadm_phase.clone();
        let info = self
            .plan
            .tenant_objects
            .iter()
            .find(|object| object.key.name == "cluster-info");
        let Some(info) = info else { return old };
        let checksum = content_checksum(info);
        let before = old.as_ref().and_then(|old| old.bootstrap_token.as_ref());
        let before = before.map(|old| (&old.checksum, &old.last_update));
        Some(KubeadmPhaseStatus {
            bootstrap_token: Some(PhaseStatus {
                last_update: Some(self.time(before, &checksum)),
                checksum: Some(checksum),
            }),
        })
    }

    pub(super) fn addons(&self, ways: Option<&Ways>) -> Option<AddonsStatus> {
        let addons = &self.tenant.spec.addons;
        let enabled = |on: bool| {
            on.then_some(AddonStatus {
                enabled: true,
                last_update: None,
            })
        };
        let all = AddonsStatus {
            core_dns: enabled(addons.core_dns.is_some()),
            kube_proxy: enabled(addons.kube_proxy.is_some()),
            konnectivity: addons
                .konnectivity
                .as_ref()
                .map(|spec| self.konnectivity(spec.agent.mode, ways)),
            tcp_proxy: self.tcp_proxy(),
            worker_bootstrap: None,
        };
        (all != AddonsStatus::default()).then_some(all)
    }

    fn konnectivity(&self, mode: KonnectivityAgentMode, ways: Option<&Ways>) -> KonnectivityStatus {
        let names = &self.tenant.names;
        let old = self
            .old
            .addons
            .as_ref()
            .and_then(|addons| addons.konnectivity.clone());
        let old = old.unwrap_or_default();
        let way = ways.map(|ways| &ways.active);
        KonnectivityStatus {
            enabled: true,
            config_map: Some(reference(&names.egress_selector(), &names.namespace)),
            certificate: self.secret(
                &names.konnectivity_certificate(),
                "tls.crt",
                old.certificate.as_ref(),
            ),
            kubeconfig: self.secret(
                &names.konnectivity_kubeconfig(),
                "konnectivity-server.conf",
                old.kubeconfig.as_ref(),
            ),
            sa: Some(reference("konnectivity-agent", "kube-system")),
            cluster_role_binding: Some(ObjectRefStatus {
                name: Some("system:konnectivity-server".into()),
                ..ObjectRefStatus::default()
            }),
            agent: Some(KonnectivityAgentStatus {
                name: Some("konnectivity-agent".into()),
                namespace: Some("kube-system".into()),
                mode: Some(mode),
                last_update: None,
            }),
            endpoint: way.map(|way| authority(&way.konnectivity_host, way.konnectivity_port)),
        }
    }

    fn tcp_proxy(&self) -> Option<TcpProxyStatus> {
        let proxy = self.tenant.node_proxy.as_ref()?;
        let own = || Some(reference("steward-tcp-proxy", "kube-system"));
        let terminate = proxy.mode == TcpProxyMode::Terminate;
        Some(TcpProxyStatus {
            enabled: true,
            mode: Some(proxy.mode),
            address: (!terminate).then(|| proxy.address.to_string()),
            daemon_set: own().filter(|_| !terminate),
            deployment: own().filter(|_| terminate),
            service: own().filter(|_| terminate),
            service_account: own().filter(|_| terminate),
            cluster_role: None,
            cluster_role_binding: None,
        })
    }
}

fn reference(name: &str, namespace: &str) -> ObjectRefStatus {
    ObjectRefStatus {
        name: Some(name.into()),
        namespace: Some(namespace.into()),
        ..ObjectRefStatus::default()
    }
}

/// When a certificate, or the one in a kubeconfig, ends.
fn expiry(text: &str) -> Option<jiff::Timestamp> {
    let certificate = match Reading::parse(text) {
        Some(reading) => reading.client?.certificate,
        None => text.to_owned(),
    };
    inspect(&certificate).ok().map(|facts| facts.not_after)
}
