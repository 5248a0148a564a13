//! The tenant node's end of the tunnel: one fixed address on every node, the API server behind it.

mod address;
mod args;
mod health;
mod metrics;
mod proxy;
mod run;
mod terminate;

use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;

/// musl's allocator takes one lock for all threads.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// What the shell knows as "used wrongly": flags or files that can't be used.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let args = args::Args::parse();
    steward_wire::logging::init(args.log_format);
    match run::start(&args) {
        Ok(running) => {
            running.until_stopped();
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("steward-tcp-proxy: {error:#}");
            ExitCode::from(BAD_INPUT)
        }
    }
}
