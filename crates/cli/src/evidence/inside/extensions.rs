//! Webhooks and aggregated APIs inside the tenant: is somebody behind them?
//!
//! Without the right to look, nothing is said: these are the tenant's own affairs.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

/// What is registered and has nobody to answer for it.
pub(super) async fn orphaned(client: &Client) -> Vec<String> {
    let (apis, hooks) = tokio::join!(apis(client), webhooks(client));
    apis.into_iter().chain(hooks).collect()
}

async fn apis(client: &Client) -> Vec<String> {
    let api: Api<APIService> = Api::all(client.clone());
    let found = api.list(&ListParams::default()).await;
    let found = found.map(|l| l.items).unwrap_or_default();
    let down = found.iter().filter_map(|a| {
        let conditions = a.status.as_ref()?.conditions.as_ref()?;
        let available = conditions.iter().find(|c| c.type_ == "Available")?;
        let why = available.reason.clone().unwrap_or_default();
        (available.status == "False").then(|| format!("APIService {}: {why}", a.name_any()))
    });
    down.collect()
}

/// Those that stop what they watch when nobody answers.
async fn webhooks(client: &Client) -> Vec<String> {
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let everything = ListParams::default();
    let (validating, mutating) =
        tokio::join!(validating.list(&everything), mutating.list(&everything));
    let mut services: BTreeMap<(String, String), String> = BTreeMap::new();
    for hook in validating.map(|l| l.items).unwrap_or_default() {
        let name = hook.name_any();
        for inner in hook.webhooks.unwrap_or_default() {
            note(
                &mut services,
                &name,
                inner.failure_policy.as_deref(),
                &inner.client_config,
            );
        }
    }
    for hook in mutating.map(|l| l.items).unwrap_or_default() {
        let name = hook.name_any();
        for inner in hook.webhooks.unwrap_or_default() {
            note(
                &mut services,
                &name,
                inner.failure_policy.as_deref(),
                &inner.client_config,
            );
        }
    }
    let mut orphaned = Vec::new();
    for ((namespace, service), hook) in services {
        if !answered(client, &namespace, &service).await {
            orphaned.push(format!(
                "webhook {hook}: Service {namespace}/{service} has nobody behind it"
            ));
        }
    }
    orphaned
}

fn note(
    services: &mut BTreeMap<(String, String), String>,
    hook: &str,
    policy: Option<&str>,
    config: &WebhookClientConfig,
) {
    if policy == Some("Ignore") {
        return;
    }
    if let Some(service) = &config.service {
        services.insert(
            (service.namespace.clone(), service.name.clone()),
            hook.to_owned(),
        );
    }
}

/// In doubt, yes.
async fn answered(client: &Client, namespace: &str, service: &str) -> bool {
    let api: Api<EndpointSlice> = Api::namespaced(client.clone(), namespace);
    let wanted = ListParams::default().labels(&format!("kubernetes.io/service-name={service}"));
    let Ok(slices) = api.list(&wanted).await else {
        return true;
    };
    let mut endpoints = slices.iter().flat_map(|s| s.endpoints.iter());
    endpoints.any(|e| e.conditions.as_ref().and_then(|c| c.ready).unwrap_or(true))
}
