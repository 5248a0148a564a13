//! `steward doctor` against twenty-one faults, made one at a time in a real lab: it has to
//! name each first, with evidence, and what it says to paste has to help.

mod breaking;
mod clock;
mod fault;
mod machine;
mod mending;
mod scene;

use anyhow::{Context, Result, bail, ensure};

use crate::fault::Fault;
use crate::scene::Scene;

/// Every fault, or those that `DOCTOR_FAULTS` names, separated by commas.
fn chosen() -> Vec<Fault> {
    let wanted = std::env::var("DOCTOR_FAULTS").unwrap_or_default();
    let all = Fault::ALL.into_iter();
    all.filter(|f| wanted.is_empty() || wanted.split(',').any(|w| w == format!("{f:?}")))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_names_each_fault_first_and_its_advice_helps() -> Result<()> {
    let scene = Scene::set().await?;
    scene.is_well().await.context("a healthy tenant")?;
    every_way_works(&scene).await?;
    let mut failed = Vec::new();
    for fault in chosen() {
        match scene.play(fault).await {
            Ok(line) => println!("{line}"),
            Err(error) => {
                println!("{fault:?}: {error:#}");
                failed.push(fault);
                // What could not be healed would be named again and again.
                scene.is_well().await.with_context(|| {
                    format!("{fault:?} could not be undone; failed so far: {failed:?}")
                })?;
            }
        }
    }
    ensure!(
        failed.is_empty(),
        "not named, or not healed by what was pasted: {failed:?}"
    );
    Ok(())
}

/// The commands that only look: each has to find the tenant well.
async fn every_way_works(scene: &Scene) -> Result<()> {
    for words in [
        &["get", "-n", "tenants", "-o", "wide"][..],
        &["tree", "t1", "-n", "tenants"],
        &["dns", "t1", "-n", "tenants", "--check"],
        &[
            "connectivity",
            "t1",
            "-n",
            "tenants",
            "--image",
            "steward.lab/toolbox:1",
        ],
    ] {
        let output = scene.steward(words).await?;
        let said = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        println!("$ steward {}\n{said}", words.join(" "));
        if !output.status.success() {
            bail!(
                "steward {} ended with {}: {said}",
                words.join(" "),
                output.status
            );
        }
    }
    Ok(())
}
