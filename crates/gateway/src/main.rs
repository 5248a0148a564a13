//! `steward-gateway`: the SNI passthrough front door.

use std::process::ExitCode;

use clap::Parser;
use steward_gateway::{cli::Options, run};

fn main() -> ExitCode {
    run::run(&Options::parse())
}
