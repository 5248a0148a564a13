//! Says what is going on while somebody waits: what, how far, how long.
//!
//! On a terminal a running task keeps rewriting one line; anywhere else it adds a
//! line now and then, so that a log stays readable. Nothing here decides what is
//! worth saying, and a line that cannot be written is dropped: progress never
//! fails the work it is about.

use std::{
    fmt,
    io::{self, IsTerminal, Write},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// How often a task may add a line where lines cannot be rewritten.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// How often a task may rewrite its line on a terminal.
const REWRITE_EVERY: Duration = Duration::from_millis(200);

/// Where progress goes. Clones share one place.
#[derive(Clone)]
pub struct Progress {
    sink: Option<Arc<Mutex<Sink>>>,
}

struct Sink {
    out: Box<dyn Write + Send>,
    rewrites: bool,
    /// Characters of the line that stands unfinished on the terminal.
    open: usize,
}

/// One thing that takes a while.
pub struct Task {
    progress: Progress,
    what: String,
    started: Instant,
    said: Option<Instant>,
}

impl Progress {
    /// Progress on standard error.
    pub fn stderr() -> Self {
        let rewrites = io::stderr().is_terminal();
        Self::to(Box::new(io::stderr()), rewrites)
    }

    /// No progress at all.
    pub const fn silent() -> Self {
        Self { sink: None }
    }

    /// Progress to a writer; `rewrites` says that it is a terminal.
    pub fn to(out: Box<dyn Write + Send>, rewrites: bool) -> Self {
        let sink = Sink {
            out,
            rewrites,
            open: 0,
        };
        Self {
            sink: Some(Arc::new(Mutex::new(sink))),
        }
    }

    /// Says one thing that is over or needs no time.
    pub fn note(&self, text: impl fmt::Display) {
        self.with(|sink| sink.line(&text.to_string()));
    }

    /// Starts a task; its first line appears at once.
    pub fn task(&self, what: impl Into<String>) -> Task {
        let mut task = Task {
            progress: self.clone(),
            what: what.into(),
            started: Instant::now(),
            said: None,
        };
        task.at("started");
        task
    }

    fn with(&self, say: impl FnOnce(&mut Sink) -> io::Result<()>) {
        if let Some(sink) = &self.sink {
            let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
            // A reader that went away must not stop a build.
            let _gone = say(&mut sink);
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").finish_non_exhaustive()
    }
}

impl Task {
    /// Says how far the task is, unless it was said a moment ago.
    pub fn at(&mut self, how_far: impl fmt::Display) {
        let now = Instant::now();
        let elapsed = now.duration_since(self.started);
        let (what, said) = (&self.what, &mut self.said);
        self.progress.with(|sink| {
            let every = if sink.rewrites {
                REWRITE_EVERY
            } else {
                LINE_EVERY
            };
            if said.is_some_and(|at| now.duration_since(at) < every) {
                return Ok(());
            }
            *said = Some(now);
            let text = format!("{what}: {how_far}, {}", spell(elapsed));
            if sink.rewrites {
                sink.rewrite(&text)
            } else {
                sink.line(&text)
            }
        });
    }

    /// Ends the task with a line that stays.
    pub fn done(self, result: impl fmt::Display) -> Duration {
        let elapsed = self.started.elapsed();
        let text = format!("{}: {result}, {}", self.what, spell(elapsed));
        self.progress.with(|sink| sink.line(&text));
        elapsed
    }

    /// How long the task has been running.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

impl Sink {
    fn line(&mut self, text: &str) -> io::Result<()> {
        let blank = " ".repeat(self.open.saturating_sub(text.chars().count()));
        let start = if self.open > 0 { "\r" } else { "" };
        self.open = 0;
        writeln!(self.out, "{start}{text}{blank}")?;
        self.out.flush()
    }

    fn rewrite(&mut self, text: &str) -> io::Result<()> {
        let blank = " ".repeat(self.open.saturating_sub(text.chars().count()));
        self.open = text.chars().count();
        write!(self.out, "\r{text}{blank}")?;
        self.out.flush()
    }
}

/// A duration as people say it: `0.4 s`, `42 s`, `4 min 05 s`.
pub fn spell(duration: Duration) -> String {
    match duration.as_secs() {
        0..=9 => format!("{:.1} s", duration.as_secs_f64()),
        seconds @ 10..=59 => format!("{seconds} s"),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Page {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    #[test]
    fn a_log_gets_a_first_and_a_last_line_and_not_one_per_step() {
        let page = Page::default();
        let mut task = Progress::to(Box::new(page.clone()), false).task("etcd 3.6.16");
        for package in 0..1000 {
            task.at(format!("{package} of 1000 packages"));
        }
        task.done("ready");
        let lines: Vec<_> = page.text().lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("etcd 3.6.16: started, "));
        assert!(lines[1].starts_with("etcd 3.6.16: ready, "));
    }

    #[test]
    fn a_terminal_line_is_wiped_before_the_next_one() {
        let page = Page::default();
        let progress = Progress::to(Box::new(page.clone()), true);
        let task = progress.task("a long name for a task");
        progress.note("short");
        drop(task);
        let text = page.text();
        let last = text.rsplit('\r').next().unwrap();
        assert_eq!(last.trim_end(), "short");
        assert!(last.len() > "short\n".len(), "{text:?}");
    }

    #[test]
    fn durations_are_spelt_as_people_say_them() {
        assert_eq!(spell(Duration::from_millis(420)), "0.4 s");
        assert_eq!(spell(Duration::from_secs(42)), "42 s");
        assert_eq!(spell(Duration::from_secs(245)), "4 min 05 s");
    }
}
