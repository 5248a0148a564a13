//! The chart, installed by Helm on a real API server: it applies, and its roles are those used.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use steward_lab::fixture::ApiServer;
use steward_lab::parts::{self, Part};
use steward_lab::progress::Progress;
use steward_plan::{Kind, Platform, TlsRouteVersion};
use tokio::process::Command;

const NAMESPACE: &str = "steward-system";

/// Kinds of a datastore that the operator runs itself, beside those of tenants.
const DATASTORE_KINDS: &[Kind] = &[Kind::StatefulSet];

async fn helm(server: &ApiServer, arguments: &[&str]) -> Result<String> {
    let program = tokio::task::spawn_blocking(find_helm).await??;
    let folder = tempfile::tempdir()?;
    let output = Command::new(program)
        .env("HELM_CACHE_HOME", folder.path())
        .env("HELM_CONFIG_HOME", folder.path())
        .env("HELM_DATA_HOME", folder.path())
        .env("KUBECONFIG", server.kubeconfig())
        .args(arguments)
        .output()
        .await
        .context("run helm")?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    ensure!(
        output.status.success(),
        "helm {arguments:?} failed:\n{said}"
    );
    Ok(said)
}

fn find_helm() -> Result<PathBuf> {
    let named = std::env::var_os("STEWARD_LAB_BIN_DIR").map(PathBuf::from);
    let options = parts::Options::from_env()?.with_bin_dir(named);
    Ok(parts::ensure(Part::Helm, &options, &Progress::stderr())?
        .path("helm")?
        .to_owned())
}

fn chart() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../charts/steward")
        .display()
        .to_string()
}

/// What the operator writes in the cluster it runs in, wherever that cluster has everything.
fn written() -> Vec<Kind> {
    let platform = Platform {
        ingress_route_tcp: true,
        tls_route: Some(TlsRouteVersion::V1),
        ..Platform::default()
    };
    let mut kinds = steward_plan::managed_kinds(&platform);
    kinds.extend(DATASTORE_KINDS);
    kinds
}

async fn allowed(client: &Client, verb: &str, group: &str, resource: &str) -> Result<bool> {
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(format!("system:serviceaccount:{NAMESPACE}:steward")),
            resource_attributes: Some(ResourceAttributes {
                group: Some(group.to_owned()),
                resource: Some(resource.to_owned()),
                verb: Some(verb.to_owned()),
                namespace: Some("anywhere".to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let api: Api<SubjectAccessReview> = Api::all(client.clone());
    let answer = api.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

#[tokio::test]
async fn helm_installs_it_and_the_roles_are_exactly_those_used() -> Result<()> {
    let server = ApiServer::start().await?;
    let chart = chart();
    let install = [
        "install",
        "steward",
        &chart,
        "--namespace",
        NAMESPACE,
        "--create-namespace",
        "--set",
        "gateway.enabled=true",
    ];
    helm(&server, &install).await?;
    let client = server.client().await?;
    for kind in Kind::ALL {
        let (group, _, name, plural) = kind.names();
        // Versions of one resource share their permissions.
        let expected = written().iter().any(|written| written.names().3 == plural);
        for verb in ["list", "create", "patch", "delete"] {
            let may = allowed(&client, verb, group, plural).await?;
            ensure!(
                may == expected,
                "may {verb} {name}: {may}, but it should be {expected}"
            );
        }
    }
    for (verb, group, resource) in [
        ("escalate", "rbac.authorization.k8s.io", "clusterroles"),
        ("impersonate", "", "users"),
        ("create", "", "pods"),
        ("get", "", "pods/exec"),
    ] {
        ensure!(
            !allowed(&client, verb, group, resource).await?,
            "may {verb} {resource}"
        );
    }
    let gvk = GroupVersionKind::gvk("steward.butlerlabs.dev", "v1alpha1", "DataStore");
    let stores: Api<DynamicObject> = Api::all_with(client, &ApiResource::from_gvk(&gvk));
    stores
        .get("default")
        .await
        .context("the default DataStore comes with the chart")?;
    helm(&server, &["uninstall", "steward", "--namespace", NAMESPACE]).await?;
    stores
        .get("default")
        .await
        .context("the DataStore stays when the release goes")?;
    Ok(())
}

#[tokio::test]
async fn a_misspelled_value_is_refused() -> Result<()> {
    let server = ApiServer::shared().await?;
    let refused = helm(server, &["template", &chart(), "--set", "replicaCont=2"]).await;
    ensure!(format!("{:#}", refused.unwrap_err()).contains("replicaCont"));
    Ok(())
}

#[tokio::test]
async fn every_choice_of_the_gateway_renders() -> Result<()> {
    let server = ApiServer::shared().await?;
    let chart = chart();
    for choice in [
        "gateway.kind=Deployment",
        "gateway.kind=DaemonSet",
        "gateway.hostNetwork=true",
        "gateway.service.type=NodePort",
        "gateway.service.type=ClusterIP",
        "gateway.gatewayClass.create=true",
        "gateway.ingressClass.default=true",
        "defaultDataStore.emptyDir.enabled=true",
        "serviceMonitor.enabled=true",
        "steward-etcd.deploy=false",
    ] {
        let text = helm(
            server,
            &[
                "template",
                &chart,
                "--set",
                "gateway.enabled=true",
                "--set",
                choice,
            ],
        )
        .await?;
        ensure!(
            text.contains("controller: steward.butlerlabs.dev/gateway"),
            "{choice}:\n{text}"
        );
        let stores = text.matches("kind: DataStore").count();
        ensure!(
            stores == usize::from(choice != "steward-etcd.deploy=false"),
            "{choice}"
        );
    }
    Ok(())
}
