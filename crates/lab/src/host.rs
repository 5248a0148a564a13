//! A handle to a host of a running lab: run programs on it, reach what it reaches.
//!
//! A handle is a name and some paths; it holds nothing open and can be cloned.

use std::{
    collections::HashSet,
    fs, io,
    net::{IpAddr, SocketAddr},
    os::unix::net::UnixStream,
    path::PathBuf,
    process::{Output, Stdio},
};

use rustix::process::{Pid, kill_process};
use tokio::process::{Child, Command};

use crate::{
    Error, HostId, Layout, cgroup,
    init::{self, Answer, Nudge, Order, Unit, UnitState},
    layout::HostLayout,
};

/// What follows the lab's own programs in a host's PATH.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The variable that marks a process as one of a lab, so that it is found when the
/// lab is removed. Nobody sets it by hand, as whoever has it is killed then.
pub(crate) const MARK: &str = "STEWARD_LAB_MEMBER";

/// Where the administrator's kubeconfig of a cluster is, on its host.
pub(crate) const ADMIN_CONF: &str = "/etc/kubernetes/admin.conf";

/// One host of a lab.
#[derive(Debug, Clone)]
pub struct Host {
    layout: Layout,
    files: HostLayout,
    id: HostId,
}

impl Host {
    pub(crate) fn new(layout: &Layout, id: HostId) -> Self {
        Self {
            layout: layout.clone(),
            files: layout.host(id),
            id,
        }
    }

    /// Which host it is.
    pub fn id(&self) -> HostId {
        self.id
    }

    /// Its address.
    pub fn address(&self) -> IpAddr {
        self.id.address().into()
    }

    /// Where one of the host's own files is, seen from outside.
    ///
    /// Only what a host has of its own is there: `/etc/kubernetes`, `/etc/cni`,
    /// `/var/lib/kubelet`, `/run` and so on.
    pub fn path(&self, absolute: &str) -> PathBuf {
        self.files.path(absolute)
    }

    /// The log of one of its programs.
    pub fn log(&self, program: &str) -> PathBuf {
        self.files.log(program)
    }

    /// Where programs lie that only this host has.
    pub(crate) fn own_programs(&self) -> PathBuf {
        self.files.bin()
    }

    /// PATH on this host.
    pub(crate) fn search_path(&self) -> String {
        let (own, lab) = (self.own_programs(), self.layout.bin());
        format!("{}:{}:{SYSTEM_PATH}", own.display(), lab.display())
    }

    /// The process that holds the host together, if it runs.
    pub(crate) fn pid(&self) -> Option<i32> {
        let pid = fs::read_to_string(self.files.pid())
            .ok()?
            .trim()
            .parse()
            .ok()?;
        PathBuf::from(format!("/proc/{pid}"))
            .exists()
            .then_some(pid)
    }

    /// The words that run a program on this host, to put before it.
    pub(crate) fn enter(&self) -> Result<Vec<String>, Error> {
        let pid = self.pid().ok_or_else(|| Error::Host {
            host: self.id.to_string(),
            why: "its first process is gone".into(),
        })?;
        let here = std::env::current_dir().unwrap_or_else(|_| "/".into());
        let words = [
            "nsenter", "--mount", "--uts", "--ipc", "--net", "--pid", "--target",
        ];
        let mut words: Vec<String> = words.map(String::from).into();
        words.push(pid.to_string());
        words.push(format!("--wdns={}", here.display()));
        words.push("--".into());
        Ok(words)
    }

    /// What the environment of a program on this host has besides the caller's.
    ///
    /// Tools that keep caches in the caller's home keep them in the lab instead.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let cache = |name: &str| {
            self.layout
                .folder()
                .join("cache")
                .join(name)
                .display()
                .to_string()
        };
        let mut environment = vec![
            ("PATH", self.search_path()),
            (MARK, self.layout.name().to_string()),
            ("KUBECACHEDIR", cache("kubectl")),
            ("HELM_CACHE_HOME", cache("helm")),
            ("HELM_CONFIG_HOME", cache("helm")),
            ("HELM_DATA_HOME", cache("helm")),
        ];
        if self.path(ADMIN_CONF).exists() {
            environment.push(("KUBECONFIG", ADMIN_CONF.into()));
        }
        environment
    }

    /// A program on this host, ready to be given arguments and pipes. It dies
    /// with the caller, and when the handle to the child is dropped.
    pub fn command(&self, program: &str) -> Result<Command, Error> {
        let words = self.enter()?;
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--"])
            .args(words)
            // Entering the process namespace forks: tie the inner one to the outer.
            .args(["setpriv", "--pdeathsig", "KILL", "--", program])
            .envs(self.environment())
            .kill_on_drop(true);
        Ok(command)
    }

    /// Runs a program to its end, and returns all it said, however it ended.
    pub async fn exec(&self, words: &[&str]) -> Result<Output, Error> {
        let [program, arguments @ ..] = words else {
            return Err(Error::Invalid("there is no command to run".into()));
        };
        let output = self
            .command(program)?
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .await;
        output.map_err(Error::files("start", *program))
    }

    /// Runs a program that has to succeed, and returns its output.
    pub async fn run(&self, words: &[&str]) -> Result<String, Error> {
        let output = self.exec(words).await?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(Error::Command {
            what: format!("`{}` on {}", words.join(" "), self.id),
            status: output.status.to_string(),
            output: last_words(&output),
        })
    }

    /// Runs a shell script that has to succeed, and returns its output.
    pub async fn script(&self, script: &str) -> Result<String, Error> {
        self.run(&["sh", "-euc", script]).await
    }

    /// Starts a program with its output in pipes, and returns at once.
    pub fn spawn(&self, words: &[&str]) -> Result<Child, Error> {
        let [program, arguments @ ..] = words else {
            return Err(Error::Invalid("there is no command to run".into()));
        };
        self.command(program)?
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(Error::files("start", *program))
    }

    /// Runs a program from now on, as the host's own.
    pub fn start(&self, unit: Unit) -> Result<(), Error> {
        self.order(&Order::Start(unit)).map(|_| ())
    }

    /// Ends one of the host's own programs for good.
    pub fn stop(&self, program: &str) -> Result<(), Error> {
        self.order(&Order::Stop(program.into())).map(|_| ())
    }

    /// Kills, freezes or thaws one of the host's own programs.
    pub fn nudge(&self, program: &str, nudge: Nudge) -> Result<(), Error> {
        self.order(&Order::Nudge(program.into(), nudge)).map(|_| ())
    }

    /// Kills, freezes or thaws every process on this host, in pods too, whose
    /// program has this name. Says how many there were.
    pub fn nudge_all(&self, program: &str, nudge: Nudge) -> usize {
        let mut pids = HashSet::new();
        for hierarchy in cgroup::hierarchies().unwrap_or_default() {
            pids.extend(hierarchy.processes(&self.layout.host_cgroup(self.id)));
        }
        let found = pids
            .into_iter()
            .filter(|pid| program_of(*pid).is_some_and(|p| p == program));
        found
            .filter(|pid| kill_process(*pid, nudge.signal()).is_ok())
            .count()
    }

    /// The host's own programs.
    pub fn units(&self) -> Result<Vec<UnitState>, Error> {
        match self.order(&Order::List)?.0 {
            Answer::Units(units) => Ok(units),
            other => Err(self.silent(format!("{other:?}"))),
        }
    }

    /// Connects to an address as this host would. The connection is a socket of
    /// the machine, whatever network the host is on.
    pub fn connect(&self, to: SocketAddr) -> io::Result<UnixStream> {
        match init::order(&self.files, &Order::Dial(to))? {
            (Answer::Done, stream) => Ok(stream),
            (Answer::Failed(why), _) => Err(io::Error::other(why)),
            (other, _) => Err(io::Error::other(format!("{other:?}"))),
        }
    }

    fn order(&self, order: &Order) -> Result<(Answer, UnixStream), Error> {
        match init::order(&self.files, order) {
            Ok((Answer::Failed(why), _)) => Err(self.silent(why)),
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.silent(error.to_string())),
        }
    }

    fn silent(&self, why: String) -> Error {
        Error::Host {
            host: self.id.to_string(),
            why,
        }
    }
}

/// The file name of what a process was started as.
fn program_of(pid: Pid) -> Option<String> {
    let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).ok()?;
    let program = line.split(|byte| *byte == 0).next()?.to_owned();
    let program = String::from_utf8(program).ok()?;
    Some(program.rsplit('/').next()?.to_owned())
}

/// The end of what a program said, errors last.
pub(crate) fn last_words(output: &Output) -> String {
    let all = [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .join("\n");
    let lines: Vec<&str> = all.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}
