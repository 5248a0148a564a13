//! Writes of objects that have an owner: never to an object that is somebody else's.
//!
//! Owns: how an API server is asked so that it refuses by itself when the object is another one than was
//! judged. Between reading and writing there is no gap: an object that was seen is written by its uid, and one
//! that was not seen is only ever created.

use kube::{
    api::{Patch, PatchParams},
    core::Request,
};
use serde_json::{Value, json};
use steward_plan::{Object, Owner, Standing};

use super::{Engine, owned, path, version};
use crate::error::Error;

/// A version that no object ever has: the first write to a datastore makes a later one. Server-side apply
/// compares versions with an object that is there, and makes one that is not.
const NEVER: &str = "1";

impl Engine {
    /// Writes an object of this owner. `live` is how it was when it was last read.
    pub(super) async fn write_owned(
        &self,
        object: &Object,
        body: &Value,
        owner: &Owner,
        live: Option<&Value>,
    ) -> Result<Value, Error> {
        if let Some(live) = live {
            return self.write_seen(object, body, owner, live).await;
        }
        let mut new = body.clone();
        new["metadata"]["resourceVersion"] = json!(NEVER);
        let conflict = match self.patch(object, &new).await {
            Err(error) if error.is_conflict() => error,
            done => return done,
        };
        match self.get(&object.key).await? {
            Some(found) => self.write_seen(object, body, owner, &found).await,
            // It went meanwhile.
            None => Err(conflict),
        }
    }

    async fn write_seen(
        &self,
        object: &Object,
        body: &Value,
        owner: &Owner,
        found: &Value,
    ) -> Result<Value, Error> {
        match owner.standing(found) {
            Standing::Ours => {}
            Standing::Offered => self.adopt(object, body, found).await?,
            Standing::Foreign => return Err(self.foreign(object, owner, found)),
        }
        let mut body = body.clone();
        body["metadata"]["uid"] = found["metadata"]["uid"].clone();
        self.patch(object, &body).await
    }

    async fn adopt(&self, object: &Object, body: &Value, found: &Value) -> Result<(), Error> {
        let params = PatchParams {
            field_manager: Some(owned::MANAGER.into()),
            ..PatchParams::default()
        };
        let request = Request::new(path(object.key.kind, object.key.namespace.as_deref()))
            .patch(
                &object.key.name,
                &params,
                &Patch::Merge(Owner::adoption(body, found)),
            )
            .map_err(|error| self.failed(object, kube::Error::BuildRequest(error)))?;
        let adopted: Value = self
            .client
            .request(request)
            .await
            .map_err(|error| self.failed(object, error))?;
        let plural = object.key.kind.names().3;
        self.versions.wrote(plural, version(&adopted));
        tracing::info!(object = %object.key, "took over an object that was offered");
        Ok(())
    }

    fn foreign(&self, object: &Object, owner: &Owner, found: &Value) -> Error {
        self.note(object.key.kind, "foreign");
        Error::NotOurs {
            what: object.key.to_string(),
            why: owner.refusal(&object.key, found),
        }
    }
}
