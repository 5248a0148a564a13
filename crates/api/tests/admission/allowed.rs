//! What a platform team lets the tenants of a namespace use.

use anyhow::{Context, Result};
use serde_json::json;

use crate::server::{Server, expect, tenant, yaml};

#[tokio::test]
async fn a_namespace_may_be_limited_and_is_not_without_a_word() -> Result<()> {
    let free = Server::new("free").await?;
    let limits = json!({ "annotations": {
        "steward.butlerlabs.dev/allowed-domains": "one.example.com, *.blue.example.com",
        "steward.butlerlabs.dev/allowed-datastores": "gold,silver",
        "steward.butlerlabs.dev/allowed-ingress-classes": "public",
        "steward.butlerlabs.dev/allowed-gateways": "edge/front",
    }});
    let server = free.beside("limited", &limits).await?;
    let named = "spec: {dataStore: gold, controlPlane: {";
    for (change, sentence) in [
        (format!("{named}ingress: {{ingressClassName: public, hostname: two.example.com}}}}}}"), "may use these hostnames only: one.example.com, *.blue.example.com; not two.example.com"),
        (format!("{named}ingress: {{ingressClassName: public, hostname: blue.example.com}}}}}}"), "not blue.example.com"),
        (format!("{named}ingress: {{ingressClassName: public, hostname: one.example.com, konnectivityHostname: k.example.com}}}}}}"), "not k.example.com"),
        (format!("{named}ingress: {{ingressClassName: public, domain: example.com}}}}}}"), "-blue.k8s.example.com"),
        (format!("{{metadata: {{annotations: {{steward.butlerlabs.dev/ingress.domain: green.example.com}}}}, {named}ingress: {{ingressClassName: public}}}}}}}}"), "-blue.k8s.green.example.com"),
        (format!("{{metadata: {{annotations: {{kamaji.clastix.io/ingress.domain: green.example.com}}}}, {named}ingress: {{ingressClassName: public}}}}}}}}"), "-blue.k8s.green.example.com"),
        ("spec: {dataStore: gold, controlPlane: {ingress: {ingressClassName: public, hostname: one.example.com}}, addons: {konnectivity: {agent: {extraArgs: [--proxy_server-host=k.example.com]}}}}".into(), "not k.example.com"),
        (format!("{named}ingress: {{ingressClassName: private, hostname: one.example.com}}}}}}"), "may use these IngressClasses only: public; not private"),
        (format!("{named}ingress: {{hostname: one.example.com}}}}}}"), "not the one that is used when none is named"),
        (format!("{named}ingress: {{ingressClassName: public, hostname: one.example.com, additionalMetadata: {{annotations: {{kubernetes.io/ingress.class: private}}}}}}}}}}"), "may use these IngressClasses only: public; not private"),
        (format!("{named}gateway: {{hostname: one.example.com, parentRefs: [{{name: front}}]}}}}}}"), "may use these Gateways only: edge/front; not "),
        ("spec: {dataStore: lead}".into(), "may use these DataStores only: gold, silver; not lead"),
        ("spec: {dataStore: gold, dataStoreOverrides: [{resource: /events, dataStore: lead}]}".into(), "not lead"),
        (String::new(), "ask the platform team, which allows more with the annotation steward.butlerlabs.dev/allowed-datastores of the namespace"),
    ] {
        server.refuses(&tenant(&change), sentence).await.with_context(|| change.clone())?;
        free.try_out(&tenant(&change)).await.with_context(|| format!("elsewhere: {change}"))?;
    }
    for change in [
        format!(
            "{named}ingress: {{ingressClassName: public, hostname: 'one.example.com:8443'}}}}}}"
        ),
        format!(
            "{named}ingress: {{ingressClassName: public, hostname: a.b.blue.example.com, konnectivityHostname: one.example.com}}}}}}"
        ),
        format!("{named}ingress: {{ingressClassName: public, domain: blue.example.com}}}}}}"),
        format!(
            "{named}gateway: {{hostname: one.example.com, parentRefs: [{{name: front, namespace: edge}}]}}}}}}"
        ),
        "spec: {dataStore: silver}".into(),
    ] {
        server
            .try_out(&tenant(&change))
            .await
            .with_context(|| change.clone())?;
    }
    Ok(())
}

#[tokio::test]
async fn a_tenant_from_before_the_limit_is_still_written() -> Result<()> {
    let server = Server::new("limit-later").await?;
    let stored = tenant("spec: {controlPlane: {ingress: {hostname: two.example.com}}}");
    server.create(&stored).await?;
    server
        .annotate(&json!({
            "steward.butlerlabs.dev/allowed-domains": "one.example.com",
            "steward.butlerlabs.dev/allowed-datastores": "",
        }))
        .await?;
    let fresh = tenant(
        "{metadata: {name: green}, spec: {controlPlane: {ingress: {hostname: two.example.com}}}}",
    );
    steward_lab::poll(crate::server::PATIENCE, async || {
        server.refuses(&fresh, "not two.example.com").await
    })
    .await
    .context("the limit holds")?;
    let version = yaml("spec: {controlPlane: {deployment: {replicas: 3}}}");
    server
        .change(&stored, &version)
        .await
        .context("another field")?;
    let other = yaml("spec: {controlPlane: {ingress: {hostname: three.example.com}}}");
    expect(
        server.change(&stored, &other).await,
        "not three.example.com",
    )
}
