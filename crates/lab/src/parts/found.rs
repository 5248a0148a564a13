//! Ready-made programs: those of `--bin-dir`, and those that happen to be on PATH.
//!
//! A part counts as found only when all its programs are there in the pinned
//! version. In `--bin-dir`, which somebody chose, a wrong version is worth a line;
//! on PATH it is ignored without a word. A part that also brings files of its own
//! (templates, manifests) is never found this way.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use super::{
    child,
    recipe::{Origin, Recipe},
    version,
};
use crate::progress::Progress;

/// The part's programs in one folder.
pub(crate) fn in_folder(
    folder: &Path,
    recipe: &Recipe,
    progress: &Progress,
) -> Option<BTreeMap<String, PathBuf>> {
    if !can_be_found(recipe) {
        return None;
    }
    let mut paths = BTreeMap::new();
    for program in recipe.programs {
        let path = folder.join(program.name);
        if !path.is_file() {
            return None;
        }
        if !version::is(&path, program.ask, recipe.version) {
            progress.note(format_args!(
                "{} is not version {}: not used",
                path.display(),
                recipe.version
            ));
            return None;
        }
        paths.insert(program.name.to_owned(), path);
    }
    Some(paths)
}

/// The part's programs wherever they are on a search path.
pub(crate) fn on_path(search_path: &OsStr, recipe: &Recipe) -> Option<BTreeMap<String, PathBuf>> {
    if !can_be_found(recipe) {
        return None;
    }
    // Presence is cheap to see and versions are not: look for all of them first.
    let everywhere = |program| child::on_path(search_path, program).next().is_some();
    if !recipe
        .programs
        .iter()
        .all(|program| everywhere(program.name))
    {
        return None;
    }
    let mut paths = BTreeMap::new();
    for program in recipe.programs {
        let path = child::on_path(search_path, program.name)
            .find(|path| version::is(path, program.ask, recipe.version))?;
        paths.insert(program.name.to_owned(), path);
    }
    Some(paths)
}

fn can_be_found(recipe: &Recipe) -> bool {
    let brings_files = match &recipe.origin {
        Origin::Go(go) => go.share.is_some(),
        Origin::Manifests { .. } | Origin::Unpacked { .. } => true,
        Origin::Wheel { .. } | Origin::Debian(_) => false,
    };
    !recipe.programs.is_empty() && !brings_files
}
