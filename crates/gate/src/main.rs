//! The program: flags in, signals, exit code out.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use mimalloc::MiMalloc;
use steward_gate::{Args, Running};
use steward_wire::{
    keeper::{self, Keeper, Role},
    logging,
    signals::Stop,
};

/// musl's allocator takes one lock for all threads.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// What the shell knows as "used wrongly": flags or files that can't be used.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let args = Args::parse();
    logging::init(args.log_format);
    let served = match keeper::split(args.restart_in_place, None) {
        Ok(Role::Serve(keeper)) => serve(&args, &keeper),
        Ok(Role::End(code)) => return code,
        Err(error) => Err(error).context("--restart-in-place"),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("steward-gate: {error:#}");
            ExitCode::from(BAD_INPUT)
        }
    }
}

fn serve(args: &Args, keeper: &Keeper) -> anyhow::Result<()> {
    let mut stop = Stop::new().context("can't catch signals")?;
    let gate = Running::start(args, keeper)?;
    let signal = stop.wait();
    gate.stop(signal);
    Ok(())
}
