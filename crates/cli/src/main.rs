//! The `steward` command.

use std::process::ExitCode;

use clap::Parser;
use steward_cli::{args, commands, problem};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The only error is that a provider is installed already: then there is one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let cli = args::Cli::parse();
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
    let interrupted = async {
        let _ = tokio::signal::ctrl_c().await;
        Err(problem::Problem::Interrupted)
    };
    let outcome = runtime.block_on(async {
        tokio::select! {
            outcome = commands::run(cli) => outcome,
            outcome = interrupted => outcome,
        }
    });
    match outcome {
        Ok(code) => code,
        Err(problem) => {
            anstream::eprintln!("steward: {problem}");
            problem.exit_code()
        }
    }
}
