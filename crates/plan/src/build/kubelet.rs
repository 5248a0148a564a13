//! The configuration that kubelets get when they join: kubeadm's defaults, then the
//! user's patches.

use serde_json::{Value, json};
use steward_api::{TenantControlPlaneSpec, tenant_control_plane::CgroupDriver};

use crate::{problem::Problem, validate::Network, version::Version};

/// The configuration, or what is wrong with the patches.
pub(crate) fn configuration(
    spec: &TenantControlPlaneSpec,
    network: &Network,
    version: &Version,
) -> Result<Value, Problem> {
    let mut config = defaults(spec, network, version);
    let field = "spec.kubernetes.kubelet.configurationJSONPatches";
    let patches = &spec.kubernetes.kubelet.configuration_json_patches;
    if patches.is_empty() {
        return Ok(config);
    }
    let fault = |error: &dyn std::fmt::Display| {
        let message =
            format!("can't be applied to the KubeletConfiguration ({error}): check path and value");
        Problem::invalid(field, message)
    };
    let text = serde_json::to_value(patches).map_err(|error| fault(&error))?;
    let patch: json_patch::Patch = serde_json::from_value(text).map_err(|error| fault(&error))?;
    json_patch::patch(&mut config, &patch).map_err(|error| fault(&error))?;
    Ok(config)
}

fn defaults(spec: &TenantControlPlaneSpec, network: &Network, version: &Version) -> Value {
    let driver = match spec.kubernetes.kubelet.cgroupfs {
        Some(CgroupDriver::Cgroupfs) => "cgroupfs",
        Some(CgroupDriver::Systemd) | None => "systemd",
    };
    let dns: Vec<String> = network.dns_ips.iter().map(ToString::to_string).collect();
    let mut config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"cacheTTL": "0s", "enabled": true},
            "x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"},
        },
        "authorization": {
            "mode": "Webhook",
            "webhook": {"cacheAuthorizedTTL": "0s", "cacheUnauthorizedTTL": "0s"},
        },
        "cgroupDriver": driver,
        "clusterDNS": dns,
        "clusterDomain": network.domain,
        "cpuManagerReconcilePeriod": "0s",
        "evictionPressureTransitionPeriod": "0s",
        "fileCheckFrequency": "0s",
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": 10248,
        "httpCheckFrequency": "0s",
        "imageMinimumGCAge": "0s",
        "logging": {
            "flushFrequency": 0,
            "options": {"json": {"infoBufferSize": "0"}},
            "verbosity": 0,
        },
        "memorySwap": {},
        "nodeStatusReportFrequency": "0s",
        "nodeStatusUpdateFrequency": "0s",
        "rotateCertificates": true,
        "runtimeRequestTimeout": "0s",
        "shutdownGracePeriod": "0s",
        "shutdownGracePeriodCriticalPods": "0s",
        "staticPodPath": "/etc/kubernetes/manifests",
        "streamingConnectionIdleTimeout": "0s",
        "syncFrequency": "0s",
        "volumeStatsAggPeriod": "0s",
    });
    // The zero durations stand for the kubelet's own defaults, as kubeadm writes them:
    // a `replace` patch on one of them needs it to be there.
    if version.minor() >= 28 {
        config["containerRuntimeEndpoint"] = json!("");
        config["imageMaximumGCAge"] = json!("0s");
    }
    if version.minor() < 30 {
        config
            .as_object_mut()
            .map(|fields| fields.remove("imageMaximumGCAge"));
    }
    config
}
