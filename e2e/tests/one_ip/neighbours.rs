//! Whose a name is, and who may come in at all.

use anyhow::{Context, Result, ensure};
use steward_e2e::promises::neighbours::an_unknown_name_gets_an_alert;
use steward_e2e::{Stage, Tenant, wait_for};

use crate::{DOMAIN, by_ingress, tenant};

pub(crate) async fn an_unknown_name_is_not_recognized(stage: &Stage, address: &str) -> Result<()> {
    let seen = an_unknown_name_gets_an_alert(stage, address, &format!("nobody.{DOMAIN}")).await?;
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

/// A tenant whose name is in no DNS, then in DNS with a wrong address, then with the right one:
/// its condition says each, and what to do.
pub(crate) async fn a_name_without_a_good_record_is_told(
    stage: &Stage,
    front_door: std::net::Ipv4Addr,
) -> Result<()> {
    let host = "lost.elsewhere.example";
    let exposure = by_ingress("lost").replace(&format!("lost.{DOMAIN}"), host);
    stage.apply(&tenant("lost", &exposure, "")).await?;
    let told = async |reason: &str, words: &str| {
        let path = "jsonpath={.status.conditions[?(@.type==\"EndpointReady\")]}";
        let look = ["get", "tcp", "lost", "-n", "tenants", "-o", path];
        wait_for(&format!("the condition to say {reason}"), 180, async || {
            let seen = stage.kubectl(&look).await?;
            let reason = format!("\"reason\":\"{reason}\"");
            ensure!(seen.contains(&reason) && seen.contains(words), "{seen}");
            Ok(())
        })
        .await
    };
    told("HostnameNotResolved", "is not in DNS").await?;
    // The client's host: nothing listens there.
    stage.name(host, "10.30.0.2".parse()?)?;
    told("HostnameElsewhere", "leads to 10.30.0.2").await?;
    stage.name(host, front_door)?;
    told("Ready", host).await?;
    let delete = ["delete", "tcp", "lost", "-n", "tenants", "--timeout=120s"];
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

/// With more connections open than t1 may have, nobody gets in; t2 does not notice.
pub(crate) async fn connections_are_limited_per_tenant(
    stage: &Stage,
    t1: &Tenant,
    t2: &Tenant,
) -> Result<()> {
    access(stage, r#"{"maxConnections":1}"#).await?;
    wait_for("t1 to be full", 120, async || {
        let refused = t1.kubectl(&["get", "--raw", "/version"]).await;
        let said = refused.err().context("it has room")?.to_string();
        ensure!(said.contains("internal error"), "{said}");
        Ok(())
    })
    .await?;
    t2.kubectl(&["get", "--raw", "/version"]).await?;
    access(stage, r#"{"maxConnections":null}"#).await?;
    wait_for("t1 to have room", 120, async || {
        t1.kubectl(&["get", "--raw", "/version"]).await
    })
    .await?;
    Ok(())
}

async fn allow(stage: &Stage, range: &str) -> Result<()> {
    access(stage, &format!(r#"{{"allowedSourceRanges":["{range}"]}}"#)).await
}

async fn access(stage: &Stage, change: &str) -> Result<()> {
    let change = format!(r#"{{"spec":{{"controlPlane":{{"access":{change}}}}}}}"#);
    stage.patch("tenants", "t1", &change).await
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
