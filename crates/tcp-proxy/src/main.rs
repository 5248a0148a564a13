//! The tenant node's end of the tunnel: one fixed address on every node, the API server behind it.

mod address;
mod args;
mod health;
mod metrics;
mod proxy;
mod run;
mod terminate;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use mimalloc::MiMalloc;
use steward_wire::keeper::{self, Role};

/// musl's allocator takes one lock for all threads.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// What the shell knows as "used wrongly": flags or files that can't be used.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    if let Some(code) = keeper::hold::asked() {
        return code;
    }
    let args = args::Args::parse();
    steward_wire::logging::init(args.log_format);
    let started = match keeper::split(args.restart_in_place, args.holder.as_deref()) {
        Ok(Role::Serve(keeper)) => run::start(&args, &keeper),
        Ok(Role::End(code)) => return code,
        Err(error) => Err(error).context("--restart-in-place"),
    };
    match started {
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
