//! What the results were measured on, as a reader needs it to judge them.

use std::fs;

/// The machine and the moment.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// When the run began, UTC.
    pub(crate) date: String,
    /// Model and number of processors.
    pub(crate) processor: String,
    /// Memory in GiB.
    pub(crate) memory: String,
    /// Kernel release.
    pub(crate) kernel: String,
    /// Load average of the last minute when the run began: what else was going on.
    pub(crate) load: String,
}

impl Machine {
    /// As it is now.
    pub(crate) fn read() -> Self {
        let processors = text("/proc/cpuinfo");
        let count = processors
            .lines()
            .filter(|line| line.starts_with("processor"))
            .count();
        let model = field(&processors, "model name").unwrap_or("unknown");
        let kib: f64 = field(&text("/proc/meminfo"), "MemTotal")
            .and_then(|value| value.split_whitespace().next()?.parse().ok())
            .unwrap_or_default();
        Self {
            date: jiff::Timestamp::now()
                .strftime("%Y-%m-%d %H:%M UTC")
                .to_string(),
            processor: format!("{count} × {model}"),
            memory: format!("{:.0} GiB", kib / 1024.0 / 1024.0),
            kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
            load: text("/proc/loadavg")
                .split_whitespace()
                .next()
                .unwrap_or("?")
                .to_owned(),
        }
    }
}

fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, value) = text
        .lines()
        .find(|line| line.starts_with(name))?
        .split_once(':')?;
    Some(value.trim())
}
