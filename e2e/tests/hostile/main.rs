//! Attacks on a neighbour, played with the tools that an attacker has: a namespace user, and a tenant's administrator.
//! Each passes when it gains nothing. The victim answers requests all the while, and none fails.

mod administrator;
mod namespace_user;

use anyhow::{Result, ensure};
use steward_e2e::{Etcd, Load, Stage, Tenant};

use crate::namespace_user::Nina;

/// Nina has `edit` and every right on tenants in `red`. The victim lives in `blue`.
const PEOPLE: &str = "
apiVersion: v1
kind: Namespace
metadata: { name: red }
---
apiVersion: v1
kind: Namespace
metadata: { name: blue }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: tenants, namespace: red }
rules:
- { apiGroups: [steward.butlerlabs.dev], resources: [tenantcontrolplanes, tenantcontrolplanes/status, tenantcontrolplanes/scale], verbs: ['*'] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: nina-tenants, namespace: red }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: tenants }
subjects: [ { apiGroup: rbac.authorization.k8s.io, kind: User, name: nina } ]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: nina-edit, namespace: red }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit }
subjects: [ { apiGroup: rbac.authorization.k8s.io, kind: User, name: nina } ]
";

/// A tenant with little to ask of its node. `more` is added below `spec`.
pub(crate) fn manifest(namespace: &str, name: &str, more: &str) -> String {
    format!(
        "apiVersion: steward.butlerlabs.dev/v1alpha1
kind: TenantControlPlane
metadata: {{ name: {name}, namespace: {namespace} }}
spec:
  kubernetes: {{ version: v1.36.3 }}
  addons: {{ konnectivity: {{}} }}
  controlPlane:
    deployment: {{ replicas: 1, resources: {{ apiServer: {{ requests: {{ cpu: 10m }} }}, controllerManager: {{ requests: {{ cpu: 10m }} }}, scheduler: {{ requests: {{ cpu: 10m }} }} }} }}
    service: {{ serviceType: ClusterIP }}
{more}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_neighbour_gains_nothing_and_the_victim_notices_nothing() -> Result<()> {
    let stage = Stage::up("hostile", 0, &[]).await?;
    stage.apply(PEOPLE).await?;
    stage.apply(&manifest("blue", "victim", "")).await?;
    let victim = tenant(&stage, "blue", "victim").await?;
    let folder = stage.folder().join("load");
    std::fs::create_dir(&folder)?;
    let path = "jsonpath={.status.controlPlaneEndpoint}";
    let words = ["get", "tcp", "victim", "-n", "blue", "-o", path];
    let endpoint = stage.kubectl(&words).await?;
    let url = format!("https://{endpoint}/api/v1/namespaces");
    let load = Load::start(&stage.lab.mgmt(), &folder, victim.kubeconfig(), &url)?;

    let nina = Nina::new(&stage);
    nina.is_refused_names_of_the_datastore().await?;
    nina.is_refused_what_reaches_into_the_node().await?;
    nina.can_not_report_a_status().await?;
    nina.has_nothing_of_a_neighbour_s_data().await?;
    nina.leaves_foreign_objects_alone().await?;
    nina.can_not_switch_managed_flags_by_another_spelling()
        .await?;

    stage.apply(&manifest("red", "own", "")).await?;
    let own = tenant(&stage, "red", "own").await?;
    let etcd = Etcd::new(&stage).await?;
    administrator::reaches_no_member_of_etcd(&stage, &etcd).await?;
    administrator::has_no_rights_around_its_own_prefix(&stage, &etcd).await?;
    administrator::can_not_call_the_management_cluster(&stage, &own).await?;
    nina.loses_an_authority_and_it_is_not_replaced().await?;

    let made = load.finish().await?;
    eprintln!("the victim answered {made} requests meanwhile");
    let words = ["get", "configmaps", "-n", "default", "-o", "name"];
    let found = victim.kubectl(&words).await?;
    ensure!(found.contains("kube-root-ca.crt"), "{found}");
    Ok(())
}

/// Tenants inside the cluster's network: asked from there.
async fn tenant(stage: &Stage, namespace: &str, name: &str) -> Result<Tenant> {
    let tenant = stage.tenant(namespace, name).await?;
    Ok(tenant.seen_from(stage.lab.mgmt()))
}

/// What was said, if it was no.
pub(crate) fn refused(what: &str, answer: Result<String>) -> Result<String> {
    match answer {
        Ok(answer) => anyhow::bail!("{what} was answered: {answer}"),
        Err(error) => Ok(format!("{error:#}")),
    }
}
