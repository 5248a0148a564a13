//! One line about one tenant, as people and programs want it.

use jiff::Timestamp;
use kube::ResourceExt;
use serde::Serialize;
use steward_api::TenantControlPlane;

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
    /// Whether it can be used.
    pub available: bool,
    /// host:port.
    pub endpoint: Option<String>,
    /// LoadBalancer, Ingress, …
    pub mode: Option<String>,
    /// Ready and wanted pods.
    pub ready: String,
    /// DataStore.
    pub datastore: Option<String>,
    /// Why it is not available: the first condition that does not hold.
    pub waiting_for: Option<String>,
    /// Seconds since it was made.
    pub age_seconds: i64,
}

impl Row {
    /// Reads it off a tenant.
    pub fn new(tenant: &TenantControlPlane, now: Timestamp) -> Self {
        let status = tenant.status.clone().unwrap_or_default();
        let resources = status.kubernetes_resources.unwrap_or_default();
        let version = resources.version.unwrap_or_default();
        let deployment = resources.deployment.unwrap_or_default();
        let wanted = tenant.spec.control_plane.deployment.replicas;
        let holds = |kind: &str| {
            status
                .conditions
                .iter()
                .any(|c| c.type_ == kind && c.status == "True")
        };
        let waiting = status
            .conditions
            .iter()
            .filter(|c| !["Available", "Progressing"].contains(&c.type_.as_str()))
            .find(|c| c.status != "True");
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
            available: holds("Available"),
            endpoint: status.control_plane_endpoint,
            mode: status
                .exposure
                .and_then(|e| e.mode)
                .map(|m| format!("{m:?}")),
            ready: format!("{}/{wanted}", deployment.ready_replicas.unwrap_or_default()),
            datastore: status.storage.and_then(|s| s.data_store_name),
            waiting_for: waiting.map(|c| format!("{}: {}", c.type_, c.message)),
            age_seconds: now.as_second() - born.as_second(),
        }
    }

    /// The cells of a table line.
    pub fn cells(&self, wide: bool) -> Vec<String> {
        let or_dash = |v: &Option<String>| v.clone().unwrap_or_else(|| "-".to_owned());
        let mut cells = vec![
            self.namespace.clone(),
            self.name.clone(),
            self.version.clone(),
            self.state.clone(),
            self.ready.clone(),
            or_dash(&self.endpoint),
            age(self.age_seconds),
        ];
        if wide {
            cells.extend([
                or_dash(&self.mode),
                or_dash(&self.datastore),
                or_dash(&self.waiting_for),
            ]);
        }
        cells
    }

    /// The heads over them.
    pub fn head(wide: bool) -> Vec<&'static str> {
        let mut head = vec![
            "NAMESPACE",
            "NAME",
            "VERSION",
            "STATE",
            "READY",
            "ENDPOINT",
            "AGE",
        ];
        if wide {
            head.extend(["MODE", "DATASTORE", "WAITING FOR"]);
        }
        head
    }
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
