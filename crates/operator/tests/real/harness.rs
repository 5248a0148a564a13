//! A whole operator in this process, against a real API server and a real etcd.

mod objects;
mod operator;
mod players;

use std::time::Duration;

use clap::Parser;
use k8s_openapi::{
    ByteString,
    api::core::v1::{Namespace, Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use steward_api::{DataStore, TenantControlPlane};
use steward_lab::fixture::ApiServer;
use steward_operator::{
    config::Config,
    datastore::claims::{Account, Owner},
    run::{self, Extras},
};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

use crate::programs::EtcdServer;
pub(crate) use operator::Operator;

/// Long enough for a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// An API server with our CRDs, a datastore, and room for operators.
pub(crate) struct World {
    pub server: ApiServer,
    pub client: Client,
    pub etcd: EtcdServer,
    pub store: String,
    pub namespace: String,
    _room: SemaphorePermit<'static>,
}

impl World {
    /// An operator works on the whole cluster, so each test has a cluster of its own. Three at a time: an
    /// API server is 300 MiB.
    pub(crate) async fn new() -> Self {
        static ROOM: Semaphore = Semaphore::const_new(3);
        let room = ROOM.acquire().await.unwrap();
        let server = ApiServer::builder().audit().start().await.unwrap();
        let config = server.config().await.unwrap();
        let client = steward_operator::client::client(config).unwrap();
        install_crds(&client).await;
        let etcd = EtcdServer::start(&[]).await;
        let mut root = steward_operator::datastore::etcd::Etcd::connect(&etcd.root())
            .await
            .unwrap();
        root.bootstrap().await.unwrap();
        let namespace = server.namespace("tenants").await.unwrap();
        let world = Self {
            server,
            client,
            etcd,
            store: format!("store-{namespace}"),
            namespace,
            _room: room,
        };
        world.make_store().await;
        world
    }

    async fn make_store(&self) {
        let access = self.etcd.root();
        let data = [
            ("ca.crt", access.ca.clone()),
            ("ca.key", self.etcd.authority.pair().key.clone()),
            ("tls.crt", access.certificate.clone()),
            ("tls.key", access.key.clone()),
        ];
        let secret = Secret {
            metadata: kube::api::ObjectMeta {
                name: Some("etcd".into()),
                ..Default::default()
            },
            data: Some(
                data.into_iter()
                    .map(|(key, text)| (key.to_owned(), ByteString(text.into_bytes())))
                    .collect(),
            ),
            ..Default::default()
        };
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        secrets
            .create(&PostParams::default(), &secret)
            .await
            .unwrap();
        let reference = |key: &str| json!({"secretReference": {"name": "etcd", "namespace": self.namespace, "keyPath": key}});
        let store: DataStore = serde_json::from_value(json!({
            "apiVersion": "steward.butlerlabs.dev/v1alpha1", "kind": "DataStore", "metadata": {"name": self.store},
            "spec": {"driver": "etcd", "endpoints": [self.etcd.endpoint], "tlsConfig": {
                "certificateAuthority": {"certificate": reference("ca.crt"), "privateKey": reference("ca.key")},
                "clientCertificate": {"certificate": reference("tls.crt"), "privateKey": reference("tls.key")}}},
        }))
        .unwrap();
        self.stores()
            .create(&PostParams::default(), &store)
            .await
            .unwrap();
    }

    pub(crate) fn config(&self, flags: &[&str]) -> Config {
        let usual = [
            "steward-operator",
            "--metrics-bind-address=0",
            "--health-probe-bind-address=0",
            "--leader-elect=false",
            "--pod-name=test",
        ];
        let own = [
            format!("--datastore={}", self.store),
            format!("--pod-namespace={}", self.namespace),
        ];
        let all = usual
            .iter()
            .map(ToString::to_string)
            .chain(own)
            .chain(flags.iter().map(ToString::to_string));
        Config::try_parse_from(all).unwrap()
    }

    pub(crate) fn start(&self, flags: &[&str]) -> Operator {
        self.start_with(self.client.clone(), flags, Extras::default())
    }

    pub(crate) fn start_with(&self, client: Client, flags: &[&str], extras: Extras) -> Operator {
        let _ = tracing_subscriber::fmt()
            .with_env_filter(
                tracing_subscriber::EnvFilter::try_from_default_env()
                    .unwrap_or_else(|_| "warn,kube_client=error".into()),
            )
            .with_test_writer()
            .try_init();
        let stop = CancellationToken::new();
        let task = tokio::spawn(run::run(
            self.config(flags),
            client,
            extras.clone(),
            stop.clone(),
        ));
        Operator { extras, stop, task }
    }

    pub(crate) fn tenants(&self) -> Api<TenantControlPlane> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn stores(&self) -> Api<DataStore> {
        Api::all(self.client.clone())
    }

    /// Makes a tenant behind a load balancer; `spec` is merged over it.
    pub(crate) async fn make_tenant(&self, name: &str, spec: &Value) -> TenantControlPlane {
        let mut body = json!({
            "apiVersion": "steward.butlerlabs.dev/v1alpha1", "kind": "TenantControlPlane",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "controlPlane": {"deployment": {"replicas": 1}, "service": {"serviceType": "LoadBalancer"}},
                "kubernetes": {"version": "v1.36.3", "kubelet": {}},
                "networkProfile": {"port": 6443},
                "addons": {"coreDNS": {}, "kubeProxy": {}, "konnectivity": {}},
            },
        });
        json_merge(&mut body["spec"], spec);
        let tenant: TenantControlPlane = serde_json::from_value(body).unwrap();
        self.tenants()
            .create(&PostParams::default(), &tenant)
            .await
            .unwrap()
    }

    pub(crate) async fn condition(
        &self,
        name: &str,
        type_: &str,
    ) -> Option<(String, String, String)> {
        let tenant = self.tenants().get(name).await.ok()?;
        let conditions = tenant.status?.conditions;
        conditions
            .into_iter()
            .find(|condition| condition.type_ == type_)
            .map(|c| (c.status, c.reason, c.message))
    }

    /// Waits until a condition is as wished.
    pub(crate) async fn until_condition(
        &self,
        name: &str,
        type_: &str,
        status: &str,
        reason: Option<&str>,
    ) {
        until(
            &format!("{type_}={status} ({reason:?}) of {name}"),
            async || {
                let found = self.condition(name, type_).await;
                let fits = found.as_ref().is_some_and(|(s, r, _)| {
                    s == status && reason.is_none_or(|reason| reason == r)
                });
                if fits {
                    Ok(())
                } else {
                    Err(format!("{found:?}"))
                }
            },
        )
        .await;
    }

    /// Waits until the tenant's objects exist and its status is filled.
    pub(crate) async fn until_planned(&self, name: &str) {
        until(&format!("everything of {name}"), async || {
            let objects = self.objects(name).await;
            let deployed = objects.iter().any(|(key, _)| key.starts_with("Deployment"));
            if deployed {
                Ok(())
            } else {
                Err(format!(
                    "{:?}",
                    objects.iter().map(|(key, _)| key).collect::<Vec<_>>()
                ))
            }
        })
        .await;
    }

    pub(crate) async fn patch_tenant(&self, name: &str, patch: &Value) {
        self.tenants()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
    }

    /// Removes a tenant without an operator.
    pub(crate) async fn remove_by_hand(&self, name: &str) {
        let tenant = self.tenants().get(name).await.unwrap();
        self.patch_tenant(name, &json!({"metadata": {"finalizers": null}}))
            .await;
        self.delete_tenant(name).await;
        self.sweep(name).await;
        let uid = tenant.metadata.uid.unwrap();
        let root = steward_operator::datastore::etcd::Etcd::connect(&self.etcd.root())
            .await
            .unwrap();
        let system: Api<Namespace> = Api::all(self.client.clone());
        let cluster = system.get("kube-system").await.unwrap().metadata.uid;
        let account = Account {
            user: uid.clone(),
            schema: uid.clone(),
            owner: Owner {
                cluster: cluster.unwrap(),
                namespace: self.namespace.clone(),
                name: name.into(),
                uid,
            },
            rival: None,
        };
        let left = steward_operator::datastore::Datastore::remove(&root, &account);
        assert_eq!(left.await.unwrap(), None);
    }

    pub(crate) async fn delete_tenant(&self, name: &str) {
        self.tenants()
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }

    pub(crate) async fn until_gone(&self, name: &str) {
        until(&format!("{name} to be gone"), async || {
            match self.tenants().get_opt(name).await.unwrap() {
                None => Ok(()),
                Some(found) => Err(format!("{:?}", found.metadata.finalizers)),
            }
        })
        .await;
    }
}

async fn install_crds(client: &Client) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in steward_api::crds::all().unwrap() {
        let name = crd.metadata.name.clone().unwrap();
        api.patch(
            &name,
            &PatchParams::apply("test").force(),
            &Patch::Apply(&crd),
        )
        .await
        .unwrap();
        until(&name, async || {
            let found = api.get(&name).await.map_err(|error| error.to_string())?;
            let conditions = found
                .status
                .and_then(|status| status.conditions)
                .unwrap_or_default();
            let ready = conditions
                .iter()
                .any(|c| c.type_ == "Established" && c.status == "True");
            if ready {
                Ok(())
            } else {
                Err("not established".to_owned())
            }
        })
        .await;
    }
    until("the API to be served", async || {
        let tenants: Api<TenantControlPlane> = Api::all(client.clone());
        tenants
            .list(&ListParams::default().limit(1))
            .await
            .map(drop)
            .map_err(|error| error.to_string())
    })
    .await;
}

pub(crate) async fn until<T, E: std::fmt::Display>(
    what: &str,
    look: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    match steward_lab::poll(PATIENCE, look).await {
        Ok(found) => found,
        Err(seen) => panic!("waited {PATIENCE:?} for {what}; last seen: {seen}"),
    }
}

fn json_merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                if value.is_null() {
                    base.remove(key);
                } else {
                    json_merge(base.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
        }
        (base, over) => *base = over.clone(),
    }
}
