//! Changes that are refused, and those that look like it and are not.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::server::{Server, datastore, expect, tenant, yaml};

/// Creates `base` and tries each change: an empty sentence means that it is accepted.
async fn try_changes(server: &Server, base: &Value, changes: &[(&str, &str)]) -> Result<()> {
    server.create(base).await?;
    for (change, sentence) in changes {
        let answer = server.change(base, &yaml(change)).await;
        if sentence.is_empty() {
            answer.with_context(|| (*change).to_owned())?;
        } else {
            expect(answer, sentence).with_context(|| (*change).to_owned())?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn what_is_fixed_at_creation_stays() -> Result<()> {
    let server = Server::new("fixed").await?;
    let base = tenant(
        "spec: {dataStore: default, dataStoreSchema: s, dataStoreUsername: u, certificates: {caSecretName: mine}}",
    );
    let changes = [
        (
            "spec: {dataStore: null}",
            "unsetting the dataStore is not supported",
        ),
        ("spec: {dataStore: other}", ""),
        (
            "spec: {dataStoreSchema: t}",
            "changing the dataStoreSchema is not supported",
        ),
        (
            "spec: {dataStoreSchema: null}",
            "changing the dataStoreSchema is not supported",
        ),
        (
            "spec: {dataStoreUsername: t}",
            "changing the dataStoreUsername is not supported",
        ),
        (
            "spec: {certificates: null}",
            "certificates.caSecretName: can't be changed",
        ),
        (
            "spec: {certificates: {caSecretName: other}}",
            "certificates.caSecretName: can't be changed",
        ),
        ("spec: {certificates: {keyAlgorithm: RSA}}", ""),
        (
            "spec: {networkProfile: {clusterDomain: other.local}}",
            "changing the cluster domain is not supported",
        ),
        (
            "spec: {networkProfile: {serviceCidr: 10.97.0.0/16}}",
            "networkProfile.serviceCidr: can't be changed",
        ),
        (
            "spec: {networkProfile: {podCidr: 10.245.0.0/16}}",
            "networkProfile.podCidr: can't be changed",
        ),
        ("spec: {networkProfile: {serviceCidr: 10.96.0.0/16}}", ""),
        (
            "spec: {networkProfile: {serviceCidrs: [10.96.0.0/16, 'fd00::/112']}}",
            "",
        ),
        ("spec: {networkProfile: {port: 7443}}", ""),
    ];
    try_changes(&server, &base, &changes).await
}

#[tokio::test]
async fn a_tenant_stays_where_its_data_is() -> Result<()> {
    let server = Server::new("data").await?;
    let base = tenant("spec: {dataStore: mispelt}");
    try_changes(&server, &base, &[("spec: {dataStore: default}", "")]).await?;
    let used = json!({ "storage": { "dataStoreName": "default" } });
    server.report(&base, &used).await?;
    let moved = server
        .change(&base, &yaml("spec: {dataStore: other}"))
        .await;
    expect(
        moved,
        "spec.dataStore: the tenant's data is in the DataStore",
    )?;
    let same = yaml("spec: {dataStore: default, writePermissions: {blockUpdate: true}}");
    server.change(&base, &same).await?;
    server.report(&base, &used).await?;
    Ok(())
}

#[tokio::test]
async fn a_load_balancer_class_is_fixed_only_while_there_is_a_load_balancer() -> Result<()> {
    let server = Server::new("class").await?;
    let base = tenant(
        "spec: {controlPlane: {service: {serviceType: LoadBalancer}}, networkProfile: {loadBalancerClass: a/b}}",
    );
    let fixed = "LoadBalancerClass cannot be set, unset or changed at runtime";
    let changes = [
        ("spec: {networkProfile: {loadBalancerClass: c/d}}", fixed),
        ("spec: {networkProfile: {loadBalancerClass: null}}", fixed),
        (
            "spec: {networkProfile: {loadBalancerClass: null}, controlPlane: {service: {serviceType: ClusterIP}, ingress: {hostname: a.example.com}}}",
            "",
        ),
        (
            "spec: {networkProfile: {loadBalancerClass: c/d}, controlPlane: {service: {serviceType: LoadBalancer}, ingress: null}}",
            "",
        ),
    ];
    try_changes(&server, &base, &changes).await
}

#[tokio::test]
async fn versions_go_up_one_minor_at_a_time_from_what_runs() -> Result<()> {
    let server = Server::new("steps").await?;
    let base = tenant("spec: {kubernetes: {version: v1.34.2}}");
    try_changes(
        &server,
        &base,
        &[("spec: {kubernetes: {version: v1.33.1}}", "")],
    )
    .await?;
    let installed = json!({ "kubernetesResources": { "version": { "version": "v1.33.1", "status": "Ready" } } });
    server.report(&base, &installed).await?;
    let skips = "unable to upgrade to a minor version in a non-sequential mode; write the next minor version";
    let downgrade = "unable to downgrade a TenantControlPlane below the version that runs";
    for (version, sentence) in [
        ("v1.35.0", skips),
        ("v1.32.9", downgrade),
        ("v1.33.0", downgrade),
        ("1.33.9", ""),
        ("v1.34.99", ""),
        ("v1.34.1", ""),
        ("v1.33.1", ""),
    ] {
        let change = json!({ "spec": { "kubernetes": { "version": version } } });
        let answer = server.change(&base, &change).await;
        if sentence.is_empty() {
            answer.with_context(|| version.to_owned())?;
        } else {
            expect(answer, sentence).with_context(|| version.to_owned())?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_status_is_written_whatever_the_spec_says() -> Result<()> {
    let server = Server::new("status").await?;
    let base = tenant("spec: {kubernetes: {version: v1.31.0}}");
    server.create(&base).await?;
    for version in ["v1.36.3", "v1.33.0", "garbage"] {
        let status = json!({ "kubernetesResources": { "version": { "version": version, "status": "Ready" } } });
        server
            .report(&base, &status)
            .await
            .with_context(|| version.to_owned())?;
    }
    Ok(())
}

#[tokio::test]
async fn scaling_works_by_the_subresource() -> Result<()> {
    let server = Server::new("scale").await?;
    let base = tenant("");
    let made = server.create(&base).await?;
    assert_eq!(
        made.data.pointer("/spec/controlPlane/deployment/replicas"),
        Some(&json!(2))
    );
    let resource = kube::core::ApiResource::erase::<steward_api::TenantControlPlane>(&());
    let api: kube::Api<kube::core::DynamicObject> =
        kube::Api::namespaced_with(server.client.clone(), &server.namespace, &resource);
    let to_five = json!({ "spec": { "replicas": 5 } });
    let scale = api
        .patch_scale(
            "blue",
            &kube::api::PatchParams::default(),
            &kube::api::Patch::Merge(&to_five),
        )
        .await?;
    assert_eq!(scale.spec.and_then(|spec| spec.replicas), Some(5));
    Ok(())
}

#[tokio::test]
async fn a_datastore_stays_what_it_is() -> Result<()> {
    let server = Server::new("datastore").await?;
    let name = format!(
        "metadata: {{name: {}}}\nspec: {{managed: {{storage: {{size: 5Gi}}}}}}",
        server.namespace
    );
    let base = datastore(&name);
    let moved = "make another DataStore and move tenants to it";
    let changes = [
        (
            "spec: {driver: MySQL, managed: null, endpoints: ['a:1'], basicAuth: {username: {content: YQ==}, password: {content: YQ==}}}",
            "Datastore driver is immutable",
        ),
        (
            "spec: {managed: {replicas: 1}}",
            "managed.replicas: can't be changed later",
        ),
        ("spec: {managed: {storage: {size: 6Gi}}}", moved),
        ("spec: {managed: {storage: null, emptyDir: {}}}", moved),
        ("spec: {managed: {resources: {requests: {cpu: 2}}}}", ""),
    ];
    try_changes(&server, &base, &changes).await
}
