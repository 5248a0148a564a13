//! One line about one tenant, as people and programs want it.

use jiff::Timestamp;
use kube::ResourceExt;
use serde::Serialize;
use steward_api::TenantControlPlane;
use steward_api::metadata::annotations;
use steward_api::tenant_control_plane::{SecretRefStatus, TenantControlPlaneStatus};

/// What `steward get` shows. The JSON form is stable: fields are added, never renamed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Namespace of the tenant.
    pub namespace: String,
    /// Name of the tenant.
    pub name: String,
    /// Version asked for.
    pub version: String,
    /// Version that runs, once one does.
    pub installed_version: Option<String>,
    /// One word.
    pub state: String,
    /// Whether the operator is told to leave it alone; then the rest is old news.
    pub paused: bool,
    /// Whether it can be used.
    pub available: bool,
    /// host:port.
    pub endpoint: Option<String>,
    /// `LoadBalancer`, `Ingress`, …
    pub mode: Option<String>,
    /// Pods of the control plane that are ready.
    pub ready_replicas: i32,
    /// Pods of the control plane that should be.
    pub replicas: i32,
    /// Nodes; not known where the tenant was not asked.
    pub workers: Option<u64>,
    /// Days until the first of its certificates ends; negative when one has.
    pub certificate_days_left: Option<i64>,
    /// Its datastore.
    pub datastore: Option<String>,
    /// Why it is not available: the first condition that does not hold.
    pub waiting_for: Option<String>,
    /// Seconds since it was made.
    pub age_seconds: i64,
}

impl Row {
    /// Reads it off a tenant.
    pub fn new(tenant: &TenantControlPlane, now: Timestamp) -> Self {
        let empty = TenantControlPlaneStatus::default();
        let status = tenant.status.as_ref().unwrap_or(&empty);
        let resources = status.kubernetes_resources.as_ref();
        let version = resources
            .and_then(|r| r.version.clone())
            .unwrap_or_default();
        let deployment = resources.and_then(|r| r.deployment.as_ref());
        let holds = |kind: &str| {
            status
                .conditions
                .iter()
                .any(|c| c.type_ == kind && c.status == "True")
        };
        let born = tenant
            .metadata
            .creation_timestamp
            .as_ref()
            .map_or(now, |t| t.0);
        Self {
            namespace: tenant.namespace().unwrap_or_default(),
            name: tenant.name_any(),
            version: tenant.spec.kubernetes.version.clone(),
            installed_version: version.version,
            state: version.status.as_str().to_owned(),
            paused: tenant.annotations().contains_key(annotations::PAUSED),
            available: holds("Available"),
            endpoint: status.control_plane_endpoint.clone(),
            mode: status
                .exposure
                .as_ref()
                .and_then(|e| e.mode)
                .map(|m| format!("{m:?}")),
            ready_replicas: deployment
                .and_then(|d| d.ready_replicas)
                .unwrap_or_default(),
            replicas: tenant.spec.control_plane.deployment.replicas,
            workers: None,
            certificate_days_left: days_left(status, now),
            datastore: status
                .storage
                .as_ref()
                .and_then(|s| s.data_store_name.clone()),
            waiting_for: waiting_for(status),
            age_seconds: now.as_second() - born.as_second(),
        }
    }

    /// The cells of a table line; the namespace only where there are several.
    pub fn cells(&self, wide: bool, namespaced: bool) -> Vec<String> {
        let or_dash = |v: &Option<String>| v.clone().unwrap_or_else(|| "-".to_owned());
        let mut cells = Vec::new();
        if namespaced {
            cells.push(self.namespace.clone());
        }
        cells.extend([
            self.name.clone(),
            self.version.clone(),
            if self.paused {
                "Paused".to_owned()
            } else {
                self.state.clone()
            },
            format!("{}/{}", self.ready_replicas, self.replicas),
            or_dash(&self.workers.map(|w| w.to_string())),
            or_dash(&self.certificate_days_left.map(|d| format!("{d}d"))),
            age(self.age_seconds),
        ]);
        if wide {
            cells.extend([
                or_dash(&self.mode),
                or_dash(&self.datastore),
                or_dash(&self.endpoint),
            ]);
            cells.push(or_dash(&self.waiting_for));
        } else {
            cells.push(or_dash(&self.endpoint));
        }
        cells
    }

    /// The heads over them.
    pub fn head(wide: bool, namespaced: bool) -> Vec<&'static str> {
        let mut head = if namespaced {
            vec!["NAMESPACE"]
        } else {
            Vec::new()
        };
        head.extend([
            "NAME", "VERSION", "STATE", "READY", "WORKERS", "CERTS", "AGE",
        ]);
        if wide {
            head.extend(["MODE", "DATASTORE"]);
        }
        head.push("ENDPOINT");
        if wide {
            head.push("WAITING FOR");
        }
        head
    }
}

fn waiting_for(status: &TenantControlPlaneStatus) -> Option<String> {
    let steps = status
        .conditions
        .iter()
        .filter(|c| !["Available", "Progressing"].contains(&c.type_.as_str()));
    let first = steps
        .filter(|c| c.status != "True")
        .find(|c| !c.message.is_empty())?;
    Some(format!("{}: {}", first.type_, first.message))
}

fn days_left(status: &TenantControlPlaneStatus, now: Timestamp) -> Option<i64> {
    let certificates = status.certificates.clone().unwrap_or_default();
    let kubeconfigs = status.kubeconfig.clone().unwrap_or_default();
    let all: [Option<SecretRefStatus>; 8] = [
        certificates.ca,
        certificates.api_server,
        certificates.api_server_kubelet_client,
        certificates.front_proxy_ca,
        certificates.front_proxy_client,
        kubeconfigs.admin,
        kubeconfigs.controller_manager,
        kubeconfigs.scheduler,
    ];
    let first = all
        .into_iter()
        .flatten()
        .filter_map(|s| s.expires)
        .map(|t| t.0)
        .min()?;
    Some((first.as_second() - now.as_second()).div_euclid(86_400))
}

/// As kubectl writes ages: 45s, 12m, 3h, 9d.
pub fn age(seconds: i64) -> String {
    match seconds {
        s if s < 120 => format!("{s}s"),
        s if s < 7200 => format!("{}m", s / 60),
        s if s < 172_800 => format!("{}h", s / 3600),
        s => format!("{}d", s / 86_400),
    }
}
