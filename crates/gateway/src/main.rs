//! `steward-gateway`: the SNI passthrough front door.

use std::process::ExitCode;

use clap::Parser;
use steward_gateway::{cli::Options, run};
use steward_wire::keeper::hold;

fn main() -> ExitCode {
    if let Some(code) = hold::asked() {
        return code;
    }
    run::run(&Options::parse())
}
