//! Kamaji, built from its own module by name, into the lab's cache.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};
use steward_lab::parts::Options;

const MODULE: &str = "github.com/clastix/kamaji";
const VERSION: &str = "v1.0.0";

/// What a build gives.
#[derive(Clone, Debug)]
pub(super) struct Built {
    /// The program.
    pub(super) program: PathBuf,
    /// The directory of its CRDs.
    pub(super) crds: PathBuf,
}

/// Builds it, or finds what was built before.
pub(super) fn build() -> Result<Built> {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("rivals/kamaji");
    let options = Options::from_env()?;
    let cache = options.cache.join("rivals");
    fs::create_dir_all(&cache).with_context(|| format!("making {}", cache.display()))?;
    let program = cache.join(format!("kamaji-{VERSION}"));
    let go = |arguments: &[&str]| -> Result<String> {
        let output = Command::new("go")
            .args(arguments)
            .current_dir(&module)
            .env("GOCACHE", options.cache.join("go-build"))
            .env("CGO_ENABLED", "0")
            .output()
            .context("starting `go`; is a Go toolchain in PATH?")?;
        if !output.status.success() {
            bail!(
                "go {}: {}",
                arguments.join(" "),
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    if !program.is_file() {
        eprintln!("building Kamaji {VERSION}, minutes the first time");
        let unfinished = cache.join(format!("kamaji-{VERSION}.unfinished"));
        let target = unfinished.display().to_string();
        go(&[
            "build",
            "-trimpath",
            "-ldflags=-s -w",
            "-o",
            &target,
            MODULE,
        ])?;
        fs::rename(&unfinished, &program)?;
    }
    let source = go(&["list", "-m", "-f", "{{.Dir}}", MODULE])?;
    Ok(Built {
        program,
        crds: Path::new(&source).join("charts/kamaji/crds"),
    })
}
