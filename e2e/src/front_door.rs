//! Other people's front doors, as a platform team would run them: the manifests in `front-doors/`.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, bail};

use crate::Stage;

/// Installs one and returns the address that it got.
pub async fn install(stage: &Stage, name: &str) -> Result<Ipv4Addr> {
    let file = format!("{}/front-doors/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    let manifest = std::fs::read_to_string(&file).with_context(|| file.clone())?;
    stage.apply(&manifest).await?;
    let deployment = format!("deployment/{name}");
    let mut words = vec!["rollout", "status", "-n", name, &deployment];
    words.push("--timeout=180s");
    if let Err(error) = stage.kubectl(&words).await {
        bail!("{error:#}\n{}", stage.what_happened(name).await);
    }
    stage.address_of(name, name).await
}
