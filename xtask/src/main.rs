//! Development tasks: `cargo xtask generate` writes what is generated, `--check` says what is stale.

mod generate;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask generate [--check]

  generate          write the CRDs, the admission policies and the reference pages
  generate --check  write nothing; list what is stale and end with 1";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["generate"] => generate::write(),
        ["generate", "--check"] => generate::check(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
