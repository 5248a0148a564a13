//! The two operators: how each is started, and its tenants as it wants them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use super::stage::{DATASTORE, NAMESPACE};
use crate::{pki::Pki, process::Program};

/// The newest version that Kamaji 1.0.0 knows; ours takes it as well.
const KUBERNETES: &str = "v1.30.2";

/// An operator under measurement.
#[derive(Clone, Debug)]
pub(super) enum Contender {
    /// Ours.
    Steward { program: PathBuf, keys: Keys },
    /// Where ours comes from.
    Kamaji { program: PathBuf, crds: PathBuf },
}

/// The kind of keys to ask ours for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// What it makes by itself.
    Ecdsa,
    /// What Kamaji makes.
    Rsa,
}

impl Contender {
    fn group(&self) -> &'static str {
        match self {
            Self::Steward { .. } => steward_api::GROUP,
            Self::Kamaji { .. } => "kamaji.clastix.io",
        }
    }

    /// One of its kinds.
    pub(super) fn resource(&self, kind: &str, plural: &str) -> ApiResource {
        ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk(self.group(), "v1alpha1", kind),
            plural,
        )
    }

    /// The keys of the datastore's CA, as it can read them.
    pub(super) fn datastore_keys(&self) -> Keys {
        match self {
            Self::Steward { .. } => Keys::Ecdsa,
            Self::Kamaji { .. } => Keys::Rsa,
        }
    }

    /// Its tenants' kind.
    pub(super) fn tenants(&self) -> ApiResource {
        self.resource("TenantControlPlane", "tenantcontrolplanes")
    }

    /// Its CRDs.
    pub(super) fn crds(&self) -> Result<Vec<CustomResourceDefinition>> {
        match self {
            Self::Steward { .. } => Ok(steward_api::crds::all()?),
            Self::Kamaji { crds, .. } => {
                let files = fs::read_dir(crds).context("reading Kamaji's CRDs")?;
                files
                    .map(|file| {
                        let text = fs::read_to_string(file?.path())?;
                        serde_saphyr::from_str(&on_one_line(&text))
                            .context("parsing one of Kamaji's CRDs")
                    })
                    .collect()
            }
        }
    }

    /// A tenant, the same for both, as far as they have the same fields.
    pub(super) fn tenant(&self, name: &str) -> DynamicObject {
        let mut spec = json!({
            "dataStore": DATASTORE,
            "controlPlane": {
                "deployment": { "replicas": 1 },
                "service": { "serviceType": "ClusterIP" },
            },
            "kubernetes": { "version": KUBERNETES, "kubelet": { "cgroupfs": "systemd" } },
            "networkProfile": { "port": 6443 },
            "addons": { "coreDNS": {}, "kubeProxy": {}, "konnectivity": {} },
        });
        if let Self::Steward {
            keys: Keys::Rsa, ..
        } = self
        {
            spec["certificates"] = json!({ "keyAlgorithm": "RSA" });
        }
        self.object(
            "TenantControlPlane",
            "tenantcontrolplanes",
            Some(NAMESPACE),
            name,
            &spec,
        )
    }

    /// The `DataStore` of all tenants.
    pub(super) fn datastore(&self, endpoint: &str) -> DynamicObject {
        let secret = |name: &str, key: &str| json!({ "secretReference": { "name": name, "namespace": NAMESPACE, "keyPath": key } });
        let spec = json!({
            "driver": "etcd",
            "endpoints": [endpoint],
            "tlsConfig": {
                "certificateAuthority": {
                    "certificate": secret("etcd-ca", "tls.crt"), "privateKey": secret("etcd-ca", "tls.key"),
                },
                "clientCertificate": {
                    "certificate": secret("etcd-root", "tls.crt"), "privateKey": secret("etcd-root", "tls.key"),
                },
            },
        });
        self.object("DataStore", "datastores", None, DATASTORE, &spec)
    }

    fn object(
        &self,
        kind: &str,
        plural: &str,
        namespace: Option<&str>,
        name: &str,
        spec: &Value,
    ) -> DynamicObject {
        let mut object =
            DynamicObject::new(name, &self.resource(kind, plural)).data(json!({ "spec": spec }));
        object.metadata.namespace = namespace.map(str::to_owned);
        object
    }

    /// How to start it with so many workers.
    pub(super) fn program(
        &self,
        directory: &Path,
        kubeconfig: &Path,
        workers: usize,
    ) -> Result<Program> {
        let common = [
            "--leader-elect=false".to_owned(),
            "--metrics-bind-address=127.0.0.1:8080".to_owned(),
            "--health-probe-bind-address=127.0.0.1:8081".to_owned(),
            format!("--datastore={DATASTORE}"),
            format!("--max-concurrent-tcp-reconciles={workers}"),
            format!("--pod-namespace={NAMESPACE}"),
        ];
        let mut program = match self {
            Self::Steward { program, .. } => Program::new("steward-operator", program, common),
            Self::Kamaji { program, .. } => {
                let ca = webhook_certificates(directory)?;
                let own = [
                    "--disable-telemetry".to_owned(),
                    "--serviceaccount-name=bench".to_owned(),
                    "--migrate-image=none".to_owned(),
                    "--zap-log-level=error".to_owned(),
                    format!("--tmp-directory={}", directory.join("kamaji").display()),
                    format!("--webhook-ca-path={}", ca.display()),
                ];
                let words = std::iter::once("manager".to_owned())
                    .chain(common)
                    .chain(own);
                let mut program = Program::new("kamaji", program, words);
                program
                    .environment
                    .push(("TMPDIR", directory.display().to_string()));
                program
            }
        };
        program
            .environment
            .push(("KUBECONFIG", kubeconfig.display().to_string()));
        Ok(program)
    }
}

/// Kamaji does not start without certificates for webhooks that nobody calls here.
fn webhook_certificates(directory: &Path) -> Result<PathBuf> {
    let folder = directory.join("k8s-webhook-server/serving-certs");
    fs::create_dir_all(&folder)?;
    let pki = Pki::issue(&folder)?;
    fs::copy(&pki.cert, folder.join("tls.crt"))?;
    fs::copy(&pki.key, folder.join("tls.key"))?;
    Ok(pki.ca)
}

/// Puts a quoted description that goes on at the margin of its key, as the generator of
/// Kamaji's CRDs writes it, on one line: our parser wants it indented further.
fn on_one_line(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut open = None;
    for line in text.lines() {
        if let Some(quote) = open {
            // A backslash at the end takes the line break with it.
            if joined.ends_with('\\') {
                joined.pop();
            } else {
                joined.push(' ');
            }
            joined.push_str(line.trim_start());
            open = (!closes(line, quote)).then_some(quote);
        } else {
            joined.push_str(line);
            open = ['\'', '"'].into_iter().find(|quote| {
                let value = line.trim_start().strip_prefix("description: ");
                let quoted = value.and_then(|value| value.strip_prefix(*quote));
                quoted.is_some_and(|value| !closes(value, *quote))
            });
        }
        if open.is_none() {
            joined.push('\n');
        }
    }
    joined
}

/// Whether quoted text ends with this line; an escaped quote does not end it.
fn closes(line: &str, quote: char) -> bool {
    line.strip_suffix(quote)
        .is_some_and(|rest| quote == '\'' || !rest.ends_with('\\'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_over_several_lines_becomes_one() {
        let broken = "description: \"Condition\n  of \\\n  this\"\n";
        assert_eq!(on_one_line(broken), "description: \"Condition of this\"\n");
        let text = "a:\n  description: 'Name: required\n  for volumes, optional\n  else'\n  type: 'string'\n";
        assert_eq!(
            on_one_line(text),
            "a:\n  description: 'Name: required for volumes, optional else'\n  type: 'string'\n"
        );
    }
}
