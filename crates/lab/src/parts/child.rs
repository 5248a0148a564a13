//! Runs the tools that make parts and passes on what they say, line by line.
//!
//! A tool ends with us: where `setpriv` exists, the kernel is asked to end it when
//! the thread that waits for it is gone, so that a killed lab leaves no compiler
//! behind. All output also goes to a log file.

use std::{
    fs::File,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use super::{Error, error::io};

/// How often the caller is called although nothing was said, to show time passing.
const TICK: Duration = Duration::from_millis(500);

/// What a running tool did.
pub(crate) enum Event<'a> {
    /// It said a line on standard error.
    Said(&'a str),
    /// Nothing, for a while.
    Tick,
}

/// A command for a tool that must not outlive us.
pub(crate) fn command(program: &Path) -> Command {
    let Some(setpriv) = setpriv() else {
        return Command::new(program);
    };
    let mut command = Command::new(setpriv);
    command.args(["--pdeathsig", "TERM", "--"]).arg(program);
    command
}

fn setpriv() -> Option<PathBuf> {
    ["/usr/bin/setpriv", "/bin/setpriv"]
        .into_iter()
        .map(PathBuf::from)
        .find(|path| path.is_file())
}

/// Runs a command to its end. Standard output goes where the command says,
/// standard error to the log and to `on`.
pub(crate) fn run(
    mut command: Command,
    log: &Path,
    mut on: impl FnMut(Event<'_>),
) -> Result<ExitStatus, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |source| Error::Run { program, source };
    let mut log_file = File::options()
        .create(true)
        .append(true)
        .open(log)
        .map_err(io("open", log))?;
    let mut child = match command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(source) => return Err(failed(source)),
    };
    let (send, lines) = mpsc::channel();
    if let Some(stderr) = child.stderr.take() {
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
    }
    loop {
        match lines.recv_timeout(TICK) {
            Ok(line) => {
                // A log that cannot be written is no reason to stop a build.
                let _lost = writeln!(log_file, "{line}");
                on(Event::Said(&line));
            }
            Err(RecvTimeoutError::Timeout) => on(Event::Tick),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    child.wait().map_err(failed)
}

/// Folders of a search path that hold a program of this name.
pub(crate) fn on_path<'a>(
    search_path: &'a std::ffi::OsStr,
    program: &'a str,
) -> impl Iterator<Item = PathBuf> + 'a {
    std::env::split_paths(search_path)
        .map(move |folder| folder.join(program))
        .filter(|path| path.is_file())
}
