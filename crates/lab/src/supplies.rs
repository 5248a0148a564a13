//! Everything a lab needs that it does not make itself: programs and images.
//!
//! Gathered before anything is made, because it may take long the first time and
//! may fail: then there is nothing to clean up.

use std::{
    collections::BTreeMap,
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use crate::{
    Error, HostId,
    images::catalogue::{self, Item},
    parts::{self, Options, Part, Programs, Release},
    progress::Progress,
};

/// Programs by name, and image archives by what is in them.
#[derive(Debug)]
pub(crate) struct Supplies {
    release: Release,
    programs: BTreeMap<String, PathBuf>,
    images: BTreeMap<Item, PathBuf>,
}

/// Where parts come from: a folder that is named, else one that
/// `STEWARD_LAB_BIN_DIR` names, else the cache, where they are built.
pub(crate) fn options(bin_dir: Option<&Path>) -> Result<Options, parts::Error> {
    let bin_dir = bin_dir
        .map(Path::to_path_buf)
        .or_else(|| env::var_os("STEWARD_LAB_BIN_DIR").map(PathBuf::from));
    Ok(Options::from_env()?.with_bin_dir(bin_dir))
}

/// The archives of these items, made if need be.
pub(crate) async fn archives(items: Vec<Item>, progress: &Progress) -> Result<Vec<PathBuf>, Error> {
    let (options, progress) = (options(None)?, progress.clone());
    let work = move || {
        let archive = |item: Item| Ok(catalogue::ensure(item, &options, &progress)?.path);
        items.into_iter().map(archive).collect()
    };
    blocking(work).await
}

/// The programs of a release, made if need be.
pub(crate) async fn kubernetes(release: Release, progress: &Progress) -> Result<Programs, Error> {
    let (options, progress) = (options(None)?, progress.clone());
    let work = move || {
        Ok(parts::ensure(
            Part::Kubernetes(release),
            &options,
            &progress,
        )?)
    };
    blocking(work).await
}

/// Makes links to programs in a folder, in place of those of the same names.
pub(crate) fn link<'a>(
    programs: impl Iterator<Item = (&'a str, &'a Path)>,
    folder: &Path,
) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(Error::files("make", folder))?;
    for (name, path) in programs {
        let (new, link) = (folder.join(format!(".{name}")), folder.join(name));
        symlink(path, &new).map_err(Error::files("link", &new))?;
        fs::rename(&new, &link).map_err(Error::files("rename", &new))?;
    }
    Ok(())
}

/// Runs what blocks where it may.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::Invalid(format!("gathering the parts was stopped: {error}")))?
}

impl Supplies {
    /// Finds or makes everything. Touches nothing but the parts' cache.
    pub(crate) async fn gather(
        release: Release,
        options: Options,
        progress: &Progress,
    ) -> Result<Self, Error> {
        let progress = progress.clone();
        blocking(move || Self::gather_now(release, &options, &progress)).await
    }

    fn gather_now(release: Release, options: &Options, progress: &Progress) -> Result<Self, Error> {
        let mut wanted = vec![Part::Kubernetes(release)];
        wanted.extend(
            Part::LAB
                .into_iter()
                .filter(|part| !matches!(part, Part::Kubernetes(_))),
        );
        let all = parts::ensure_all(&wanted, options, progress)?;
        let programs = all
            .iter()
            // What the system has is in every host's PATH anyway.
            .filter(|(part, _)| !matches!(part, Part::Node | Part::Toolbox | Part::Pause))
            .flat_map(|(_, programs)| programs.iter())
            .map(|(name, path)| (name.to_owned(), path.to_owned()))
            .collect();
        let mut images = BTreeMap::new();
        for item in items(release, HostId::Mgmt) {
            let archive = catalogue::ensure(item, options, progress)?;
            images.insert(item, archive.path);
        }
        Ok(Self {
            release,
            programs,
            images,
        })
    }

    pub(crate) fn version(&self) -> &'static str {
        self.release.version()
    }

    pub(crate) fn programs(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.programs
            .iter()
            .map(|(name, path)| (name.as_str(), path.as_path()))
    }

    /// The archives a node needs, in the order in which it needs them.
    pub(crate) fn images_for(&self, host: HostId) -> impl Iterator<Item = &Path> {
        let items = items(self.release, host);
        items
            .into_iter()
            .filter_map(|item| self.images.get(&item).map(PathBuf::as_path))
    }
}

fn items(release: Release, host: HostId) -> Vec<Item> {
    let mut items = vec![
        Item::Pause,
        Item::CoreDns,
        Item::Kubernetes(release),
        Item::Konnectivity,
        Item::Toolbox,
    ];
    if host == HostId::Mgmt {
        items.push(Item::Etcd);
    }
    items
}
