//! Writes images into one docker archive, and keeps archives by what is in them.
//!
//! The archive is written in one pass to a file of another name and renamed when
//! it is whole, so that an interrupted run leaves no archive that looks like one.

use std::{
    fs::{self, File, Permissions},
    io::{BufWriter, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde_json::json;
use sha2::{Digest, Sha256};

use super::{Error, Image, Layer, error::io, inspect};

/// Raised when the same inputs would give other bytes than before.
const FORMAT: &str = "1";

/// An archive that nobody wrote again for this long belongs to inputs of the past.
/// Long enough for several checkouts to be worked on side by side.
const KEPT_FOR: Duration = Duration::from_hours(24);

/// A file with images in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// Where it is.
    pub path: PathBuf,
    /// What is in it.
    pub images: Vec<Named>,
}

/// One image of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The names it is known by.
    pub names: Vec<String>,
    /// The digest of its configuration, which stands for all of its content.
    pub digest: String,
}

/// Writes images into one archive, layers they share once.
pub fn write(images: &[Image], path: &Path) -> Result<Archive, Error> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let new = tempfile::Builder::new()
        .prefix(".image-")
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(folder)
        .map_err(io("create a file in", folder))?;
    let named = Writer::new(new.as_file(), path).write(images)?;
    new.persist(path)
        .map_err(|error| io("write", path)(error.error))?;
    Ok(Archive {
        path: path.to_path_buf(),
        images: named,
    })
}

/// The archive of these images under `folder`, written unless it is there already.
pub fn cached(images: &[Image], name: &str, folder: &Path) -> Result<Archive, Error> {
    let path = folder.join(format!("{name}-{}.tar", identity(images)?));
    if path.is_file() {
        return inspect(&path);
    }
    fs::create_dir_all(folder).map_err(io("create", folder))?;
    let archive = write(images, &path)?;
    forget_old(name, folder, &path);
    Ok(archive)
}

/// Removes archives of the same name that were written long before.
fn forget_old(name: &str, folder: &Path, except: &Path) {
    let old = |path: &Path| {
        let changed = fs::metadata(path).and_then(|meta| meta.modified());
        changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > KEPT_FOR))
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, file) = (entry.path(), entry.file_name());
        let file = file.to_string_lossy();
        let hash = file
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('-')?.strip_suffix(".tar"));
        let same = hash.is_some_and(|hash| !hash.contains('-'));
        if same && path != except && old(&path) {
            // Somebody else may have removed it, or may not let us: no harm.
            let _left = fs::remove_file(path);
        }
    }
}

/// Twelve hex digits that change with anything that goes into the images.
fn identity(images: &[Image]) -> Result<String, Error> {
    let mut digest = Sha256::new();
    digest.update(FORMAT);
    for image in images {
        digest.update(format!("image {:?} {}\n", image.names, image.config));
        for layer in &image.layers {
            layer.identify(&mut digest)?;
        }
    }
    Ok(hex::encode(&digest.finalize()[..6]))
}

struct Writer<'a> {
    tar: tar::Builder<BufWriter<&'a File>>,
    target: &'a Path,
    /// The layers written so far, and the digests they turned out to have.
    written: Vec<(Arc<Layer>, String)>,
}

impl<'a> Writer<'a> {
    fn new(file: &'a File, target: &'a Path) -> Self {
        Self {
            tar: tar::Builder::new(BufWriter::with_capacity(1 << 20, file)),
            target,
            written: Vec::new(),
        }
    }

    fn write(mut self, images: &[Image]) -> Result<Vec<Named>, Error> {
        let mut manifest = Vec::new();
        let mut named = Vec::new();
        for image in images {
            let layers = image
                .layers
                .iter()
                .map(|layer| self.layer(layer))
                .collect::<Result<Vec<_>, _>>()?;
            let digests: Vec<_> = layers.iter().map(|(_, digest)| digest.clone()).collect();
            let files: Vec<_> = layers.into_iter().map(|(file, _)| file).collect();
            let config = image.describe(&digests).to_string();
            let digest = hex::encode(Sha256::digest(&config));
            let file = format!("{digest}.json");
            self.add(&file, config.as_bytes())?;
            manifest.push(json!({ "Config": file, "RepoTags": image.names, "Layers": files }));
            named.push(Named {
                names: image.names.clone(),
                digest: format!("sha256:{digest}"),
            });
        }
        self.add("manifest.json", json!(manifest).to_string().as_bytes())?;
        let target = self.target;
        self.tar
            .into_inner()
            .and_then(|mut out| out.flush())
            .map_err(io("write", target))?;
        Ok(named)
    }

    /// Writes a layer unless it is in the archive; returns its file and digest.
    fn layer(&mut self, layer: &Arc<Layer>) -> Result<(String, String), Error> {
        let file = |index| format!("layers/{index}.tar");
        let known = self.written.iter().position(|(other, _)| other == layer);
        if let Some(index) = known {
            return Ok((file(index), self.written[index].1.clone()));
        }
        let name = file(self.written.len());
        let length = layer.length()?;
        let header = self.header(&name, length)?;
        let failed = || io("write", self.target);
        let out = self.tar.get_mut();
        out.write_all(header.as_bytes()).map_err(failed())?;
        let mut hashed = Hashed {
            out,
            digest: Sha256::new(),
            bytes: 0,
        };
        layer.write(&mut hashed, self.target)?;
        // Layers are whole blocks long, so nothing needs padding.
        debug_assert_eq!(hashed.bytes, length);
        let digest = format!("sha256:{}", hex::encode(hashed.digest.finalize()));
        self.written.push((Arc::clone(layer), digest.clone()));
        Ok((name, digest))
    }

    fn add(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let header = self.header(name, bytes.len() as u64)?;
        self.tar
            .append(&header, bytes)
            .map_err(io("write", self.target))
    }

    fn header(&self, name: &str, size: u64) -> Result<tar::Header, Error> {
        let mut header = tar::Header::new_ustar();
        header.set_path(name).map_err(io("write", self.target))?;
        header.set_size(size);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        header.set_entry_type(tar::EntryType::Regular);
        header.set_cksum();
        Ok(header)
    }
}

/// Hashes and counts what passes through.
struct Hashed<W> {
    out: W,
    digest: Sha256,
    bytes: u64,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(buffer)?;
        self.digest.update(&buffer[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}
