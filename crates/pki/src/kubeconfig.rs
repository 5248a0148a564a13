//! Kubeconfigs with everything embedded: written as YAML, read back to see whether
//! they still say what they should.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde_json::{Value, json};

use crate::{Error, Pair};

/// A kubeconfig with one cluster and one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kubeconfig<'a> {
    /// Name of the cluster in it.
    pub cluster: &'a str,
    /// `https://host:port`.
    pub server: &'a str,
    /// Certificate of the authority, PEM.
    pub authority: &'a str,
    /// Name of the user in it.
    pub user: &'a str,
    /// The user's certificate and key; without them it is only a pointer to the
    /// cluster, as in `cluster-info`.
    pub client: Option<&'a Pair>,
}

/// What a kubeconfig says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// Server of its first cluster.
    pub server: String,
    /// Authority of its first cluster, PEM.
    pub authority: String,
    /// Certificate and key of its first user.
    pub client: Option<Pair>,
}

impl Kubeconfig<'_> {
    /// The YAML text.
    pub fn render(&self) -> Result<String, Error> {
        let value = if self.client.is_some() {
            self.full()
        } else {
            self.bare()
        };
        serde_saphyr::to_string(&value).map_err(|error| Error::WriteKubeconfig(error.to_string()))
    }

    fn full(&self) -> Value {
        let context = format!("{}@{}", self.user, self.cluster);
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": self.cluster, "cluster": self.target()}],
            "users": [{"name": self.user, "user": self.credentials()}],
            "contexts": [{
                "name": context,
                "context": {"cluster": self.cluster, "user": self.user},
            }],
            "current-context": context,
            "preferences": {},
        })
    }

    /// As kubeadm writes it into `cluster-info`: one cluster without a name.
    fn bare(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": self.cluster, "cluster": self.target()}],
            "contexts": null,
            "current-context": "",
            "preferences": {},
            "users": null,
        })
    }

    fn target(&self) -> Value {
        json!({
            "certificate-authority-data": BASE64.encode(self.authority),
            "server": self.server,
        })
    }

    fn credentials(&self) -> Value {
        self.client.map_or_else(
            || json!({}),
            |client| {
                json!({
                    "client-certificate-data": BASE64.encode(&client.certificate),
                    "client-key-data": BASE64.encode(&client.key),
                })
            },
        )
    }
}

impl Reading {
    /// Reads a kubeconfig; `None` if it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_saphyr::from_str(text).ok()?;
        let cluster = value.pointer("/clusters/0/cluster")?;
        let user = value.pointer("/users/0/user");
        let client = user.and_then(|user| {
            Some(Pair {
                certificate: decode(user.get("client-certificate-data")?)?,
                key: decode(user.get("client-key-data")?)?,
            })
        });
        Some(Self {
            server: cluster.get("server")?.as_str()?.to_owned(),
            authority: decode(cluster.get("certificate-authority-data")?)?,
            client,
        })
    }
}

fn decode(value: &Value) -> Option<String> {
    String::from_utf8(BASE64.decode(value.as_str()?).ok()?).ok()
}
