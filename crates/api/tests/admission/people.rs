//! People with few rights, on the server that all tests share.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use steward_lab::fixture::ApiServer;

use crate::server::{PATIENCE, Server};

/// What a person may do in the namespace of the test, besides writing tenants.
pub(crate) enum May {
    /// Nothing.
    Tenants,
    /// What Kubernetes' own role `edit` allows.
    Edit,
    /// `edit`, and the use of one of Steward's own permissions.
    EditAndUse(&'static str),
}

/// A person who may write tenants in the namespace of the server, and sees it as `Server` does.
pub(crate) async fn person(server: &Server, name: &str, may: May) -> Result<Server> {
    let mut rules = vec![json!({
        "apiGroups": ["steward.butlerlabs.dev"],
        "resources": ["tenantcontrolplanes", "tenantcontrolplanes/status"],
        "verbs": ["*"],
    })];
    let mut last = ("steward.butlerlabs.dev", "tenantcontrolplanes", "create");
    if let May::EditAndUse(resource) = &may {
        rules.push(json!({
            "apiGroups": ["steward.butlerlabs.dev"],
            "resources": [resource],
            "verbs": ["use"],
        }));
        last = ("steward.butlerlabs.dev", resource, "use");
    }
    role(server, name, &json!(rules)).await?;
    bind(server, name, name, "Role", name).await?;
    if !matches!(may, May::Tenants) {
        // `edit` itself is put together by a controller that this server doesn't have.
        bind(
            server,
            &format!("{name}-edit"),
            name,
            "ClusterRole",
            "system:aggregate-to-edit",
        )
        .await?;
        until_allowed(server, name, ("", "pods", "create")).await?;
    }
    until_allowed(server, name, last).await?;
    let mut config = ApiServer::shared().await?.config().await?;
    config.auth_info.impersonate = Some(name.to_owned());
    Ok(Server {
        client: Client::try_from(config)?,
        namespace: server.namespace.clone(),
    })
}

async fn role(server: &Server, name: &str, rules: &Value) -> Result<()> {
    let all: Api<Role> = Api::namespaced(server.client.clone(), &server.namespace);
    let role = serde_json::from_value(json!({ "metadata": { "name": name }, "rules": rules }))?;
    all.create(&PostParams::default(), &role).await?;
    Ok(())
}

async fn bind(server: &Server, name: &str, who: &str, kind: &str, role: &str) -> Result<()> {
    let bindings: Api<RoleBinding> = Api::namespaced(server.client.clone(), &server.namespace);
    let group = "rbac.authorization.k8s.io";
    let binding = serde_json::from_value(json!({
        "metadata": { "name": name },
        "roleRef": { "apiGroup": group, "kind": kind, "name": role },
        "subjects": [{ "apiGroup": group, "kind": "User", "name": who }],
    }))?;
    bindings.create(&PostParams::default(), &binding).await?;
    Ok(())
}

/// A role holds a moment after it was bound.
async fn until_allowed(
    server: &Server,
    who: &str,
    (group, resource, verb): (&str, &str, &str),
) -> Result<()> {
    let reviews: Api<SubjectAccessReview> = Api::all(server.client.clone());
    let review: SubjectAccessReview = serde_json::from_value(json!({
        "spec": { "user": who, "resourceAttributes": {
            "group": group, "resource": resource, "verb": verb, "namespace": server.namespace,
        }},
    }))?;
    steward_lab::poll(PATIENCE, async || {
        let answer = reviews.create(&PostParams::default(), &review).await?;
        let allowed = answer.status.is_some_and(|status| status.allowed);
        ensure!(allowed, "{who} may not {verb} {resource} yet");
        Ok(())
    })
    .await
    .context("wait for a role to hold")
}
