//! Takes the CRDs of other projects out of their Go modules.
//!
//! A module's content is pinned by the sum that Go computes over it; only YAML
//! files are taken, nothing of the module is compiled.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde::Deserialize;

use super::{Error, Part, child, error::io, go::settle, sources::Source};
use crate::progress::Progress;

/// One line of `modules.txt`.
#[derive(Debug, PartialEq, Eq)]
struct Module<'a> {
    name: &'a str,
    path: &'a str,
    version: &'a str,
    sum: &'a str,
    folder: &'a str,
    prefix: &'a str,
}

/// What `go mod download -json` says of a module.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[derive(Default)]
struct Downloaded {
    dir: PathBuf,
    sum: String,
    error: String,
}

/// Puts every module's manifests into `stage/share/NAME/`.
pub(crate) fn fetch(
    part: Part,
    modules: &[Source],
    go: &Path,
    stage: &Path,
    progress: &Progress,
) -> Result<(), Error> {
    let mut task = progress.task(part.to_string());
    for module in modules.iter().flat_map(|(_, text)| parse(text)) {
        task.at(format_args!("fetching {} {}", module.path, module.version));
        let folder = download(part, &module, go, stage)?;
        let to = stage.join("share").join(module.name);
        fs::create_dir_all(&to).map_err(io("create", &to))?;
        let from = folder.join(module.folder);
        for entry in fs::read_dir(&from).map_err(io("read", &from))?.flatten() {
            let name = entry.file_name();
            if name.to_string_lossy().starts_with(module.prefix) {
                fs::copy(entry.path(), to.join(&name)).map_err(io("copy", &entry.path()))?;
            }
        }
    }
    task.done("fetched");
    Ok(())
}

fn download(part: Part, module: &Module<'_>, go: &Path, stage: &Path) -> Result<PathBuf, Error> {
    let mut command = child::command(go);
    settle(&mut command, stage.join("tmp/go"));
    let output = command
        .args(["mod", "download", "-json"])
        .arg(format!("{}@{}", module.path, module.version))
        .env("GOFLAGS", "-mod=mod")
        .current_dir(stage)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| Error::Run {
            program: go.display().to_string(),
            source,
        })?;
    let said: Downloaded = serde_json::from_slice(&output.stdout).unwrap_or_default();
    if said.dir.as_os_str().is_empty() {
        let detail = if said.error.is_empty() {
            String::from_utf8_lossy(&output.stderr).trim().to_owned()
        } else {
            said.error
        };
        return Err(Error::Fetch {
            part: part.to_string(),
            what: format!("Go module {} {}", module.path, module.version),
            detail: detail.rsplit(": ").next().unwrap_or(&detail).to_owned(),
        });
    }
    if said.sum != module.sum {
        return Err(Error::Tampered {
            part: part.to_string(),
            detail: format!("{} {} has sum {}", module.path, module.version, said.sum),
        });
    }
    Ok(said.dir)
}

fn parse(text: &str) -> Vec<Module<'_>> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some(Module {
                name: words.next()?,
                path: words.next()?,
                version: words.next()?,
                sum: words.next()?,
                folder: words.next()?,
                prefix: words.next()?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::sources;

    #[test]
    fn every_line_of_the_pinned_list_is_a_module() {
        let text = sources::CRDS[0].1;
        let modules = parse(text);
        let lines = text.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(modules.len(), lines);
        assert!(
            modules.iter().all(|m| m.sum.starts_with("h1:")),
            "{modules:?}"
        );
        let names: Vec<_> = modules.iter().map(|m| m.name).collect();
        assert_eq!(names, ["gateway-api", "traefik"]);
    }
}
