//! What the operator counts, and the text it serves to Prometheus.
//!
//! Owns: every metric name. Per-tenant series exist only while the tenant does. Refuses: labels whose
//! values users choose freely, other than namespace and name.

use std::{
    fmt::Write as _,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
        info::Info,
    },
    registry::{Registry, Unit},
};

use crate::error::Class;

/// Labels of one tenant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct TenantLabels {
    /// Namespace of the `TenantControlPlane`.
    pub tcp_namespace: String,
    /// Its name.
    pub tcp_name: String,
}

/// Labels of one tenant's state.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct TenantStatusLabels {
    /// Namespace of the `TenantControlPlane`.
    pub tcp_namespace: String,
    /// Its name.
    pub tcp_name: String,
    /// What its status says.
    pub status: String,
}

/// Labels of one datastore.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct DatastoreLabels {
    /// Name of the `DataStore`.
    pub datastore: String,
}

/// Labels of a controller.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ControllerLabels {
    /// Which controller.
    pub controller: &'static str,
}

/// Labels of a failed reconcile.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ErrorLabels {
    /// Which controller.
    pub controller: &'static str,
    /// [`Class::as_str`].
    pub class: &'static str,
}

/// Labels of a write.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct WriteLabels {
    /// `management` or `tenant`.
    pub cluster: &'static str,
    /// Kind of the object.
    pub kind: String,
    /// `created`, `updated`, `unchanged`, `deleted` or `failed`.
    pub result: &'static str,
}

/// All metrics, and the registry that renders them.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    /// Time of a reconcile.
    pub reconcile: Family<ControllerLabels, Histogram>,
    /// Failed reconciles by what they ask for.
    pub errors: Family<ErrorLabels, Counter>,
    /// Writes to API servers.
    pub writes: Family<WriteLabels, Counter>,
    /// Planned objects that needed no write.
    pub skipped: Counter,
    /// 1 while this replica may write.
    pub leader: Gauge,
    /// 1 for the current status of each tenant.
    pub tenant_status: Family<TenantStatusLabels, Gauge>,
    /// When the first certificate of a tenant expires.
    pub certificate_expiry: Family<TenantLabels, Gauge>,
    /// 1 when a datastore answers and is not full.
    pub datastore_up: Family<DatastoreLabels, Gauge>,
    /// Bytes a datastore's database uses.
    pub datastore_bytes: Family<DatastoreLabels, Gauge>,
    /// Time of the last health check of a datastore.
    pub datastore_latency: Family<DatastoreLabels, Gauge<f64, AtomicU64>>,
    /// Tenants whose API server is being watched.
    pub tenants_watched: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("steward");
        let reconcile = Family::new_with_constructor(
            (|| Histogram::new(exponential_buckets(0.001, 2.0, 15))) as fn() -> Histogram,
        );
        let metrics_reconcile = reconcile.clone();
        registry.register_with_unit("reconcile", "Time of a reconcile", Unit::Seconds, reconcile);
        let errors = register(&mut registry, "reconcile_errors", "Failed reconciles");
        let writes = register(&mut registry, "writes", "Writes to API servers");
        let skipped = register(
            &mut registry,
            "writes_skipped",
            "Planned objects that needed no write",
        );
        let leader = register(&mut registry, "leader", "1 while this replica may write");
        let tenant_status = register(
            &mut registry,
            "tenant_control_plane_status",
            "1 for the current status of each tenant",
        );
        let certificate_expiry = register(
            &mut registry,
            "tenant_control_plane_certificate_expiry_timestamp_seconds",
            "When the first certificate of a tenant expires",
        );
        let datastore_up = register(
            &mut registry,
            "datastore_up",
            "1 when a datastore answers and is not full",
        );
        let datastore_bytes = register(
            &mut registry,
            "datastore_size_bytes",
            "Bytes a datastore's database uses",
        );
        let datastore_latency = register(
            &mut registry,
            "datastore_latency_seconds",
            "Time of the last health check",
        );
        let tenants_watched = register(
            &mut registry,
            "tenants_watched",
            "Tenants whose API server is being watched",
        );
        registry.register(
            "build",
            "Version of the operator",
            Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]),
        );
        Self {
            registry: Arc::new(registry),
            reconcile: metrics_reconcile,
            errors,
            writes,
            skipped,
            leader,
            tenant_status,
            certificate_expiry,
            datastore_up,
            datastore_bytes,
            datastore_latency,
            tenants_watched,
        }
    }
}

fn register<M>(registry: &mut Registry, name: &str, help: &str) -> M
where
    M: Clone + Default + prometheus_client::registry::Metric,
{
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

impl Metrics {
    /// The exposition text.
    pub fn render(&self) -> String {
        let mut text = String::new();
        if let Err(error) = encode(&mut text, &self.registry) {
            text.clear();
            // Writing to a String can't fail.
            let _ = write!(text, "# encoding failed: {error}\n# EOF\n");
        }
        text
    }

    /// Notes a reconcile that ended well or not.
    pub fn reconciled(&self, controller: &'static str, took: Duration, failed: Option<Class>) {
        self.reconcile
            .get_or_create(&ControllerLabels { controller })
            .observe(took.as_secs_f64());
        if let Some(class) = failed {
            self.errors
                .get_or_create(&ErrorLabels {
                    controller,
                    class: class.as_str(),
                })
                .inc();
        }
    }

    /// Notes a write.
    pub fn wrote(&self, cluster: &'static str, kind: &str, result: &'static str) {
        self.writes
            .get_or_create(&WriteLabels {
                cluster,
                kind: kind.to_owned(),
                result,
            })
            .inc();
    }

    /// Replaces the status of a tenant: `before` no longer holds, `now` does.
    pub fn tenant_is(&self, tenant: &TenantLabels, before: Option<&str>, now: &str) {
        let labels = |status: &str| TenantStatusLabels {
            tcp_namespace: tenant.tcp_namespace.clone(),
            tcp_name: tenant.tcp_name.clone(),
            status: status.to_owned(),
        };
        if let Some(before) = before.filter(|before| *before != now) {
            self.tenant_status.remove(&labels(before));
        }
        self.tenant_status.get_or_create(&labels(now)).set(1);
    }

    /// Forgets a tenant that is gone.
    pub fn tenant_gone(&self, tenant: &TenantLabels, last: Option<&str>) {
        if let Some(last) = last {
            self.tenant_status.remove(&TenantStatusLabels {
                tcp_namespace: tenant.tcp_namespace.clone(),
                tcp_name: tenant.tcp_name.clone(),
                status: last.to_owned(),
            });
        }
        self.certificate_expiry.remove(tenant);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_has_one_status_and_none_when_gone() {
        let metrics = Metrics::default();
        let tenant = TenantLabels {
            tcp_namespace: "a".into(),
            tcp_name: "t".into(),
        };
        metrics.tenant_is(&tenant, None, "Provisioning");
        metrics.tenant_is(&tenant, Some("Provisioning"), "Ready");
        let text = metrics.render();
        assert!(text.contains("steward_tenant_control_plane_status{tcp_namespace=\"a\",tcp_name=\"t\",status=\"Ready\"} 1"), "{text}");
        assert!(!text.contains("Provisioning"));
        metrics.tenant_gone(&tenant, Some("Ready"));
        assert!(!metrics.render().contains("tcp_name"));
    }
}
