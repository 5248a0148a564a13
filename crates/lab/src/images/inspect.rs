//! Tells whether a file is a container image, and which.
//!
//! Only headers and the small JSON files are read; layers are skipped over, so
//! that a large archive is judged in no time. What is promised is that the archive
//! is whole and names its images, not that its programs run.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Archive, Error, Named, error::io};

/// JSON files beyond this are not the description of an image.
const JSON_LIMIT: u64 = 4 << 20;

/// One entry of a docker archive's `manifest.json`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Manifest {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

/// What an archive holds: sizes of all files, texts of the small ones.
#[derive(Debug, Default)]
struct Content {
    sizes: BTreeMap<String, u64>,
    texts: BTreeMap<String, Vec<u8>>,
}

/// Reads which images an archive holds, or says why it holds none.
pub fn inspect(path: &Path) -> Result<Archive, Error> {
    let not = |why: String| Error::NotAnImage {
        path: path.to_path_buf(),
        why,
    };
    let mut file = File::open(path).map_err(io("read", path))?;
    if file.metadata().map_err(io("read", path))?.is_dir() {
        return Err(not("it is a folder".to_owned()));
    }
    refuse_compressed(&mut file).map_err(&not)?;
    let content = read(BufReader::new(file)).map_err(&not)?;
    let images = if let Some(text) = content.texts.get("manifest.json") {
        docker(&content, text).map_err(not)?
    } else if let Some(text) = content.texts.get("index.json") {
        oci(text).map_err(not)?
    } else {
        return Err(not("it has neither manifest.json nor index.json".to_owned()));
    };
    Ok(Archive {
        path: path.to_path_buf(),
        images,
    })
}

fn refuse_compressed(file: &mut File) -> Result<(), String> {
    let mut start = Vec::new();
    file.take(4)
        .read_to_end(&mut start)
        .and_then(|_| file.seek(SeekFrom::Start(0)))
        .map_err(|error| error.to_string())?;
    match start.as_slice() {
        [] => Err("it is empty".to_owned()),
        [0x1f, 0x8b, ..] => Err("it is compressed, unpack it with gunzip first".to_owned()),
        [0x28, 0xb5, 0x2f, 0xfd] => Err("it is compressed, unpack it with unzstd first".to_owned()),
        _ => Ok(()),
    }
}

fn read(file: BufReader<File>) -> Result<Content, String> {
    let whole = file.get_ref().metadata().map_err(|e| e.to_string())?.len();
    let mut archive = tar::Archive::new(file);
    let mut content = Content::default();
    let entries = archive.entries_with_seek().map_err(|e| e.to_string())?;
    for entry in entries {
        let mut entry =
            entry.map_err(|_| "it is not a tar file, or one that was cut off".to_owned())?;
        let name = entry.path_bytes();
        let name = String::from_utf8_lossy(&name)
            .trim_start_matches("./")
            .to_owned();
        let size = entry.size();
        if entry.raw_file_position().saturating_add(size) > whole {
            return Err("it was cut off".to_owned());
        }
        if size <= JSON_LIMIT {
            let mut text = Vec::new();
            entry.read_to_end(&mut text).map_err(|e| e.to_string())?;
            content.texts.insert(name.clone(), text);
        }
        content.sizes.insert(name, size);
    }
    Ok(content)
}

fn docker(content: &Content, text: &[u8]) -> Result<Vec<Named>, String> {
    let manifests: Vec<Manifest> = serde_json::from_slice(text)
        .map_err(|error| format!("its manifest.json cannot be read ({error})"))?;
    if manifests.is_empty() {
        return Err("its manifest.json names no image".to_owned());
    }
    manifests.iter().map(|one| image(content, one)).collect()
}

fn image(content: &Content, manifest: &Manifest) -> Result<Named, String> {
    if let Some(missing) = manifest
        .layers
        .iter()
        .find(|l| !content.sizes.contains_key(*l))
    {
        return Err(format!("the layer {missing} is not in it"));
    }
    let config = content
        .texts
        .get(&manifest.config)
        .ok_or_else(|| format!("the configuration {} is not in it", manifest.config))?;
    let described: Value = serde_json::from_slice(config).map_err(|error| {
        format!(
            "the configuration {} cannot be read ({error})",
            manifest.config
        )
    })?;
    let layers = described["rootfs"]["diff_ids"]
        .as_array()
        .map_or(0, Vec::len);
    if layers != manifest.layers.len() {
        return Err(format!(
            "its configuration speaks of {layers} layers and its manifest of {}",
            manifest.layers.len()
        ));
    }
    Ok(Named {
        names: manifest.repo_tags.clone().unwrap_or_default(),
        digest: format!("sha256:{}", hex::encode(Sha256::digest(config))),
    })
}

/// The images of an OCI archive.
fn oci(text: &[u8]) -> Result<Vec<Named>, String> {
    let index: Value = serde_json::from_slice(text)
        .map_err(|error| format!("its index.json cannot be read ({error})"))?;
    let named = |manifest: &Value| {
        let annotations = &manifest["annotations"];
        let name = annotations["io.containerd.image.name"]
            .as_str()
            .or_else(|| annotations["org.opencontainers.image.ref.name"].as_str());
        Some(Named {
            names: name.into_iter().map(str::to_owned).collect(),
            digest: manifest["digest"].as_str()?.to_owned(),
        })
    };
    let images: Vec<_> = index["manifests"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(named)
        .collect();
    if images.is_empty() {
        return Err("its index.json names no image".to_owned());
    }
    Ok(images)
}
