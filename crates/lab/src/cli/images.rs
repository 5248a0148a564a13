//! `steward-lab images`: our own programs as image archives.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;

use crate::images;

/// Packs our programs into archives that `load`, `ctr images import` and skopeo read.
#[derive(Debug, Args)]
pub(super) struct Images {
    /// The folder with the programs.
    #[arg(long, value_name = "FOLDER")]
    programs: PathBuf,
    /// Where to write the archives.
    #[arg(long, value_name = "FOLDER", default_value = "target/images")]
    output: PathBuf,
}

pub(super) fn run(args: &Images) -> ExitCode {
    match images::pack(&args.programs, &args.output) {
        Ok(archives) => {
            for archive in archives {
                println!("{}", archive.path.display());
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("steward-lab: {error}");
            ExitCode::FAILURE
        }
    }
}
