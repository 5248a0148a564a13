//! Whether a file is an image archive, before a node is bothered with it.

use std::{fs::File, path::Path};

use crate::Error;

/// Refuses what cannot be an image archive, and says why.
pub(crate) fn check(path: &Path) -> Result<(), Error> {
    let file = File::open(path).map_err(|error| {
        Error::Invalid(format!(
            "cannot read image {}: {error}; name an existing file",
            path.display()
        ))
    })?;
    let mut archive = tar::Archive::new(file);
    let mut names = archive
        .entries()
        .into_iter()
        .flatten()
        .map_while(Result::ok)
        .filter_map(|entry| {
            entry
                .path()
                .ok()
                .map(|path| path.to_string_lossy().trim_start_matches("./").to_owned())
        });
    if names.any(|name| name == "manifest.json" || name == "index.json") {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "{} is not an image: it has to be a tar file with a manifest.json (docker archive) or an index.json (OCI layout), not compressed",
        path.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_image_gets_a_sentence() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "hello").unwrap();
        let error = check(file.path()).unwrap_err();
        assert!(error.to_string().contains("is not an image"), "{error}");
        assert_eq!(error.exit_code(), 2);
        let error = check(Path::new("/nonexistent.tar"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("name an existing file"), "{error}");
    }

    #[test]
    fn a_docker_archive_is_taken() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut builder = tar::Builder::new(file.reopen().unwrap());
        let mut header = tar::Header::new_gnu();
        header.set_size(2);
        header.set_cksum();
        builder
            .append_data(&mut header, "manifest.json", &b"[]"[..])
            .unwrap();
        builder.finish().unwrap();
        check(file.path()).unwrap();
    }
}
