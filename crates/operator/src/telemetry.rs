//! Logging: set up once, text or JSON, filtered.
//!
//! Refuses: deciding what is worth a line. Secrets never reach it: objects are logged by name.

use std::io::IsTerminal;

use tracing_subscriber::{EnvFilter, fmt};

use crate::config::{Config, LogFormat};

/// Installs the log subscriber of this process.
///
/// # Errors
/// A sentence about `--log` when the filter can't be read.
pub fn init(config: &Config) -> Result<(), String> {
    let filter = EnvFilter::try_new(&config.log).map_err(|error| {
        format!(
            "--log: {error}; write a level such as `info` or a filter such as `info,kube=debug`"
        )
    })?;
    let builder = fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    let installed = match config.log_format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    installed.map_err(|error| format!("logging is already set up: {error}"))
}
