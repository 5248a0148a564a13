//! Everything a lab needs that it does not make itself: programs and images.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
};

use crate::{Error, HostId, progress::Progress};

/// Programs by name, and image archives.
#[derive(Debug)]
pub(crate) struct Supplies {
    version: String,
    programs: BTreeMap<String, PathBuf>,
    images: Vec<PathBuf>,
}

impl Supplies {
    /// Finds or makes everything. Touches nothing but the parts' cache.
    pub(crate) async fn gather(
        version: &str,
        bin_dir: Option<&Path>,
        _progress: &Progress,
    ) -> Result<Self, Error> {
        let folder = bin_dir
            .map(Path::to_path_buf)
            .or_else(|| env::var_os("STEWARD_LAB_BIN_DIR").map(PathBuf::from))
            .unwrap_or_default();
        let list = |folder: PathBuf| -> Vec<PathBuf> {
            let mut list: Vec<_> = std::fs::read_dir(folder)
                .into_iter()
                .flatten()
                .flatten()
                .map(|e| e.path())
                .collect();
            list.sort();
            list
        };
        let programs = list(folder.clone())
            .into_iter()
            .filter(|p| p.is_file())
            .filter_map(|p| {
                Some((
                    p.file_name()?.to_str()?.to_owned(),
                    std::fs::canonicalize(&p).ok()?,
                ))
            })
            .collect();
        Ok(Self {
            version: version.into(),
            programs,
            images: list(folder.join("images")),
        })
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    pub(crate) fn programs(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.programs
            .iter()
            .map(|(name, path)| (name.as_str(), path.as_path()))
    }

    pub(crate) fn images_for(&self, _host: HostId) -> impl Iterator<Item = &Path> {
        self.images.iter().map(PathBuf::as_path)
    }
}
