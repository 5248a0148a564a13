//! What must be accepted: every example, as kubectl applies it, and read back by our own types.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use serde_json::Value;
use steward_api::{DataStore, TenantControlPlane};

use crate::server::{Server, datastore, kubectl, tenant};

fn examples() -> Result<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .with_context(|| format!("read {}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml")
        })
        .collect();
    files.sort();
    Ok(files)
}

fn documents(file: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(file)?;
    serde_saphyr::from_multiple(&text).with_context(|| file.display().to_string())
}

#[tokio::test]
async fn every_example_is_accepted() -> Result<()> {
    let server = Server::new("examples").await?;
    let mut tried = 0;
    for file in examples()? {
        for mut object in documents(&file)? {
            if object["kind"] != "TenantControlPlane" && object["kind"] != "DataStore" {
                continue;
            }
            if object["kind"] == "TenantControlPlane" {
                object["metadata"]["namespace"] = server.namespace.clone().into();
            }
            let answer = server.try_out(&object).await;
            answer.with_context(|| format!("{} {}", file.display(), object["metadata"]["name"]))?;
            tried += 1;
        }
    }
    ensure!(tried >= 14, "only {tried} examples were found");
    Ok(())
}

#[test]
fn every_example_is_read_by_our_types_and_loses_nothing() -> Result<()> {
    for file in examples()? {
        for object in documents(&file)? {
            let again = match object["kind"].as_str() {
                Some("TenantControlPlane") => {
                    serde_json::to_value(serde_json::from_value::<TenantControlPlane>(
                        object.clone(),
                    )?)?
                }
                Some("DataStore") => {
                    serde_json::to_value(serde_json::from_value::<DataStore>(object.clone())?)?
                }
                _ => continue,
            };
            let lost = missing(&object, &again, "");
            ensure!(
                lost.is_empty(),
                "{}: our types lose {lost:?}",
                file.display()
            );
        }
    }
    Ok(())
}

/// Paths that `whole` has and `part` doesn't. Quantities may change from number to text.
fn missing(whole: &Value, part: &Value, path: &str) -> Vec<String> {
    match (whole, part) {
        (Value::Object(fields), Value::Object(others)) => fields
            .iter()
            .flat_map(|(name, field)| match others.get(name) {
                Some(other) => missing(field, other, &format!("{path}.{name}")),
                None => vec![format!("{path}.{name}")],
            })
            .collect(),
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => items
            .iter()
            .zip(others)
            .flat_map(|(item, other)| missing(item, other, &format!("{path}[]")))
            .collect(),
        (one, other) if one == other || other.as_str() == Some(&one.to_string()) => Vec::new(),
        _ => vec![path.to_owned()],
    }
}

#[tokio::test]
async fn what_looks_odd_and_works_is_accepted() -> Result<()> {
    let server = Server::new("odd").await?;
    for change in [
        "spec: {kubernetes: {version: 1.23.6}}",
        "spec: {kubernetes: {version: v1.34.3+k0s.0}}",
        "spec: {networkProfile: {address: lb.example.com}}",
        "spec: {networkProfile: {address: '2001:db8::1', serviceCidr: 'fd00:1::/112', podCidr: 'fd00:2::/56'}}",
        "spec: {networkProfile: {certSANs: ['*.example.com', localhost, 127.0.0.1]}}",
        "spec: {networkProfile: {serviceCidr: 10.96.0.0/12, podCidr: 192.168.0.0/16}}",
        "spec: {networkProfile: {serviceCidr: 10.96.0.0/28, dnsServiceIPs: [10.96.0.10]}}",
        "spec: {controlPlane: {ingress: {hostname: 'a.example.com:443', port: 443}}}",
        "spec: {controlPlane: {ingress: {hostname: a.1-2-3-4.nip.io, deploy: false}}}",
        "spec: {controlPlane: {ingress: {hostname: a.example.com, konnectivityHostname: a.example.com}}}",
        "spec: {controlPlane: {ingress: {domain: example.com, controllerType: steward}}}",
        "{metadata: {annotations: {kamaji.clastix.io/ingress.domain: example.com}}, spec: {controlPlane: {ingress: {}}}}",
        "spec: {controlPlane: {gateway: {hostname: a.example.com, parentRefs: [{name: g, namespace: x, sectionName: tls, port: 443}]}}}",
        "spec: {controlPlane: {deployment: {replicas: 0}}}",
        "spec: {controlPlane: {deployment: {resources: {apiServer: {requests: {cpu: 1, memory: 1.5Gi}}}}}}",
        "spec: {addons: {tcpProxy: {mode: Terminate, internalEndpoint: '[2001:db8::1]:6443'}}}",
        "spec: {networkProfile: {serviceCidr: 'fd00:1::/112', podCidr: 'fd00:2::/56'}, addons: {tcpProxy: {image: null, address: 'fd00:ffff::1'}}}",
        "spec: {addons: {tcpProxy: {mode: Terminate, address: 'fd00:ffff::1'}}}",
        "spec: {addons: {konnectivity: {agent: {mode: DaemonSet, replicas: 0}}}}",
        "spec: {addons: {workerBootstrap: {provider: talos, talos: {}, csrApproval: {autoApprove: true}}}}",
        "spec: {writePermissions: {blockCreation: true}}",
    ] {
        server
            .try_out(&tenant(change))
            .await
            .with_context(|| change.to_owned())?;
    }
    for change in [
        "spec: {managed: {}}",
        "spec: {managed: {replicas: 1, emptyDir: {}}}",
        "spec: {driver: NATS, endpoints: ['nats:4222'], basicAuth: {username: {content: YQ==}, password: {content: YQ==}}}",
        "spec: {driver: PostgreSQL, endpoints: ['[2001:db8::1]:5432'], tlsConfig: {certificateAuthority: {certificate: {content: YQ==}}}}",
    ] {
        server
            .try_out(&datastore(change))
            .await
            .with_context(|| change.to_owned())?;
    }
    Ok(())
}

#[tokio::test]
async fn what_the_server_stores_is_read_by_our_types() -> Result<()> {
    let server = Server::new("stored").await?;
    let stored = server.create(&tenant("")).await?;
    let tenant: TenantControlPlane = serde_json::from_value(serde_json::to_value(&stored)?)?;
    assert_eq!(tenant.name_any(), "blue");
    assert_eq!(tenant.spec.network_profile.port, 6443);
    let defaults = TenantControlPlane::new("blue", tenant.spec.clone()).spec;
    assert_eq!(
        defaults.addons,
        steward_api::tenant_control_plane::Addons::default()
    );
    Ok(())
}

#[tokio::test]
async fn plain_kubectl_applies_the_crds_and_explains_every_field() -> Result<()> {
    Server::new("kubectl").await?;
    let folder = tempfile::tempdir()?;
    for crd in steward_api::crds::all()? {
        let file = folder
            .path()
            .join(format!("{}.json", crd.spec.names.plural));
        std::fs::write(&file, serde_json::to_vec(&crd)?)?;
        let said = kubectl(&["apply", "-f", &file.display().to_string()]).await?;
        ensure!(said.contains("configured"), "{said}");
    }
    let said = kubectl(&["explain", "tcp.spec.addons.tcpProxy.address"]).await?;
    ensure!(
        said.contains("Address that every node's proxy answers"),
        "{said}"
    );
    let file = folder.path().join("bad.yaml");
    std::fs::write(
        &file,
        serde_json::to_vec(&tenant("spec: {networkProfile: {serviceCidr: x}}"))?,
    )?;
    let said = kubectl(&["apply", "-f", &file.display().to_string()]).await?;
    ensure!(
        said.contains("networkProfile.serviceCidr: not a CIDR; write an address range"),
        "{said}"
    );
    Ok(())
}
