//! The operator's rights inside a tenant, given by itself where they are missing.
//!
//! Owns: the moment in which the operator is a member of `system:masters`, with a certificate of minutes, to write
//! the `ClusterRole` that lists what it may do from then on. A tenant's administrator who removes that role takes
//! nothing away for long: it is written again.

use std::time::Duration;

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::{Api, Client};
use serde_json::Value;
use steward_plan::{Kind, Object};

use super::{Identity, Target, limits};
use crate::{
    apply::{Cluster, Engine},
    error::Error,
    lease::Fence,
    metrics::Metrics,
};

/// API servers hear of a new role through a watch: this is how often we ask whether they have.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// Makes sure that this client has the operator's rights.
pub(super) async fn ensure(client: &Client, target: &Target, fence: &Fence) -> Result<(), Error> {
    let wanted = steward_plan::operator_access();
    match granted(client, &wanted).await {
        Ok(true) => return Ok(()),
        Ok(false) => {}
        Err(error) if error.is_denied() => {}
        Err(error) => return Err(error),
    }
    let master = limits::client(target.client(Identity::Granting)?, fence);
    let engine = Engine::new(master, Cluster::Tenant, Metrics::default());
    for object in &wanted {
        engine.apply(object, None).await?;
    }
    // The caller bounds this.
    while !granted(client, &wanted).await.unwrap_or(false) {
        tokio::time::sleep(ASK_EVERY).await;
    }
    Ok(())
}

/// Whether role and binding are there as they should be. To read them takes the rights that they give.
async fn granted(client: &Client, wanted: &[Object]) -> Result<bool, Error> {
    let read = |error| Error::Read {
        what: "our rights in the tenant".into(),
        error,
    };
    for object in wanted {
        let name = &object.key.name;
        let (found, field) = if object.key.kind == Kind::ClusterRole {
            let api: Api<ClusterRole> = Api::all(client.clone());
            let found = api.get_opt(name).await.map_err(read)?;
            (found.map(|role| serde_json::to_value(role.rules)), "rules")
        } else {
            let api: Api<ClusterRoleBinding> = Api::all(client.clone());
            let found = api.get_opt(name).await.map_err(read)?;
            (
                found.map(|bound| serde_json::to_value(bound.subjects)),
                "subjects",
            )
        };
        let found = found.and_then(Result::ok).unwrap_or(Value::Null);
        if found != object.body[field] {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Nothing came of it in time.
pub(super) fn too_slow(patience: Duration) -> Error {
    Error::TenantAccess {
        reason: format!("it did not give the operator its rights within {patience:?}"),
    }
}
