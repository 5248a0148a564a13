//! Where the programs are that the lab starts.
//!
//! Programs come from a folder the caller names, else from `STEWARD_LAB_BIN_DIR`,
//! else from the parts cache, which builds what is missing. This module only
//! finds; it never builds.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
};

/// The programs found so far, by name.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    known: BTreeMap<String, PathBuf>,
    folders: Vec<PathBuf>,
}

/// A program that is nowhere to be found.
#[derive(Debug, thiserror::Error)]
#[error("{program} is not in {looked}: put it there, or name another folder with --bin-dir")]
pub struct ProgramsError {
    program: String,
    looked: String,
}

impl Programs {
    /// Programs of one folder, and whatever `STEWARD_LAB_BIN_DIR` names.
    pub fn in_folder(folder: Option<&Path>) -> Self {
        let folders = folder
            .map(Path::to_path_buf)
            .into_iter()
            .chain(env::var_os("STEWARD_LAB_BIN_DIR").map(PathBuf::from))
            .collect();
        Self {
            known: BTreeMap::new(),
            folders,
        }
    }

    /// Adds a program whose path is known.
    pub fn add(&mut self, name: &str, path: PathBuf) {
        self.known.insert(name.to_owned(), path);
    }

    /// The path of a program.
    pub fn path(&self, name: &str) -> Result<PathBuf, ProgramsError> {
        self.folders
            .iter()
            .map(|folder| folder.join(name))
            .find(|path| path.is_file())
            .or_else(|| self.known.get(name).cloned())
            .ok_or_else(|| ProgramsError {
                program: name.to_owned(),
                looked: self.looked(),
            })
    }

    fn looked(&self) -> String {
        if self.folders.is_empty() {
            return "the lab's parts".to_owned();
        }
        let folders: Vec<_> = self
            .folders
            .iter()
            .map(|f| f.display().to_string())
            .collect();
        folders.join(", ")
    }
}

/// The programs of the light fixture.
#[expect(
    clippy::unused_async,
    reason = "the parts cache is asked here, and may build"
)]
pub(crate) async fn for_fixture(folder: Option<&Path>) -> Result<Programs, ProgramsError> {
    Ok(Programs::in_folder(folder))
}

/// The program `steward-lab` itself, which is every host's first process.
///
/// A test binary is not it: then it is the one beside the test binary, which is
/// built if need be, as cargo does not build other crates' programs by itself.
pub(crate) fn own_program() -> Result<PathBuf, crate::Error> {
    const NAME: &str = "steward-lab";
    if let Some(path) = env::var_os("STEWARD_LAB_PROGRAM") {
        return Ok(path.into());
    }
    let own = env::current_exe().map_err(crate::Error::files("find", "this program"))?;
    if own.file_name().is_some_and(|name| name == NAME) {
        return Ok(own);
    }
    if let Some(cargo) = env::var_os("CARGO") {
        // Says what it does only if it fails; a build that is up to date is quick.
        let _ = std::process::Command::new(cargo)
            .args(["build", "--quiet", "--package", NAME, "--bin", NAME])
            .status();
    }
    let beside = own
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(NAME));
    beside
        .into_iter()
        .find(|path| path.is_file())
        .ok_or_else(|| {
            crate::Error::Invalid(format!(
                "the program {NAME} is not beside {}: build it with `cargo build -p {NAME}`",
                own.display()
            ))
        })
}
