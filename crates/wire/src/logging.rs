//! Where the data plane's log lines go: stderr, as text or JSON.

use std::{io::IsTerminal, str::FromStr};

use tracing::level_filters::LevelFilter;

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Sends log lines to stderr from now on. A second call changes nothing.
pub fn init(format: Format) {
    let builder = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::INFO)
        .with_target(false)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let set = match format {
        Format::Text => builder.try_init(),
        Format::Json => builder.json().flatten_event(true).try_init(),
    };
    // Tests start several programs in one process; the first one's choice stays.
    let _ = set;
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            other => Err(format!("`{other}` is not a log format; use text or json")),
        }
    }
}
