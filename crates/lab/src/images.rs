//! Container images without a registry, a daemon or a Dockerfile.
//!
//! An image is a handful of files, a few settings and one or more names; it is
//! written as a docker archive that `ctr images import` takes. The bytes depend on
//! nothing but the inputs: entries are sorted, times are zero, owners are given. So
//! the same inputs give the same digest on every machine.
//!
//! Images of one archive may share layers, which a node then stores once: four
//! Kubernetes programs in one file do not cost four times its size. Nothing here
//! talks to containerd.

mod archive;
pub mod catalogue;
mod error;
mod inspect;
mod layer;
mod libraries;
mod ours;
#[cfg(test)]
mod tests;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

pub use archive::{Archive, Named, cached, write};
pub use error::Error;
pub use inspect::inspect;
pub use layer::Layer;
pub use ours::{OURS, name_of, ours, pack};
use serde_json::{Value, json};

/// Where programs look for others when the pod does not say.
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// An image, ready to be written.
#[derive(Debug, Clone)]
pub struct Image {
    names: Vec<String>,
    layers: Vec<Arc<Layer>>,
    config: Value,
}

/// An image being put together.
#[derive(Debug)]
pub struct Builder {
    names: Vec<String>,
    shared: Vec<Arc<Layer>>,
    own: Layer,
    entrypoint: Vec<String>,
    command: Vec<String>,
    environment: Vec<String>,
    user: String,
}

impl Image {
    /// Starts an image with its first name, as in `registry.k8s.io/pause:3.10.2`.
    pub fn builder(name: impl Into<String>) -> Builder {
        Builder {
            names: vec![name.into()],
            shared: Vec::new(),
            own: Layer::default(),
            entrypoint: Vec::new(),
            command: Vec::new(),
            environment: vec![PATH.to_owned()],
            user: String::new(),
        }
    }

    /// The names the image will be known by.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Writes the image alone into an archive.
    pub fn write(&self, path: &Path) -> Result<Archive, Error> {
        write(std::slice::from_ref(self), path)
    }

    /// The image's description, given what its layers turned out to be.
    fn describe(&self, layers: &[String]) -> Value {
        let mut config = self.config.clone();
        config["rootfs"] = json!({ "type": "layers", "diff_ids": layers });
        config
    }
}

impl Builder {
    /// Another name for the same image.
    #[must_use]
    pub fn tag(mut self, name: impl Into<String>) -> Self {
        self.names.push(name.into());
        self
    }

    /// A layer that other images of the archive have too; it goes beneath.
    #[must_use]
    pub fn layer(mut self, layer: &Arc<Layer>) -> Self {
        self.shared.push(Arc::clone(layer));
        self
    }

    /// A file of this machine, with the given mode.
    #[must_use]
    pub fn file(mut self, from: impl Into<PathBuf>, at: &str, mode: u32) -> Self {
        self.own = self.own.file(from, at, mode);
        self
    }

    /// A program of this machine, with the libraries it is linked to.
    pub fn program(mut self, from: &Path, at: &str) -> Result<Self, Error> {
        self.own = self.own.program(from, at)?;
        Ok(self)
    }

    /// A file with this text.
    #[must_use]
    pub fn text(mut self, text: impl Into<Vec<u8>>, at: &str, mode: u32) -> Self {
        self.own = self.own.text(text, at, mode);
        self
    }

    /// An empty folder.
    #[must_use]
    pub fn folder(mut self, at: &str, mode: u32) -> Self {
        self.own = self.own.folder(at, mode);
        self
    }

    /// A symbolic link.
    #[must_use]
    pub fn link(mut self, at: &str, to: &str) -> Self {
        self.own = self.own.link(at, to);
        self
    }

    /// Who the image's files belong to; root unless said.
    #[must_use]
    pub fn owner(mut self, uid: u64, gid: u64) -> Self {
        self.own = self.own.owner(uid, gid);
        self
    }

    /// The program to run.
    #[must_use]
    pub fn entrypoint<'a>(mut self, words: impl IntoIterator<Item = &'a str>) -> Self {
        self.entrypoint = words.into_iter().map(str::to_owned).collect();
        self
    }

    /// Its arguments unless the pod says otherwise.
    #[must_use]
    pub fn command<'a>(mut self, words: impl IntoIterator<Item = &'a str>) -> Self {
        self.command = words.into_iter().map(str::to_owned).collect();
        self
    }

    /// A variable of its environment.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push(format!("{name}={value}"));
        self
    }

    /// The user, as `uid` or `uid:gid`; root unless said.
    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        user.clone_into(&mut self.user);
        self
    }

    /// The image, if its names can be used.
    pub fn build(self) -> Result<Image, Error> {
        for name in &self.names {
            program_of(name)?;
        }
        let mut layers = self.shared;
        if !self.own.is_empty() {
            layers.push(Arc::new(self.own));
        }
        let config = json!({
            "architecture": architecture(),
            "os": "linux",
            "created": "1970-01-01T00:00:00Z",
            "config": {
                "Entrypoint": self.entrypoint,
                "Cmd": self.command,
                "Env": self.environment,
                "User": self.user,
                "WorkingDir": "/",
            },
        });
        Ok(Image {
            names: self.names,
            layers,
            config,
        })
    }
}

/// This machine's architecture in the words of image registries.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The last part of an image's name without its tag, once the name is sound.
fn program_of(name: &str) -> Result<&str, Error> {
    let wrong = |why| Error::Name {
        given: name.to_owned(),
        why,
    };
    let (path, tag) = name
        .rsplit_once(':')
        .filter(|(_, tag)| !tag.contains('/'))
        .ok_or_else(|| wrong("it has no tag"))?;
    let tag_is_sound = !tag.is_empty()
        && tag
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if !tag_is_sound {
        return Err(wrong("its tag has characters that a tag cannot have"));
    }
    let path_is_sound = path
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "./-_:".contains(c));
    let mut segments = path.split('/');
    if !path_is_sound || segments.any(str::is_empty) {
        return Err(wrong("a name is lower-case words with / between them"));
    }
    let Some((registry, _)) = path.split_once('/') else {
        return Err(wrong("it does not begin with a registry"));
    };
    if !registry.contains(['.', ':']) && registry != "localhost" {
        return Err(wrong("it does not begin with a registry"));
    }
    path.rsplit('/').next().ok_or_else(|| wrong("it is empty"))
}
