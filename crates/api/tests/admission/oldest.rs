//! The same on the oldest Kubernetes that a management cluster may run.
//!
//! Rules are compiled by the API server they are given to, and older ones know less of the
//! language: one that is refused there keeps the whole chart from being installed.

use anyhow::{Result, ensure};
use tokio::process::Command;

const OLDEST: &str = "1.31";

#[tokio::test]
async fn all_of_this_holds_on_the_oldest_release() -> Result<()> {
    let output = Command::new(std::env::current_exe()?)
        .args(["--skip", "all_of_this_holds_on_the_oldest_release"])
        .env("STEWARD_LAB_KUBERNETES", OLDEST)
        .output()
        .await?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "on {OLDEST}:\n{said}");
    // An exit code alone would be as good if nothing had been run.
    ensure!(!said.contains(" 0 passed"), "{said}");
    Ok(())
}
