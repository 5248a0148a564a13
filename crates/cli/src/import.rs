//! Other products' manifests become ours.
//!
//! Owns recognising them and carrying every field over or saying that it has no
//! equivalent: nothing is dropped in silence. Pure; applying is somebody else's.

use serde_json::Value;

mod consume;
mod fit;
mod k0rdent;
mod k0smotron;
mod kamaji;
#[cfg(test)]
mod tests;

/// What came of one document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    /// Our manifests.
    pub manifests: Vec<Value>,
    /// What a person should know: a line for each field without an equivalent.
    pub notes: Vec<String>,
}

/// Why a document could not be imported.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// It is not a Kubernetes object at all.
    #[error("this is not a Kubernetes manifest: it has no apiVersion and kind")]
    NotAManifest,
    /// It is an object of somebody we do not know.
    #[error(
        "{api_version} {kind} can't be imported; known are TenantControlPlane and DataStore of Kamaji, Cluster and K0smotronControlPlane of k0smotron, ClusterDeployment of k0rdent"
    )]
    Unknown {
        /// As written.
        api_version: String,
        /// As written.
        kind: String,
    },
    /// A field without which nothing can be made.
    #[error("{kind} {name}: {field} is missing; without it no tenant can be made")]
    Missing {
        /// The kind of the document.
        kind: String,
        /// Its name.
        name: String,
        /// The path of the field.
        field: &'static str,
    },
}

/// Imports one document.
pub fn import(document: &Value) -> Result<Imported, Error> {
    let text = |key: &str| document.get(key).and_then(Value::as_str).map(str::to_owned);
    let (Some(api_version), Some(kind)) = (text("apiVersion"), text("kind")) else {
        return Err(Error::NotAManifest);
    };
    if document
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .is_none_or(str::is_empty)
    {
        return Err(Error::Missing {
            kind,
            name: "without a name".to_owned(),
            field: "metadata.name",
        });
    }
    let group = api_version.split('/').next().unwrap_or_default();
    let mut imported = match (group, kind.as_str()) {
        ("kamaji.clastix.io", "TenantControlPlane" | "DataStore") => kamaji::import(document),
        ("k0smotron.io", "Cluster")
        | ("controlplane.cluster.x-k8s.io", "K0smotronControlPlane") => {
            k0smotron::import(document)?
        }
        ("k0rdent.mirantis.com", "ClusterDeployment") => k0rdent::import(document),
        ("steward.butlerlabs.dev", _) => {
            let note = format!("{kind} is ours already; it is passed through unchanged");
            return Ok(Imported {
                manifests: vec![document.clone()],
                notes: vec![note],
            });
        }
        _ => return Err(Error::Unknown { api_version, kind }),
    };
    for manifest in &mut imported.manifests {
        fit::fit(manifest, &mut imported.notes);
    }
    Ok(imported)
}
