//! Writing statuses and finalizers: once, and only when they differ. Removing annotations that were followed.

use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{apply::owned::MANAGER, error::Error};

/// Writes a status if it differs from the present one. Says whether it did.
///
/// # Errors
/// The client's.
pub async fn write<K, S>(
    api: &Api<K>,
    object: &K,
    before: Option<&S>,
    status: &S,
) -> Result<bool, Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
    S: Serialize + PartialEq,
{
    if before == Some(status) {
        return Ok(false);
    }
    let what = format!("status of {} {}", K::kind(&()), object.name_any());
    let status = serde_json::to_value(status).map_err(|source| Error::Encode {
        what: what.clone(),
        source,
    })?;
    let body = json!({
        "apiVersion": K::api_version(&()), "kind": K::kind(&()),
        "metadata": { "name": object.name_any() }, "status": status,
    });
    let params = PatchParams::apply(MANAGER).force();
    let written = api
        .patch_status(&object.name_any(), &params, &Patch::Apply(&body))
        .await;
    match written {
        Ok(_) => Ok(true),
        // It was deleted meanwhile; nobody reads its status any more.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(Error::Write {
            what,
            because: "it changed".into(),
            error,
        }),
    }
}

/// Adds or removes a finalizer, if that is needed, and says what the object is then. It must still be the
/// one that was read.
///
/// # Errors
/// The client's; a conflict when the object changed.
pub async fn finalizer<K>(
    api: &Api<K>,
    object: &K,
    finalizer: &str,
    wanted: bool,
) -> Result<Option<K>, Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let present = object.finalizers().iter().any(|name| name == finalizer);
    if present == wanted {
        return Ok(None);
    }
    let mut finalizers: Vec<&str> = object
        .finalizers()
        .iter()
        .map(String::as_str)
        .filter(|name| *name != finalizer)
        .collect();
    if wanted {
        finalizers.push(finalizer);
    }
    let patch: Value = json!({"metadata": {"finalizers": finalizers, "resourceVersion": object.resource_version()}});
    let params = PatchParams {
        field_manager: Some(MANAGER.into()),
        ..PatchParams::default()
    };
    match api
        .patch(&object.name_any(), &params, &Patch::Merge(&patch))
        .await
    {
        Ok(written) => Ok(Some(written)),
        Err(kube::Error::Api(status)) if status.code == 404 && !wanted => Ok(None),
        Err(error) => Err(Error::Write {
            what: format!("finalizer of {} {}", K::kind(&()), object.name_any()),
            because: if wanted {
                "there is something to clean up when it goes"
            } else {
                "everything is cleaned up"
            }
            .into(),
            error,
        }),
    }
}

/// Removes an annotation that has been followed, so that it is not followed a second time. The object must
/// still be the one that was read.
///
/// # Errors
/// The client's; a conflict when the object changed.
pub async fn answer<K>(api: &Api<K>, object: &K, annotation: &str) -> Result<(), Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let patch: Value = json!({"metadata": {
        "annotations": {annotation: null}, "resourceVersion": object.resource_version()}});
    let params = PatchParams {
        field_manager: Some(MANAGER.into()),
        ..PatchParams::default()
    };
    api.patch(&object.name_any(), &params, &Patch::Merge(&patch))
        .await
        .map(drop)
        .map_err(|error| Error::Write {
            what: format!("{} {}", K::kind(&()), object.name_any()),
            because: format!("what {annotation} asks for is done"),
            error,
        })
}
