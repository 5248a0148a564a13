//! Who may open a control plane's egress. The namespace's user has every right on its tenants.

use anyhow::{Context, Result, ensure};
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use steward_lab::fixture::ApiServer;

use crate::server::{PATIENCE, Server, expect, tenant, try_table};

const MAY_NOT: &str = "spec.controlPlane.egress: Direct and allow lead from the control plane";

const DIRECT: &str = "spec: {controlPlane: {egress: {cluster: Direct}}}";
const ALLOW: &str =
    "spec: {controlPlane: {egress: {allow: [{cidr: 203.0.113.7/32, ports: [443]}]}}}";

async fn grant(server: &Server, name: &str, resource: &str, verbs: &[&str]) -> Result<()> {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name},
        "rules": [{"apiGroups": ["steward.butlerlabs.dev"], "resources": [resource], "verbs": verbs}],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nina"}],
    });
    for object in [role, binding] {
        let kind = object["kind"].as_str().unwrap_or_default();
        let gvk = GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", kind);
        let resource = ApiResource::from_gvk(&gvk);
        let api: Api<DynamicObject> =
            Api::namespaced_with(server.client.clone(), &server.namespace, &resource);
        let object = serde_json::from_value(object)?;
        api.create(&PostParams::default(), &object).await?;
    }
    Ok(())
}

/// The server as the namespace's user sees it.
async fn nina(server: &Server) -> Result<Server> {
    let mut config = ApiServer::shared().await?.config().await?;
    config.auth_info.impersonate = Some("nina".into());
    Ok(Server {
        client: Client::try_from(config)?,
        namespace: server.namespace.clone(),
    })
}

fn named(name: &str, change: &str) -> Value {
    let mut object = tenant(change);
    object["metadata"]["name"] = name.into();
    object
}

#[tokio::test]
async fn opening_needs_a_permission_that_no_right_on_tenants_includes() -> Result<()> {
    let server = Server::new("egress").await?;
    let nina = nina(&server).await?;
    grant(&server, "tenants", "tenantcontrolplanes", &["*"]).await?;
    // Roles and policies are in force a moment after they were made.
    steward_lab::poll(PATIENCE, async || {
        nina.try_out(&tenant(""))
            .await
            .map_err(anyhow::Error::from)?;
        nina.refuses(&tenant(DIRECT), MAY_NOT).await
    })
    .await?;
    nina.refuses(&tenant(ALLOW), MAY_NOT).await?;
    let url = "spec: {controlPlane: {egress: {controlPlane: Direct}}}";
    nina.refuses(&tenant(url), MAY_NOT).await?;
    let closed = "spec: {controlPlane: {egress: {cluster: Closed, controlPlane: Closed}}}";
    nina.create(&tenant(closed)).await?;
    let open = json!({"spec": {"controlPlane": {"egress": {"cluster": "Direct"}}}});
    expect(nina.change(&tenant(""), &open).await, MAY_NOT)?;

    // What an administrator opened stays open whatever else its user changes, and only so far.
    let given = named("given", ALLOW);
    server.create(&given).await?;
    let replicas = json!({"spec": {"controlPlane": {"deployment": {"replicas": 3}}}});
    nina.change(&given, &replicas).await?;
    let wider = json!({"spec": {"controlPlane": {"egress": {"allow": [{"cidr": "0.0.0.0/0"}]}}}});
    expect(nina.change(&given, &wider).await, MAY_NOT)?;
    let shut = json!({"spec": {"controlPlane": {"egress": null}}});
    let after = nina.change(&given, &shut).await?;
    ensure!(after.data.pointer("/spec/controlPlane/egress").is_none());

    grant(&server, "egress", "egress", &["use"]).await?;
    steward_lab::poll(PATIENCE, async || {
        nina.try_out(&named("later", DIRECT))
            .await
            .context("with the permission")
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn egress_that_cannot_work_is_refused() -> Result<()> {
    let server = Server::new("egress").await?;
    let cidr = "egress.allow[].cidr: each must be a CIDR";
    let tunnel = "Tunnel leads through konnectivity, which is not asked for";
    #[rustfmt::skip]
    let table = [
        ("a name", "spec: {controlPlane: {egress: {allow: [{cidr: issuer.example.com}]}}}", cidr),
        ("an address", "spec: {controlPlane: {egress: {allow: [{cidr: 203.0.113.7}]}}}", cidr),
        ("port", "spec: {controlPlane: {egress: {allow: [{cidr: 10.0.0.0/8, ports: [0]}]}}}", "should be greater than or equal to 1"),
        ("path", "spec: {controlPlane: {egress: {cluster: Open}}}", "supported values: \"Tunnel\", \"Direct\", \"Closed\""),
        ("cluster", "spec: {controlPlane: {egress: {cluster: Tunnel}}}", tunnel),
        ("urls", "spec: {controlPlane: {egress: {controlPlane: Tunnel}}}", tunnel),
    ];
    try_table(&server, tenant, &table).await?;
    let fine = "spec: {addons: {konnectivity: {}}, controlPlane: {egress: {cluster: Tunnel}}}";
    server.try_out(&tenant(fine)).await?;
    Ok(())
}
