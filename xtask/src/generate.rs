//! Everything that is generated, as a list of files and their content.
//!
//! Nothing else in the tree is written by a program; a file in this list is never edited by hand.

mod cli_reference;
mod conditions;
mod manifests;
mod rbac;
mod reference;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A generated file.
struct File {
    /// Where, from the root of the repository.
    path: String,
    content: String,
}

fn files() -> Result<Vec<File>> {
    let mut files = manifests::files()?;
    files.push(rbac::file());
    files.push(reference::file()?);
    files.push(conditions::file());
    files.push(cli_reference::file());
    Ok(files)
}

/// Writes what is stale. True: nothing went wrong.
pub(crate) fn write() -> Result<bool> {
    for file in stale()? {
        let path = root().join(&file.path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        }
        fs::write(&path, &file.content).with_context(|| format!("write {}", file.path))?;
        println!("wrote {} ({} bytes)", file.path, file.content.len());
    }
    Ok(true)
}

/// Lists what is stale. True: nothing is.
pub(crate) fn check() -> Result<bool> {
    let stale = stale()?;
    for file in &stale {
        eprintln!("stale: {}; run `cargo xtask generate`", file.path);
    }
    Ok(stale.is_empty())
}

fn stale() -> Result<Vec<File>> {
    let mut files = files()?;
    files.retain(|file| {
        fs::read_to_string(root().join(&file.path)).ok().as_ref() != Some(&file.content)
    });
    Ok(files)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_generated_is_up_to_date() {
        let stale: Vec<_> = super::stale()
            .unwrap()
            .into_iter()
            .map(|file| file.path)
            .collect();
        assert!(
            stale.is_empty(),
            "run `cargo xtask generate`: {stale:?} differ"
        );
    }
}
