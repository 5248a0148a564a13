//! Who may report a tenant's status. The namespace's user has every right on its tenants and on their status.

use anyhow::Result;
use serde_json::json;

use crate::people::{May, person};
use crate::server::{Server, tenant};

#[tokio::test]
async fn a_status_is_the_operator_s_to_report() -> Result<()> {
    let server = Server::new("status").await?;
    let nina = person(&server, "nina-status", May::Edit).await?;
    let mut object = tenant("{}");
    object["metadata"]["name"] = "blue".into();
    nina.create(&object).await?;
    let forged = json!({"egress": {"cluster": "Direct", "controlPlane": "Direct", "kept": true}});
    let said = format!("{:?}", nina.report(&object, &forged).await.unwrap_err());
    assert!(
        said.contains("status: what is in it is decided by the operator"),
        "{said}"
    );
    // Who may do everything may do this too.
    server.report(&object, &forged).await?;
    Ok(())
}
