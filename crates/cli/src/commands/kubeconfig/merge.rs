//! `--merge`: adds a tenant to the caller's own kubeconfig file.
//!
//! What is in the file already stays as it is, fields that we do not know among them.
//! The file is written beside and renamed: never half.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::problem::Problem;

/// Merges it under the tenant's name and switches to it. A name that is somebody else's
/// in this file is left to them, and the namespace put before ours.
pub(super) fn merge(namespace: &str, wanted: &str, text: &str) -> Result<(), Problem> {
    let file = own_file()?;
    let problem = |why: String| Problem::File {
        file: file.display().to_string(),
        why,
    };
    let new: Value = serde_saphyr::from_str(text).map_err(|e| problem(e.to_string()))?;
    let old = read(&file).map_err(problem)?;
    let (merged, name) = merged(old, &new, namespace, wanted).map_err(problem)?;
    let printed = serde_saphyr::to_string(&merged).map_err(|e| problem(e.to_string()))?;
    write(&file, &printed).map_err(|e| problem(e.to_string()))?;
    anstream::eprintln!("context {name} is in {} and current", file.display());
    Ok(())
}

fn read(file: &Path) -> Result<Map<String, Value>, String> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error.to_string()),
    };
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let first = |why: String| why.lines().next().unwrap_or_default().to_owned();
    match serde_saphyr::from_str(&text).map_err(|e| first(e.to_string()))? {
        Value::Object(map) => Ok(map),
        _ => Err("this is not a kubeconfig; it was left as it is".to_owned()),
    }
}

/// The old file with the tenant in it, and the name it got.
fn merged(
    mut old: Map<String, Value>,
    new: &Value,
    namespace: &str,
    wanted: &str,
) -> Result<(Value, String), String> {
    let cluster = new["clusters"][0]["cluster"].clone();
    let user = new["users"][0]["user"].clone();
    let name = if is_anothers(&old, wanted, &cluster) {
        format!("{namespace}-{wanted}")
    } else {
        wanted.to_owned()
    };
    let context = json!({ "cluster": name, "user": name });
    for (list, key, value) in [
        ("clusters", "cluster", cluster),
        ("users", "user", user),
        ("contexts", "context", context),
    ] {
        let entries = old.entry(list).or_insert_with(|| json!([]));
        if entries.is_null() {
            *entries = json!([]);
        }
        let entries = entries
            .as_array_mut()
            .ok_or_else(|| format!("{list} is not a list; the file was left as it is"))?;
        entries.retain(|e| e["name"] != name.as_str());
        entries.push(json!({ "name": name, key: value }));
    }
    old.entry("apiVersion").or_insert_with(|| json!("v1"));
    old.entry("kind").or_insert_with(|| json!("Config"));
    old.insert("current-context".to_owned(), json!(name));
    Ok((Value::Object(old), name))
}

/// Whether an entry of that name leads to another cluster: neither address nor CA are ours.
fn is_anothers(old: &Map<String, Value>, name: &str, ours: &Value) -> bool {
    let found = |list: &str| {
        let entries = old.get(list).and_then(Value::as_array);
        entries
            .into_iter()
            .flatten()
            .find(|e| e["name"] == name)
            .cloned()
    };
    let Some(cluster) = found("clusters") else {
        return found("users").is_some() || found("contexts").is_some();
    };
    let same = |key: &str| !ours[key].is_null() && cluster["cluster"][key] == ours[key];
    !same("server") && !same("certificate-authority-data")
}

/// With a mode that lets nobody else read, whatever there was before.
fn write(file: &Path, text: &str) -> std::io::Result<()> {
    // What a link leads to is meant, not the link.
    let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let beside = file.with_extension("steward-new");
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    // One that an interrupted run left may have another mode.
    let _ = std::fs::remove_file(&beside);
    let mut out = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)?;
    out.write_all(text.as_bytes())?;
    std::fs::rename(&beside, &file)
}

fn own_file() -> Result<PathBuf, Problem> {
    // Several files may be named; the first is the one kubectl would write to.
    let given = std::env::var_os("KUBECONFIG")
        .and_then(|v| std::env::split_paths(&v).find(|p| !p.as_os_str().is_empty()));
    let home = std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".kube/config"));
    given.or(home).ok_or_else(|| {
        Problem::Argument("there is no home folder to merge into; set KUBECONFIG".to_owned())
    })
}
