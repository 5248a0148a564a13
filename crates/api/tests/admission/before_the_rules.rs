//! Objects that were stored before a rule existed must not be stuck because of it.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, CustomResourceExt, ResourceExt};
use serde_json::{Value, json};
use steward_api::TenantControlPlane;
use steward_lab::fixture::ApiServer;

use crate::server::{PATIENCE, expect, install_policies, tenant};

/// Nothing about it would be accepted today.
fn bad() -> Result<TenantControlPlane> {
    let mut bad = tenant(
        "metadata: {name: blue-konnectivity}
spec: {kubernetes: {version: v1.19.0}, controlPlane: {ingress: {}}, networkProfile: {podCidr: x}}",
    );
    bad["metadata"]["finalizers"] = json!(["example.com/cleanup"]);
    Ok(serde_json::from_value(bad)?)
}

/// Stores the tenant under a CRD without rules, and then brings the rules.
async fn stored_before(client: &Client) -> Result<()> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.create(&PostParams::default(), &TenantControlPlane::crd())
        .await?;
    let tenants: Api<TenantControlPlane> = Api::default_namespaced(client.clone());
    let bad = bad()?;
    steward_lab::poll(PATIENCE, async || {
        tenants.create(&PostParams::default(), &bad).await
    })
    .await
    .context("store a tenant without rules")?;
    let name = TenantControlPlane::crd_name();
    let mut ruled = steward_api::crds::tenant_control_plane()?;
    ruled.metadata.resource_version = crds.get(name).await?.resource_version();
    crds.replace(name, &PostParams::default(), &ruled).await?;
    install_policies(client).await
}

#[tokio::test]
async fn a_tenant_from_before_the_rules_is_reported_on_and_deleted() -> Result<()> {
    let server = ApiServer::start().await?;
    let client = server.client().await?;
    let before_1_33 = client.apiserver_version().await?.minor.parse::<u32>()? < 33;
    Box::pin(stored_before(&client)).await?;
    let tenants: Api<TenantControlPlane> = Api::default_namespaced(client);
    let params = PatchParams::default();
    let name = "blue-konnectivity";
    let merge = async |change: Value| tenants.patch(name, &params, &Patch::Merge(&change)).await;
    let worse = json!({ "spec": { "networkProfile": { "podCidr": "y" } } });
    let refusal = "networkProfile.podCidr: not a CIDR";
    steward_lab::poll(PATIENCE, async || {
        expect(merge(worse.clone()).await, refusal)
    })
    .await
    .context("the rules hold for what changes")?;
    // A new value each time: what doesn't change isn't looked at.
    let attempt = AtomicUsize::new(0);
    steward_lab::poll(PATIENCE, async || {
        let value = attempt.fetch_add(1, Ordering::Relaxed).to_string();
        let changed = merge(json!({ "metadata": { "annotations": { "attempt": value } } })).await;
        expect(changed, "neither a hostname nor a domain")
    })
    .await
    .context("the policy holds for what changes")?;

    let status = json!({ "status": { "controlPlaneEndpoint": "192.0.2.1:6443" } });
    let reported = tenants
        .patch_status(name, &params, &Patch::Merge(&status))
        .await;
    if before_1_33 {
        // It looks at the whole object when its status is written. The rest works.
        expect(reported, refusal)?;
    } else {
        reported.context("report")?;
    }
    merge(json!({ "metadata": { "labels": { "a": "b" } } }))
        .await
        .context("label it")?;
    tenants.delete(name, &DeleteParams::default()).await?;
    merge(json!({ "metadata": { "finalizers": null } }))
        .await
        .context("let it go")?;
    ensure!(tenants.get_opt(name).await?.is_none());
    Ok(())
}
