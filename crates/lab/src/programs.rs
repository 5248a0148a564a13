//! The lab's own program, and who to ask for the others.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Error,
    parts::{self, Part, Release},
    progress::Progress,
    supplies,
};

/// The name of the program that is every host's first process.
const NAME: &str = "steward-lab";

/// The two programs of the light fixture: etcd, kube-apiserver, which is of the release that
/// `STEWARD_LAB_KUBERNETES` names, if it does.
pub(crate) async fn for_fixture(
    bin_dir: Option<&Path>,
) -> Result<(PathBuf, PathBuf), parts::Error> {
    let options = supplies::options(bin_dir)?;
    let find = move || {
        let kubernetes = match env::var("STEWARD_LAB_KUBERNETES") {
            Ok(version) => Part::Kubernetes(version.parse()?),
            Err(_) => Part::Kubernetes(Release::default()),
        };
        let progress = Progress::stderr();
        let etcd = parts::ensure(Part::Etcd, &options, &progress)?;
        let kubernetes = parts::ensure(kubernetes, &options, &progress)?;
        Ok((
            etcd.path("etcd")?.to_owned(),
            kubernetes.path("kube-apiserver")?.to_owned(),
        ))
    };
    match tokio::task::spawn_blocking(find).await {
        Ok(found) => found,
        Err(stopped) => std::panic::resume_unwind(stopped.into_panic()),
    }
}

/// The program `steward-lab` itself.
///
/// A test binary is not it: then it is the one beside the test binary, which is
/// built if need be, as cargo does not build other crates' programs by itself.
pub(crate) fn own_program() -> Result<PathBuf, Error> {
    if let Some(path) = env::var_os("STEWARD_LAB_PROGRAM") {
        return Ok(path.into());
    }
    let own = env::current_exe().map_err(Error::files("find", "this program"))?;
    if own.file_name().is_some_and(|name| name == NAME) {
        return Ok(own);
    }
    if let Some(cargo) = env::var_os("CARGO") {
        // When it is up to date this is quick; when it fails, cargo says why.
        let _ = Command::new(cargo)
            .args(["build", "--quiet", "--package", NAME, "--bin", NAME])
            .status();
    }
    let mut beside = own
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(NAME));
    beside.find(|path| path.is_file()).ok_or_else(|| {
        Error::Invalid(format!(
            "the program {NAME} is not beside {}: build it with `cargo build -p {NAME}`",
            own.display()
        ))
    })
}
