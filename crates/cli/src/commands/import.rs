//! `steward import`: files in, our manifests on standard output, what has no
//! equivalent on standard error.

use std::io::Read;
use std::process::ExitCode;

use serde_json::Value;

use crate::args::Import;
use crate::import::import;
use crate::problem::Problem;

/// Reads every file before it prints anything: one bad document means no output.
pub fn run(args: &Import) -> Result<ExitCode, Problem> {
    let mut manifests = Vec::new();
    let mut notes = Vec::new();
    for file in &args.files {
        let name = file.display().to_string();
        for (index, document) in documents(&name)?.iter().enumerate() {
            let imported = import(document).map_err(|why| Problem::File {
                file: name.clone(),
                why: format!("document {}: {why}; nothing was written", index + 1),
            })?;
            manifests.extend(imported.manifests);
            notes.extend(imported.notes);
        }
    }
    for manifest in &manifests {
        let text =
            serde_saphyr::to_string(manifest).map_err(|e| Problem::Argument(e.to_string()))?;
        anstream::println!("---\n{}", text.trim_end());
    }
    for note in &notes {
        anstream::eprintln!("# {note}");
    }
    Ok(ExitCode::SUCCESS)
}

fn documents(file: &str) -> Result<Vec<Value>, Problem> {
    let problem = |why: String| Problem::File {
        file: file.to_owned(),
        why,
    };
    let mut text = String::new();
    if file == "-" {
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|e| problem(e.to_string()))?;
    } else {
        text = std::fs::read_to_string(file).map_err(|e| problem(e.to_string()))?;
    }
    let parsed: Vec<Value> = serde_saphyr::from_multiple(&text)
        .map_err(|e| problem(format!("this is not YAML: {e}")))?;
    let found: Vec<Value> = parsed.into_iter().filter(|v| !v.is_null()).collect();
    if found.is_empty() {
        return Err(problem("there is no document in it".to_owned()));
    }
    Ok(found)
}
