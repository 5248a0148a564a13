//! What tenants behind one address can not do to each other, and who may come in at all.

use anyhow::{Context, Result, ensure};
use steward_e2e::{Stage, Tenant, wait_for};

use crate::{DOMAIN, by_ingress, tenant};

/// The verification of the server is skipped on purpose: it would already refuse; here the
/// neighbour's API server itself has to. First a certificate, then a token.
pub(crate) async fn credentials_of_one_are_refused_by_the_other(
    stage: &Stage,
    t1: &Tenant,
    t2: &Tenant,
) -> Result<()> {
    let kubeconfig = t1.kubeconfig().display().to_string();
    let server = format!("https://{}.{DOMAIN}:443", t2.name());
    let mut words = vec!["kubectl", "--kubeconfig", &kubeconfig, "--server", &server];
    words.extend(["--insecure-skip-tls-verify", "get", "namespaces"]);
    let output = stage.lab.client_host().exec(&words).await?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        !output.status.success() && said.contains("must be logged in"),
        "t1's administrator in t2: {said}"
    );
    let token = t1.kubectl(&["create", "token", "default"]).await?;
    let header = format!("Authorization: Bearer {}", token.trim());
    let url = format!("{server}/api");
    let words = [
        "curl",
        "-ksS",
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        "-H",
        &header,
        &url,
    ];
    let code = stage.lab.client_host().run(&words).await?;
    ensure!(code == "401", "t1's token in t2: {code}");
    Ok(())
}

pub(crate) async fn an_unknown_name_gets_an_alert(stage: &Stage, address: &str) -> Result<()> {
    let script = format!(
        "openssl s_client -connect {address}:443 -servername nobody.{DOMAIN} </dev/null 2>&1 || true"
    );
    let seen = stage.lab.client_host().script(&script).await?;
    ensure!(seen.contains("unrecognized name"), "{seen}");
    Ok(())
}

/// A younger tenant that wants the same name is told whose it is, and gets no pod.
pub(crate) async fn a_name_is_its_older_owners(stage: &Stage) -> Result<()> {
    stage.apply(&tenant("late", &by_ingress("t1"), "")).await?;
    let path = "jsonpath={.status.conditions[?(@.type==\"EndpointReady\")]}";
    let look = ["get", "tcp", "late", "-n", "tenants", "-o", path];
    wait_for("the younger to be told", 120, async || {
        let told = stage.kubectl(&look).await?;
        ensure!(
            told.contains("HostnameTaken") && told.contains("tenants/t1"),
            "{told}"
        );
        let about = "involvedObject.name=late";
        let words = ["get", "events", "-n", "tenants", "--field-selector", about];
        let events = stage.kubectl(&words).await?;
        ensure!(events.contains("HostnameTaken"), "{events}");
        Ok(())
    })
    .await?;
    let delete = ["delete", "tcp", "late", "-n", "tenants", "--timeout=120s"];
    stage.kubectl(&delete).await?;
    Ok(())
}

/// Behind the shared address, too: t1 is for its workers' network, the client is elsewhere.
/// Then for everyone here again: a changed route, which no open connection feels.
pub(crate) async fn only_allowed_sources_get_in(stage: &Stage, t1: &Tenant) -> Result<()> {
    allow(stage, "10.20.0.0/16").await?;
    wait_for("the client to be refused", 120, async || {
        let refused = t1.kubectl(&["get", "--raw", "/version"]).await;
        let said = refused.err().context("it is let in")?.to_string();
        ensure!(said.contains("access denied"), "{said}");
        Ok(())
    })
    .await?;
    let kubeconfig = t1.kubeconfig().display().to_string();
    let inside = [
        "kubectl",
        "--kubeconfig",
        &kubeconfig,
        "get",
        "--raw",
        "/version",
    ];
    stage.lab.worker(1)?.run(&inside).await?;
    allow(stage, "10.0.0.0/8").await?;
    wait_for("the client to be let in", 120, async || {
        t1.kubectl(&["get", "--raw", "/version"]).await
    })
    .await?;
    Ok(())
}

async fn allow(stage: &Stage, range: &str) -> Result<()> {
    let patch = format!(
        r#"{{"spec":{{"controlPlane":{{"access":{{"allowedSourceRanges":["{range}"]}}}}}}}}"#
    );
    let words = [
        "patch",
        "tcp",
        "t1",
        "-n",
        "tenants",
        "--type=merge",
        "-p",
        &patch,
    ];
    stage.kubectl(&words).await?;
    Ok(())
}

pub(crate) async fn deleting_a_tenant_leaves_nothing(stage: &Stage, tenant: &Tenant) -> Result<()> {
    let (namespace, name) = (tenant.namespace(), tenant.name());
    let delete = ["delete", "tcp", name, "-n", namespace, "--timeout=120s"];
    stage.kubectl(&delete).await?;
    wait_for("everything of the tenant to be gone", 120, async || {
        let label = format!("steward.butlerlabs.dev/name={name}");
        let kinds = "secrets,configmaps,services,deployments,pods,tlsroutes,poddisruptionbudgets";
        let left = stage
            .kubectl(&["get", kinds, "-n", namespace, "-l", &label, "-o", "name"])
            .await?;
        ensure!(left.trim().is_empty(), "still there: {left}");
        Ok(())
    })
    .await
    .context("delete")
}
