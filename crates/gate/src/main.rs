//! The program: flags in, signals, exit code out.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use mimalloc::MiMalloc;
use steward_gate::{Args, Running};
use steward_wire::{logging, signals::Stop};

/// musl's allocator takes one lock for all threads.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// What the shell knows as "used wrongly": flags or files that can't be used.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let args = Args::parse();
    logging::init(args.log_format);
    match serve(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("steward-gate: {error:#}");
            ExitCode::from(BAD_INPUT)
        }
    }
}

fn serve(args: &Args) -> anyhow::Result<()> {
    let mut stop = Stop::new().context("can't catch signals")?;
    let gate = Running::start(args)?;
    let signal = stop.wait();
    gate.stop(signal);
    Ok(())
}
