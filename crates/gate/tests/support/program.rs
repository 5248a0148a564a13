//! Programs under test, and their admin pages.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

/// A program that runs until dropped.
pub(crate) struct Program {
    child: Child,
    log: Arc<Mutex<String>>,
}

/// How long something may take before the test fails. Not a measure of anything: the machine may
/// be busy.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

impl Program {
    /// Starts `path`, with its log at hand.
    pub(crate) fn start(path: &str, args: &[&str]) -> Self {
        Self::started(Command::new(path).args(args))
    }

    /// The same, allowed only so many descriptors.
    pub(crate) fn start_with_files(files: u32, path: &str, args: &[&str]) -> Self {
        let script = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
        Self::started(Command::new("sh").args(["-c", &script, path]).args(args))
    }

    /// Starts a command, with its log at hand.
    pub(crate) fn started(command: &mut Command) -> Self {
        let mut child = command
            .stderr(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let log = Arc::new(Mutex::new(String::new()));
        let into = Arc::clone(&log);
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let mut log = into.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        Self { child, log }
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// The value of `field=` in the log, once it is there.
    pub(crate) fn logged(&mut self, field: &str) -> String {
        let mut found = None;
        wait_until(&format!("the log has {field}"), || {
            let log = self.log();
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "ended with {ended:?}:\n{log}");
            let value = log.split_once(&format!(" {field}=")).map(|(_, rest)| rest);
            found = value
                .and_then(|rest| rest.split_whitespace().next())
                .map(str::to_owned);
            found.is_some()
        });
        found.unwrap()
    }

    pub(crate) fn address(&mut self, field: &str) -> SocketAddr {
        self.logged(field).parse().unwrap()
    }

    /// Resident memory in KiB.
    pub(crate) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.unwrap().trim().trim_end_matches(" kB");
        number.parse().unwrap()
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        let id = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &id])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Waits for the end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the program ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("--- log of the program under test\n{}", self.log());
        }
    }
}

/// Runs a program that is expected to end by itself.
pub(crate) fn run(path: &str, args: &[&str]) -> Output {
    Command::new("timeout")
        .args(["120", path])
        .args(args)
        .output()
        .unwrap()
}

/// Polls until `happened`, or fails.
pub(crate) fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !happened() {
        assert!(Instant::now() < deadline, "waited too long until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// An admin page: status line and body.
pub(crate) fn page(admin: SocketAddr, path: &str) -> String {
    let mut socket = TcpStream::connect(admin).unwrap();
    write!(socket, "GET {path} HTTP/1.1\r\nHost: admin\r\n\r\n").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

/// A metric without labels, or with exactly these.
pub(crate) fn metric(admin: SocketAddr, name: &str) -> u64 {
    let page = page(admin, "/metrics");
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or("0").parse().unwrap()
}
