//! The images of our own programs.
//!
//! One static program per image, at `/` under its own name, run by a user that is
//! nobody in particular; no shell, no libraries, nothing to patch.

use std::{fs, path::Path};

use super::{Archive, Error, Image, error::io, program_of};

/// Our programs that run in pods.
pub const OURS: [&str; 4] = [
    "steward-operator",
    "steward-gateway",
    "steward-gate",
    "steward-tcp-proxy",
];

/// The user that our programs run as unless a pod says otherwise.
const RUN_AS: &str = "65532:65532";

/// The name of the image of one of our programs, at this version.
pub fn name_of(program: &str) -> String {
    format!(
        "ghcr.io/butlerdotdev/{program}:v{}",
        env!("CARGO_PKG_VERSION")
    )
}

/// The image of one of our own programs: the static program at `/steward-X`,
/// called by the last part of the image's name.
pub fn ours(program: &Path, name: &str) -> Result<Image, Error> {
    let path = format!("/{}", program_of(name)?);
    Image::builder(name)
        .program(program, &path)?
        .folder("/tmp", 0o1777)
        .entrypoint([path.as_str()])
        .user(RUN_AS)
        .build()
}

/// Packs all our programs found in one folder into `output/PROGRAM.tar`, one each.
pub fn pack(programs: &Path, output: &Path) -> Result<Vec<Archive>, Error> {
    fs::create_dir_all(output).map_err(io("create", output))?;
    OURS.iter()
        .map(|program| {
            let image = ours(&programs.join(program), &name_of(program))?;
            image.write(&output.join(format!("{program}.tar")))
        })
        .collect()
}
