//! `steward-gateway`: the SNI passthrough front door.

use std::process::ExitCode;

use clap::Parser;
use steward_gateway::{cli::Options, run};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    run::run(&Options::parse())
}
