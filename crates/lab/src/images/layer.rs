//! A layer: files, folders and links, sorted, with owners and modes but no times.
//!
//! A layer only names the files of this machine that go into it; they are read
//! when an archive is written. Its length as a tar file is known before that,
//! which is what lets an archive be written in one pass.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{Read, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use super::{Error, error::io, libraries};

/// Size of a tar header, and what contents are padded to.
const BLOCK: u64 = 512;

/// The files of a layer by their path inside the image, without the first `/`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layer {
    entries: BTreeMap<String, Entry>,
    uid: u64,
    gid: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Folder { mode: u32 },
    File { from: PathBuf, mode: u32 },
    Text { bytes: Vec<u8>, mode: u32 },
    Link { to: String },
}

impl Layer {
    /// A file of this machine, with the given mode.
    #[must_use]
    pub fn file(self, from: impl Into<PathBuf>, at: &str, mode: u32) -> Self {
        let from = from.into();
        self.entry(at, Entry::File { from, mode })
    }

    /// A program of this machine, with the libraries it is linked to.
    pub fn program(mut self, from: &Path, at: &str) -> Result<Self, Error> {
        for library in libraries::of(from)? {
            let place = library.to_string_lossy().into_owned();
            self = self.file(library, &place, 0o755);
        }
        Ok(self.file(from, at, 0o755))
    }

    /// A file with this text.
    #[must_use]
    pub fn text(self, text: impl Into<Vec<u8>>, at: &str, mode: u32) -> Self {
        let bytes = text.into();
        self.entry(at, Entry::Text { bytes, mode })
    }

    /// An empty folder.
    #[must_use]
    pub fn folder(self, at: &str, mode: u32) -> Self {
        self.entry(at, Entry::Folder { mode })
    }

    /// A symbolic link.
    #[must_use]
    pub fn link(self, at: &str, to: &str) -> Self {
        let to = to.to_owned();
        self.entry(at, Entry::Link { to })
    }

    /// All files of a folder of this machine; scripts stay executable.
    pub fn tree(mut self, from: &Path, at: &str) -> Result<Self, Error> {
        for entry in fs::read_dir(from).map_err(io("read", from))? {
            let path = entry.map_err(io("read", from))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let place = format!("{}/{name}", at.trim_end_matches('/'));
            if path.is_dir() {
                self = self.tree(&path, &place)?;
            } else {
                let script = path.extension().is_some_and(|end| end == "sh");
                self = self.file(&path, &place, if script { 0o755 } else { 0o644 });
            }
        }
        Ok(self)
    }

    /// Who the files belong to; root unless said.
    #[must_use]
    pub const fn owner(mut self, uid: u64, gid: u64) -> Self {
        self.uid = uid;
        self.gid = gid;
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an entry and the folders it is in.
    fn entry(mut self, at: &str, entry: Entry) -> Self {
        let at = at.trim_matches('/');
        for (end, _) in at.match_indices('/') {
            self.entries
                .entry(at[..end].to_owned())
                .or_insert(Entry::Folder { mode: 0o755 });
        }
        self.entries.insert(at.to_owned(), entry);
        self
    }

    /// Length of the layer as a tar file.
    pub(crate) fn length(&self) -> Result<u64, Error> {
        // A tar file ends with two empty blocks.
        let mut length = 2 * BLOCK;
        for entry in self.entries.values() {
            length += BLOCK + entry.size()?.next_multiple_of(BLOCK);
        }
        Ok(length)
    }

    /// Writes the layer as a tar file.
    pub(crate) fn write(&self, out: impl Write, target: &Path) -> Result<(), Error> {
        let mut tar = tar::Builder::new(out);
        for (path, entry) in &self.entries {
            let header = self.header(path, entry)?;
            let failed = io("write", target);
            match entry {
                Entry::Folder { .. } | Entry::Link { .. } => {
                    tar.append(&header, std::io::empty()).map_err(failed)?;
                }
                Entry::Text { bytes, .. } => {
                    tar.append(&header, bytes.as_slice()).map_err(failed)?;
                }
                Entry::File { from, .. } => {
                    let size = entry.size()?;
                    let file = File::open(from).map_err(io("read", from))?;
                    let mut counted = Counted::new(file.take(size));
                    tar.append(&header, &mut counted).map_err(failed)?;
                    if counted.bytes != size {
                        return Err(Error::Changed { path: from.clone() });
                    }
                }
            }
        }
        tar.into_inner().map_err(io("write", target))?;
        Ok(())
    }

    fn header(&self, path: &str, entry: &Entry) -> Result<tar::Header, Error> {
        let too_long = || Error::Path {
            path: format!("/{path}"),
        };
        let mut header = tar::Header::new_ustar();
        header.set_mtime(0);
        header.set_uid(self.uid);
        header.set_gid(self.gid);
        header.set_size(entry.size()?);
        let (kind, mode) = match entry {
            Entry::Folder { mode } => (tar::EntryType::Directory, *mode),
            Entry::File { mode, .. } | Entry::Text { mode, .. } => (tar::EntryType::Regular, *mode),
            Entry::Link { to } => {
                header.set_link_name_literal(to).map_err(|_| too_long())?;
                (tar::EntryType::Symlink, 0o777)
            }
        };
        header.set_entry_type(kind);
        header.set_mode(mode);
        let slash = if kind.is_dir() { "/" } else { "" };
        header
            .set_path(format!("{path}{slash}"))
            .map_err(|_| too_long())?;
        header.set_cksum();
        Ok(header)
    }

    /// Adds to a hash everything that could make the layer another one, without
    /// reading the files: it is their place, size and time of change that count.
    pub(crate) fn identify(&self, digest: &mut Sha256) -> Result<(), Error> {
        digest.update(format!("layer {} {}\n", self.uid, self.gid));
        for (path, entry) in &self.entries {
            match entry {
                Entry::Folder { mode } => digest.update(format!("{path} folder {mode}\n")),
                Entry::Link { to } => digest.update(format!("{path} link {to}\n")),
                Entry::Text { bytes, mode } => {
                    digest.update(format!("{path} text {mode} {}\n", bytes.len()));
                    digest.update(bytes);
                }
                Entry::File { from, mode } => {
                    let real = fs::canonicalize(from).map_err(io("read", from))?;
                    let meta = fs::metadata(&real).map_err(io("read", from))?;
                    let (size, second, nanos) = (meta.size(), meta.mtime(), meta.mtime_nsec());
                    let place = real.display();
                    digest.update(format!(
                        "{path} file {mode} {place} {size} {second}.{nanos}\n"
                    ));
                }
            }
        }
        Ok(())
    }
}

impl Entry {
    fn size(&self) -> Result<u64, Error> {
        match self {
            Self::Folder { .. } | Self::Link { .. } => Ok(0),
            Self::Text { bytes, .. } => Ok(bytes.len() as u64),
            Self::File { from, .. } => {
                let meta = fs::metadata(from).map_err(io("read", from))?;
                Ok(meta.len())
            }
        }
    }
}

/// Counts what is read.
struct Counted<R> {
    inner: R,
    bytes: u64,
}

impl<R> Counted<R> {
    const fn new(inner: R) -> Self {
        Self { inner, bytes: 0 }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.bytes += read as u64;
        Ok(read)
    }
}
