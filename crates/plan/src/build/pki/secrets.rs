//! Secrets with authorities, keys and certificates.

use std::collections::{BTreeMap, BTreeSet};

use steward_pki::{Authority, Error, Pair, Request, San, ServiceAccountKeys, Usage};

use super::{Content, Workshop};
use crate::{
    object::{Object, Stage},
    settings::Settings,
    validate::{Storage, Validated, token_files},
    way::Ways,
};

const OPAQUE: &str = "Opaque";
const TLS: &str = "kubernetes.io/tls";
const X509: Option<&str> = Some("x509");

fn map<const N: usize>(entries: [(&str, &str); N]) -> BTreeMap<String, String> {
    entries
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

fn client(common_name: &str) -> Request {
    Request {
        common_name: common_name.into(),
        organization: None,
        usage: Usage::Client,
        sans: vec![],
    }
}

/// Every name the API server answers to.
fn api_server_names(settings: &Settings, tenant: &Validated, ways: &Ways) -> Vec<San> {
    let names = &tenant.names;
    let mut all: BTreeSet<San> = BTreeSet::new();
    let dns = |text: String| San::Dns(text.to_ascii_lowercase());
    for suffix in ["", ".default", ".default.svc"] {
        all.insert(dns(format!("kubernetes{suffix}")));
    }
    all.insert(dns(format!(
        "kubernetes.default.svc.{}",
        tenant.network.domain
    )));
    let host = names.service_host();
    all.insert(dns("localhost".into()));
    all.insert(dns(names.tenant.clone()));
    all.insert(dns(format!("{}.{}", names.tenant, names.namespace)));
    all.insert(dns(format!("{host}.{}", settings.cluster_domain)));
    all.insert(dns(host));
    all.insert(San::parse("127.0.0.1"));
    all.extend(tenant.network.kubernetes_ips.iter().copied().map(San::Ip));
    all.extend(tenant.network.advertise.map(San::Ip));
    all.extend(tenant.network.address.clone());
    all.extend(tenant.network.extra_sans.iter().cloned());
    all.extend(
        tenant
            .node_proxy
            .as_ref()
            .map(|proxy| San::Ip(proxy.address)),
    );
    for way in ways.all() {
        all.insert(way.san());
        // At a shared front door the addresses are everybody's.
        if !way.by_name() {
            all.extend(way.addresses.iter().copied().map(San::Ip));
        }
    }
    all.into_iter().collect()
}

/// Names of the ends that are only reached by the tenant's endpoint: gate, konnectivity.
fn endpoint_names(ways: &Ways) -> BTreeSet<San> {
    ways.all()
        .flat_map(|way| [way.san(), San::parse(&way.konnectivity_host)])
        .collect()
}

impl Workshop<'_> {
    /// What doesn't depend on the endpoint: authorities, service account keys, clients.
    pub(crate) fn foundations(&mut self) -> Result<Vec<Object>, Error> {
        let names = self.tenant.names.clone();
        let ca = self.ca.pair().clone();
        let front = self.front_proxy.pair().clone();
        let ca_data = map([
            ("ca.crt", &ca.certificate),
            ("ca.key", &ca.key),
            ("tls.crt", &ca.certificate),
            ("tls.key", &ca.key),
        ]);
        let front_data = map([
            ("front-proxy-ca.crt", &front.certificate),
            ("front-proxy-ca.key", &front.key),
        ]);
        let accounts = self.service_account()?;
        let plain = |name, component, because, data| Content {
            name,
            component,
            stage: Stage::Keys,
            because,
            type_: OPAQUE,
            lifecycle: None,
            data,
        };
        let mut all = vec![
            self.secret(plain(
                names.ca(),
                "ca",
                "nodes and clients trust this authority",
                ca_data,
            )),
            self.secret(plain(
                names.front_proxy_ca(),
                "front-proxy-ca-certificate",
                "aggregated APIs trust this authority",
                front_data,
            )),
            self.secret(plain(
                names.service_account(),
                "sa-certificate",
                "service account tokens are signed with these keys",
                accounts,
            )),
        ];
        self.remember(&ca.certificate);
        all.push(self.leaf(
            names.kubelet_client(),
            "apiserver-kubelet-client",
            "the API server calls kubelets with it",
            &client("kube-apiserver-kubelet-client"),
            false,
        )?);
        all.push(self.leaf(
            names.front_proxy_client(),
            "front-proxy-client",
            "the API server calls aggregated APIs with it",
            &client("front-proxy-client"),
            true,
        )?);
        Ok(all)
    }

    /// The API server's certificate, the gate's and konnectivity's: they carry the endpoint.
    pub(crate) fn servers(&mut self, ways: &Ways, gate: bool) -> Result<Vec<Object>, Error> {
        let names = self.tenant.names.clone();
        let server = |common_name: &str, sans: Vec<San>| Request {
            common_name: common_name.into(),
            organization: None,
            usage: Usage::Server,
            sans,
        };
        let request = server(
            "kube-apiserver",
            api_server_names(self.settings, self.tenant, ways),
        );
        let mut all = vec![self.leaf(
            names.api_server(),
            "apiserver",
            "the API server shows it to clients",
            &request,
            false,
        )?];
        let sans: Vec<San> = endpoint_names(ways).into_iter().collect();
        if gate {
            all.push(self.tls(
                names.gate_certificate(),
                "gate-certificate",
                "the gate shows it to the proxies on the tenant's nodes",
                &server("steward-gate", sans.clone()),
            )?);
        }
        if self.tenant.spec.addons.konnectivity.is_some() {
            all.push(self.tls(
                names.konnectivity_certificate(),
                "konnectivity-certificate",
                "the konnectivity server shows it to its agents",
                &server("system:konnectivity-server", sans),
            )?);
        }
        Ok(all)
    }

    /// A certificate for the proxy on the nodes that opens TLS itself: never the API
    /// server's own, and only with names that pods use.
    pub(crate) fn terminating_proxy(&mut self) -> Result<(Object, Pair), Error> {
        let name = self.tenant.names.tcp_proxy_certificate();
        let network = &self.tenant.network;
        let mut sans: Vec<San> = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"]
            .into_iter()
            .map(San::parse)
            .collect();
        sans.push(San::Dns(format!(
            "kubernetes.default.svc.{}",
            network.domain
        )));
        sans.extend(network.kubernetes_ips.iter().copied().map(San::Ip));
        let request = Request {
            common_name: "steward-tcp-proxy".into(),
            organization: None,
            usage: Usage::Server,
            sans,
        };
        let because = "the proxy on the tenant's nodes shows it to pods";
        let object = self.tls(name.clone(), "tcp-proxy-certificate", because, &request)?;
        let data = crate::secret::data(&object.body);
        let text = |key: &str| data.get(key).cloned().unwrap_or_default();
        let pair = Pair {
            certificate: text("tls.crt"),
            key: text("tls.key"),
        };
        Ok((object, pair))
    }

    /// The connection to the datastore and the certificate for it.
    pub(crate) fn datastore(&mut self, storage: &Storage) -> Result<Vec<Object>, Error> {
        let names = self.tenant.names.clone();
        let password = match self.live_data(&names.datastore_config()) {
            Some(mut data) if data.contains_key("DB_PASSWORD") => {
                data.remove("DB_PASSWORD").unwrap_or_default()
            }
            _ => hex::encode(&self.keys.random()?[..16]),
        };
        let endpoints = storage.store.endpoints.join(",");
        let config = map([
            ("DB_CONNECTION_STRING", &endpoints),
            ("DB_SCHEMA", &storage.schema),
            ("DB_USER", &storage.user),
            ("DB_PASSWORD", &password),
        ]);
        let config = self.secret(Content {
            name: names.datastore_config(),
            component: "datastore-config",
            stage: Stage::Config,
            because: "it says where the tenant's data is",
            type_: OPAQUE,
            lifecycle: None,
            data: config,
        });
        let data = self.datastore_certificate(storage, &names.datastore_certificate())?;
        let certificate = self.secret(Content {
            name: names.datastore_certificate(),
            component: "datastore-certificate",
            stage: Stage::Config,
            because: "the API server shows it to the datastore",
            type_: OPAQUE,
            lifecycle: X509,
            data,
        });
        Ok(vec![config, certificate])
    }

    fn datastore_certificate(
        &mut self,
        storage: &Storage,
        name: &str,
    ) -> Result<BTreeMap<String, String>, Error> {
        let ca = &storage.store.ca_certificate;
        let found = self.found(name, "server.crt", "server.key");
        let pair = if storage.ready {
            let authority = Authority::from_pair(Pair {
                certificate: ca.clone(),
                key: storage.store.ca_key.clone(),
            })?;
            self.keep_or_issue(name, found, &client(&storage.user), &authority)?
        } else {
            // The store is away: what is there must do.
            found.unwrap_or(Pair {
                certificate: String::new(),
                key: String::new(),
            })
        };
        Ok(map([
            ("ca.crt", ca),
            ("server.crt", &pair.certificate),
            ("server.key", &pair.key),
        ]))
    }

    fn service_account(&self) -> Result<BTreeMap<String, String>, Error> {
        let certificates = &self.tenant.certificates;
        let keys = match &certificates.token_keys {
            Some(keys) => keys.clone(),
            None => ServiceAccountKeys::new(self.keys, certificates.key_kind)?,
        };
        Ok(token_files(&keys))
    }

    /// A Secret with `<stem>.crt` and `<stem>.key`.
    fn leaf(
        &mut self,
        name: String,
        stem: &str,
        because: &'static str,
        request: &Request,
        front_proxy: bool,
    ) -> Result<Object, Error> {
        let (certificate, key) = (format!("{stem}.crt"), format!("{stem}.key"));
        let found = self.found(&name, &certificate, &key);
        let authority = if front_proxy {
            &self.front_proxy
        } else {
            &self.ca
        };
        let authority = Authority::from_pair(authority.pair().clone())?;
        let pair = self.keep_or_issue(&name, found, request, &authority)?;
        let component = name
            .strip_prefix(&format!("{}-", self.tenant.names.tenant))
            .unwrap_or(stem)
            .to_owned();
        Ok(self.secret(Content {
            name,
            component: &component,
            stage: Stage::Pki,
            because,
            type_: OPAQUE,
            lifecycle: X509,
            data: map([(&certificate, &pair.certificate), (&key, &pair.key)]),
        }))
    }

    /// A Secret of type `kubernetes.io/tls`, signed by the cluster's authority.
    fn tls(
        &mut self,
        name: String,
        component: &str,
        because: &'static str,
        request: &Request,
    ) -> Result<Object, Error> {
        let found = self.found(&name, "tls.crt", "tls.key");
        let authority = Authority::from_pair(self.ca.pair().clone())?;
        let pair = self.keep_or_issue(&name, found, request, &authority)?;
        Ok(self.secret(Content {
            name,
            component,
            stage: Stage::Pki,
            because,
            type_: TLS,
            lifecycle: X509,
            data: map([("tls.crt", &pair.certificate), ("tls.key", &pair.key)]),
        }))
    }
}
