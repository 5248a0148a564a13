//! Us and the rivals under one load, in one run.
//!
//! Owns nothing but the order of things: arguments, then the namespace, then
//! the run. `docs/performance.md` says how to read what it prints.

mod backend;
mod cli;
mod goals;
mod load;
mod machine;
mod measures;
mod netns;
#[cfg(feature = "operator")]
mod operator;
mod pki;
mod process;
mod protocol;
mod report;
mod results;
mod rotation;
mod run;
mod stats;
mod targets;
mod tools;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let arguments = cli::Arguments::parse();
    match arguments.run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("steward-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
