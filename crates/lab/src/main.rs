//! The program `steward-lab`.

use std::process::ExitCode;

fn main() -> ExitCode {
    steward_lab::cli::main()
}
