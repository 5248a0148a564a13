//! The `steward` command.

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use steward_cli::{args::Cli, commands};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The only error is that a provider is installed already: then there is one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let called = std::env::args().next().unwrap_or_default();
    // kubectl runs its plugins under their file's name; help should say what was typed.
    let name = if called.ends_with("kubectl-steward") {
        "kubectl steward"
    } else {
        "steward"
    };
    let matches = Cli::command().bin_name(name).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("steward: could not start: {error}");
            return ExitCode::from(2);
        }
    };
    let outcome = runtime.block_on(commands::run(cli));
    // A lookup that hangs in the system's resolver must not hold the answer back.
    runtime.shutdown_background();
    match outcome {
        Ok(code) => code,
        Err(problem) => {
            anstream::eprintln!("steward: {problem}");
            problem.exit_code()
        }
    }
}
