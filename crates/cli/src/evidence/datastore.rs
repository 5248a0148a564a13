//! The tenant's datastore, and its credentials there.

use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{Api, ListParams};
use steward_api::metadata::labels;
use steward_api::{DataStore, TenantControlPlane};
use steward_doctor::{Datastore, Seen, Unseen};

use super::{condition, members, trouble, unseen};
use crate::cluster::Management;

/// Looks at the `DataStore`, and at the pods of a managed one.
pub(super) async fn look(cluster: &Management, tenant: &TenantControlPlane) -> Seen<Datastore> {
    let status = tenant.status.clone().unwrap_or_default();
    let used = status.storage.and_then(|s| s.data_store_name);
    let name = used
        .or_else(|| tenant.spec.data_store.clone())
        .unwrap_or_else(|| "default".to_owned());
    let api: Api<DataStore> = Api::all(cluster.client.clone());
    let found = api.get_opt(&name).await.map_err(|e| unseen(&e))?;
    let found = found.ok_or_else(|| Unseen::Failed(format!("there is no DataStore {name}")))?;
    let conditions = found.status.unwrap_or_default().conditions;
    let mut store = Datastore {
        conditions: conditions.iter().map(condition).collect(),
        name,
        ..Datastore::default()
    };
    if found.spec.managed.is_some() {
        pods(cluster, &mut store).await;
    }
    Ok(store)
}

/// Without the right to see the pods, the conditions have to do.
async fn pods(cluster: &Management, store: &mut Datastore) {
    let api: Api<Pod> = Api::all(cluster.client.clone());
    let selector = format!(
        "{}={},{}=etcd",
        labels::DATASTORE,
        store.name,
        labels::COMPONENT
    );
    let Ok(found) = api.list(&ListParams::default().labels(&selector)).await else {
        return;
    };
    store.unready = found.iter().filter_map(trouble).collect();
    store.members = members::look(&cluster.client, &found.items).await;
    let namespace = found
        .items
        .first()
        .and_then(|p| p.metadata.namespace.clone());
    store.namespace = namespace.unwrap_or_else(|| "steward-system".to_owned());
    if found.items.is_empty() {
        store.unready.push("it has no pods".to_owned());
    }
}

/// Compares the tenant's certificate with the CA it was given, and with the clock.
pub(super) async fn credentials(cluster: &Management, name: &str) -> Seen<()> {
    let secret = format!("{name}-datastore-certificate");
    let api: Api<Secret> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let found = api.get_opt(&secret).await.map_err(|e| unseen(&e))?;
    let Some(found) = found else {
        return Err(Unseen::NotLooked(format!("there is no Secret {secret}")));
    };
    let data = found.data.unwrap_or_default();
    let text = |key: &str| data.get(key).and_then(|v| std::str::from_utf8(&v.0).ok());
    let (Some(authority), Some(certificate)) = (text("ca.crt"), text("server.crt")) else {
        return Err(Unseen::Failed(format!(
            "Secret {secret} lacks ca.crt or server.crt"
        )));
    };
    let failed = |what: String| Err(Unseen::Failed(format!("Secret {secret}: {what}")));
    let facts = match steward_pki::inspect(certificate) {
        Ok(facts) => facts,
        Err(error) => return failed(error.to_string()),
    };
    if facts.not_after < jiff::Timestamp::now() {
        return failed(format!(
            "the certificate of {} expired at {}",
            facts.common_name, facts.not_after
        ));
    }
    if !signed(certificate, authority) {
        return failed(format!(
            "the certificate of {} was not signed by the datastore's CA",
            facts.common_name
        ));
    }
    Ok(())
}

fn signed(certificate: &str, authority: &str) -> bool {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    CertificateDer::from_pem_slice(certificate.as_bytes())
        .is_ok_and(|der| steward_pki::is_signed_by(&der, authority))
}
