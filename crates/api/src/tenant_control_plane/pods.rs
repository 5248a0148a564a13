//! Probe settings of the control plane's containers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How patient the probes are. What is set for a component wins over what is set for all.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Probes {
    /// Liveness probes of all components.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub liveness: Option<ProbeSettings>,
    /// Readiness probes of all components.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness: Option<ProbeSettings>,
    /// Startup probes of all components.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup: Option<ProbeSettings>,
    /// Probes of kube-apiserver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_server: Option<ProbeSet>,
    /// Probes of kube-controller-manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller_manager: Option<ProbeSet>,
    /// Probes of kube-scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<ProbeSet>,
}

/// The probes of one component.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeSet {
    /// Liveness probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub liveness: Option<ProbeSettings>,
    /// Readiness probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness: Option<ProbeSettings>,
    /// Startup probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup: Option<ProbeSettings>,
}

/// Numbers of one probe. Those not set keep Steward's defaults.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeSettings {
    /// Seconds after the container started before the first probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86400))]
    pub initial_delay_seconds: Option<i32>,
    /// Seconds after which a probe counts as failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3600))]
    pub timeout_seconds: Option<i32>,
    /// Seconds between probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3600))]
    pub period_seconds: Option<i32>,
    /// Successes in a row that make a failed probe good again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub success_threshold: Option<i32>,
    /// Failures in a row that make the probe fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    pub failure_threshold: Option<i32>,
}
