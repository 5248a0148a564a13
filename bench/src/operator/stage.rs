//! What a round takes place on: API server, datastore, CRDs, Secrets, `DataStore`.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use k8s_openapi::{
    ByteString,
    api::core::v1::{Namespace, Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use steward_lab::fixture::ApiServer;

use super::{audit::HARNESS, contender::Contender, datastore::Datastore};
use crate::process;

/// Where everything of a round lives.
pub(super) const NAMESPACE: &str = "bench";
/// The `DataStore` of all tenants.
pub(super) const DATASTORE: &str = "bench";
/// For CRDs to be served.
const LIMIT: Duration = Duration::from_secs(30);

/// A stage that is set.
pub(super) struct Stage {
    /// The API server.
    pub(super) server: ApiServer,
    /// The API server's process.
    pub(super) server_pid: u32,
    /// Talks to it, and says who it is.
    pub(super) client: Client,
    datastore: Datastore,
}

impl Stage {
    /// Sets it for one of the operators.
    pub(super) async fn set(contender: &Contender, work: &Path, directory: &Path) -> Result<Self> {
        let bin = work.join("bin");
        let datastore = Datastore::start(&bin, directory, contender.datastore_keys())
            .context("starting the datastore")?;
        let server = ApiServer::builder().audit().bin_dir(&bin).start().await?;
        let port = server
            .url()
            .rsplit(':')
            .next()
            .unwrap_or_default()
            .to_owned();
        let server_pid = process::with_argument(&format!("--secure-port={port}"))
            .context("finding the API server's process")?;
        let mut config = server.config().await?;
        let name = http::HeaderValue::from_static(HARNESS);
        config.headers.push((http::header::USER_AGENT, name));
        let client = Client::try_from(config)?;
        let stage = Self {
            server,
            server_pid,
            client,
            datastore,
        };
        stage.furnish(contender).await?;
        Ok(stage)
    }

    async fn furnish(&self, contender: &Contender) -> Result<()> {
        let create = PostParams::default();
        let crds: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        for crd in contender.crds()? {
            crds.create(&create, &crd).await.context("creating a CRD")?;
        }
        let namespace = Namespace {
            metadata: named(NAMESPACE),
            ..Namespace::default()
        };
        Api::all(self.client.clone())
            .create(&create, &namespace)
            .await?;
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), NAMESPACE);
        for (name, pair) in [
            ("etcd-ca", &self.datastore.ca),
            ("etcd-root", &self.datastore.root),
        ] {
            secrets.create(&create, &secret(name, pair)).await?;
        }
        let datastores = contender.resource("DataStore", "datastores");
        let datastores: Api<kube::api::DynamicObject> =
            Api::all_with(self.client.clone(), &datastores);
        let wanted = contender.datastore(&Datastore::endpoint());
        let begun = Instant::now();
        while let Err(error) = datastores.create(&create, &wanted).await {
            // Right after its CRD, a kind may not be served yet.
            if begun.elapsed() > LIMIT {
                bail!("the DataStore is refused: {error}");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}

fn secret(name: &str, (certificate, key): &(String, String)) -> Secret {
    let entry = |key: &str, text: &str| (key.to_owned(), ByteString(text.as_bytes().to_vec()));
    Secret {
        metadata: named(name),
        data: Some([entry("tls.crt", certificate), entry("tls.key", key)].into()),
        ..Secret::default()
    }
}
