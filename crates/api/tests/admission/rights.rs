//! Fields that the operator carries out need the right of the person who sets them.

use anyhow::{Context, Result};
use serde_json::json;

use crate::people::{May, person};
use crate::server::{Server, expect, tenant, yaml};

/// Fields for which the right to create pods is needed, and nothing more.
const PODS: &[(&str, &str)] = &[
    (
        "additionalContainers",
        "deployment: {additionalContainers: [{name: a, image: x}]}",
    ),
    (
        "additionalInitContainers",
        "deployment: {additionalInitContainers: [{name: a, image: x}]}",
    ),
    (
        "additionalVolumes",
        "deployment: {additionalVolumes: [{name: v, secret: {secretName: s}}]}",
    ),
    (
        "additionalVolumeMounts",
        "deployment: {additionalVolumeMounts: {apiServer: [{name: v, mountPath: /d}]}}",
    ),
    (
        "podSecurityContext",
        "deployment: {podSecurityContext: {runAsUser: 0}}",
    ),
    (
        "containerSecurityContexts",
        "deployment: {containerSecurityContexts: {apiServer: {runAsUser: 0}}}",
    ),
    (
        "serviceAccountName",
        "deployment: {serviceAccountName: builder}",
    ),
    (
        "automountServiceAccountToken",
        "deployment: {automountServiceAccountToken: true}",
    ),
    ("runtimeClassName", "deployment: {runtimeClassName: native}"),
    (
        "podAdditionalMetadata",
        "deployment: {podAdditionalMetadata: {annotations: {a: b}}}",
    ),
    (
        "registrySettings.registry",
        "deployment: {registrySettings: {registry: registry.example.com}}",
    ),
    (
        "registrySettings.apiServerImage",
        "deployment: {registrySettings: {apiServerImage: mine}}",
    ),
];

/// Fields with which a pod reaches into its node.
const PRIVILEGED: &[(&str, &str)] = &[
    (
        "additionalVolumes[v].hostPath",
        "{additionalVolumes: [{name: v, hostPath: {path: /}}]}",
    ),
    (
        "additionalContainers[a].ports[].hostPort",
        "{additionalContainers: [{name: a, image: x, ports: [{containerPort: 1, hostPort: 80}]}]}",
    ),
    (
        "additionalContainers[a].securityContext.privileged",
        "{additionalContainers: [{name: a, image: x, securityContext: {privileged: true}}]}",
    ),
    (
        "additionalInitContainers[a].securityContext.privileged",
        "{additionalInitContainers: [{name: a, image: x, securityContext: {privileged: true}}]}",
    ),
    (
        "additionalContainers[a].securityContext.capabilities.add",
        "{additionalContainers: [{name: a, image: x, securityContext: {capabilities: {add: [SYS_ADMIN]}}}]}",
    ),
    (
        "containerSecurityContexts.scheduler.privileged",
        "{containerSecurityContexts: {scheduler: {privileged: true}}}",
    ),
    (
        "containerSecurityContexts.apiServer.procMount",
        "{containerSecurityContexts: {apiServer: {procMount: Unmasked}}}",
    ),
    (
        "podSecurityContext.seccompProfile.type",
        "{podSecurityContext: {seccompProfile: {type: Unconfined}}}",
    ),
    (
        "podSecurityContext.appArmorProfile.type",
        "{podSecurityContext: {appArmorProfile: {type: Unconfined}}}",
    ),
    (
        "podSecurityContext.seLinuxOptions",
        "{podSecurityContext: {seLinuxOptions: {type: spc_t}}}",
    ),
    (
        "podSecurityContext.sysctls",
        "{podSecurityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}}",
    ),
    (
        "podAdditionalMetadata.annotations",
        "{podAdditionalMetadata: {annotations: {container.apparmor.security.beta.kubernetes.io/a: unconfined}}}",
    ),
];

/// What `restricted` refuses and `baseline` doesn't.
const UNRESTRICTED: &[(&str, &str)] = &[
    (
        "additionalContainers[a].securityContext.allowPrivilegeEscalation",
        "{additionalContainers: [{name: a, image: x}]}",
    ),
    (
        "additionalContainers[a].securityContext.capabilities.drop",
        "{additionalContainers: [{name: a, image: x, securityContext: {allowPrivilegeEscalation: false}}]}",
    ),
    (
        "additionalVolumes[v]",
        "{additionalVolumes: [{name: v, nfs: {server: s, path: /}}]}",
    ),
    (
        "podSecurityContext.runAsNonRoot",
        "{podSecurityContext: {fsGroup: 1}}",
    ),
    (
        "podSecurityContext.seccompProfile.type",
        "{podSecurityContext: {runAsNonRoot: true}}",
    ),
    (
        "containerSecurityContexts.apiServer.runAsUser",
        "{containerSecurityContexts: {apiServer: {runAsUser: 0, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}}",
    ),
];

fn control_plane(change: &str) -> serde_json::Value {
    tenant(&format!("spec: {{controlPlane: {{{change}}}}}"))
}

fn deployment(change: &str) -> serde_json::Value {
    control_plane(&format!("deployment: {change}"))
}

async fn all_refused(
    server: &Server,
    table: &[(&str, &str)],
    wrap: fn(&str) -> serde_json::Value,
    says: &[&str],
) -> Result<()> {
    for (field, change) in table {
        for sentence in says.iter().copied().chain([*field]) {
            server
                .refuses(&wrap(change), sentence)
                .await
                .with_context(|| format!("{field}: {change}"))?;
        }
    }
    Ok(())
}

async fn all_accepted(
    server: &Server,
    table: &[(&str, &str)],
    wrap: fn(&str) -> serde_json::Value,
) -> Result<()> {
    for (field, change) in table {
        server
            .try_out(&wrap(change))
            .await
            .with_context(|| format!("{field}: {change}"))?;
    }
    Ok(())
}

#[tokio::test]
async fn a_person_who_may_only_write_tenants_shapes_no_pod() -> Result<()> {
    let server = Server::new("rights").await?;
    let nina = person(&server, "nina", May::Tenants).await?;
    nina.try_out(&tenant("")).await.context("a plain tenant")?;
    let here = format!("nina may not create pods in namespace {}", server.namespace);
    let ask = "ask an administrator of the namespace";
    all_refused(&nina, PODS, control_plane, &[&here, ask]).await?;
    for (_, change) in PRIVILEGED {
        nina.refuses(&deployment(change), "nina may not create pods")
            .await?;
    }
    Ok(())
}

#[tokio::test]
async fn who_may_edit_may_add_containers_and_no_way_into_the_node() -> Result<()> {
    let server = Server::new("edit").await?;
    let eve = person(&server, "eve", May::Edit).await?;
    all_accepted(&eve, PODS, control_plane).await?;
    let says = [
        "eve may not use privilegedpods.steward.butlerlabs.dev in namespace ",
        "ask the administrator of this cluster",
    ];
    all_refused(&eve, PRIVILEGED, deployment, &says).await?;
    let trusted = person(&server, "tess", May::EditAndUse("privilegedpods")).await?;
    all_accepted(&trusted, PRIVILEGED, deployment).await?;
    all_accepted(&server, PRIVILEGED, deployment).await
}

#[tokio::test]
async fn services_routes_and_addresses_need_their_rights() -> Result<()> {
    let server = Server::new("services").await?;
    let nina = person(&server, "nora", May::Tenants).await?;
    let eve = person(&server, "emil", May::Edit).await?;
    let trusted = person(&server, "tilo", May::EditAndUse("externalips")).await?;
    let balanced = "spec: {controlPlane: {service: {serviceType: LoadBalancer}}, networkProfile: {address: 192.0.2.7}}";
    for (change, right) in [
        (
            "spec: {controlPlane: {service: {additionalMetadata: {annotations: {a: b}}}}}",
            "create services",
        ),
        (
            "spec: {controlPlane: {service: {additionalPorts: [{name: a, port: 1, targetPort: 1}]}}}",
            "create services",
        ),
        (balanced, "create services"),
        (
            "spec: {controlPlane: {ingress: {hostname: a.example.com, additionalMetadata: {annotations: {a: b}}}}}",
            "create ingresses",
        ),
    ] {
        nina.refuses(
            &tenant(change),
            &format!("nora may not {right} in namespace"),
        )
        .await?;
        eve.try_out(&tenant(change))
            .await
            .with_context(|| change.to_owned())?;
    }
    let gateway = tenant(
        "spec: {controlPlane: {gateway: {hostname: a.example.com, parentRefs: [{name: g}], additionalMetadata: {annotations: {a: b}}}}}",
    );
    eve.refuses(
        &gateway,
        "emil may not create tlsroutes.gateway.networking.k8s.io",
    )
    .await?;
    let traefik = tenant(
        "spec: {controlPlane: {ingress: {hostname: a.example.com, controllerType: traefik, additionalMetadata: {annotations: {a: b}}}}}",
    );
    eve.refuses(&traefik, "emil may not create ingressroutetcps.traefik.io")
        .await?;
    let external =
        tenant("spec: {networkProfile: {address: 192.0.2.7, allowAddressAsExternalIP: true}}");
    for person in [&nina, &eve] {
        person
            .refuses(
                &external,
                "may not use externalips.steward.butlerlabs.dev in namespace",
            )
            .await?;
    }
    trusted.try_out(&external).await?;
    server.try_out(&gateway).await?;
    Ok(())
}

#[tokio::test]
async fn what_pod_security_would_refuse_is_said_at_once() -> Result<()> {
    let server = Server::new("baseline").await?;
    let baseline = server
        .beside(
            "baseline",
            &json!({ "labels": { "pod-security.kubernetes.io/enforce": "baseline" } }),
        )
        .await?;
    let says = ["enforces the Pod Security Standard baseline, which refuses this"];
    all_refused(&baseline, PRIVILEGED, deployment, &says).await?;
    all_accepted(&baseline, UNRESTRICTED, deployment).await?;
    let restricted = server
        .beside(
            "restricted",
            &json!({ "labels": { "pod-security.kubernetes.io/enforce": "restricted" } }),
        )
        .await?;
    let says = ["enforces the Pod Security Standard restricted, which refuses this"];
    all_refused(&restricted, PRIVILEGED, deployment, &says).await?;
    all_refused(&restricted, UNRESTRICTED, deployment, &says).await?;
    let good = "{additionalContainers: [{name: a, image: x, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}], additionalVolumes: [{name: v, emptyDir: {}}]}";
    restricted.try_out(&deployment(good)).await?;
    Ok(())
}

#[tokio::test]
async fn a_tenant_with_more_than_its_writer_may_set_is_still_written() -> Result<()> {
    let server = Server::new("before").await?;
    let nina = person(&server, "nadja", May::Tenants).await?;
    let eve = person(&server, "erik", May::Edit).await?;
    let stored = deployment(
        "{additionalVolumes: [{name: v, hostPath: {path: /}}], additionalContainers: [{name: a, image: x}]}",
    );
    server.create(&stored).await?;
    let replicas = yaml("spec: {controlPlane: {deployment: {replicas: 3}}}");
    nina.change(&stored, &replicas)
        .await
        .context("another field")?;
    nina.change(&stored, &yaml("metadata: {annotations: {a: b}}"))
        .await
        .context("an annotation")?;
    // A container of erik's could mount what somebody else was allowed to bring.
    let container =
        yaml("spec: {controlPlane: {deployment: {additionalContainers: [{name: a, image: z}]}}}");
    expect(
        nina.change(&stored, &container).await,
        "nadja may not create pods",
    )?;
    expect(
        eve.change(&stored, &container).await,
        "additionalVolumes[v].hostPath: erik may not use privilegedpods",
    )?;
    let less = yaml(
        "spec: {controlPlane: {deployment: {additionalVolumes: null, additionalContainers: null}}}",
    );
    eve.change(&stored, &less).await.context("take it away")?;
    eve.change(&stored, &container)
        .await
        .context("and go on without")?;
    Ok(())
}
