//! `hold`: keeps the listening sockets of a program in another container of the same pod.
//!
//! A container ends with all its processes, the keeper among them. What another container has
//! a handle of goes on listening: clients wait for the second or two that kubelet takes to
//! start the program again, which then asks here for what its predecessor listened on.
//!
//! It knows neither addresses nor clients, and refuses to hold for somebody who does not come
//! back: then clients had better be refused and go elsewhere.

use std::{
    env, fs, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{
            fs::PermissionsExt,
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    process::{self, ExitCode},
    thread,
    time::{Duration, Instant},
};

use clap::Parser;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};

use super::handles::{borrowed, receive, send};
use crate::logging::{self, Format};

/// The word that asks for this instead of serving.
const WORD: &str = "hold";

/// How long what a program listened on is held after its end: kubelet's first pauses before it
/// starts a container again, none and ten seconds, fit in.
const PATIENCE: Duration = Duration::from_secs(30);

/// Nobody on the other side takes longer than this to say or hear one word.
pub(super) const MOMENT: Duration = Duration::from_secs(2);

/// Keeps the listening sockets of a program in another container of the same pod, which was
/// started with --holder, so that clients wait while that container is started again.
#[derive(Debug, Parser)]
#[command(name = WORD)]
struct Options {
    /// Unix socket to be found at; in a volume that both containers have
    socket: PathBuf,

    /// Format of the log: text or json
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: Format,
}

/// Holds, if that is what the first word of the command line asks for. Returns at the end.
pub fn asked() -> Option<ExitCode> {
    if env::args_os().nth(1)? != WORD {
        return None;
    }
    let options = Options::parse_from(env::args_os().skip(1));
    logging::init(options.log_format);
    match run(&options.socket) {
        Ok(never) => match never {},
        Err(error) => {
            eprintln!(
                "{WORD}: can't be found at {}: {error}; give a place in a folder that this user \
                 may write, in a volume that the other container has too",
                options.socket.display()
            );
            Some(ExitCode::FAILURE)
        }
    }
}

fn run(socket: &Path) -> io::Result<std::convert::Infallible> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    thread::Builder::new()
        .name("signals".to_owned())
        // The program has handles of its own, and its time to drain.
        .spawn(move || signals.wait().next().map(|_| process::exit(0)))?;
    let mut held = Held::at(socket, PATIENCE)?;
    tracing::info!(socket = %socket.display(), "holding");
    loop {
        held.turn()?;
    }
}

/// What is held, and for whom.
#[derive(Debug)]
struct Held {
    door: UnixListener,
    sockets: Vec<OwnedFd>,
    owner: Owner,
    patience: Duration,
}

/// Whoever listens on the sockets.
#[derive(Debug)]
enum Owner {
    /// It runs: its end will be seen here.
    Runs(UnixStream),
    /// It is gone, and is waited for until then.
    Gone(Instant),
    /// There is none.
    Nobody,
}

impl Held {
    fn at(socket: &Path, patience: Duration) -> io::Result<Self> {
        match fs::remove_file(socket) {
            // Of a predecessor, in a volume that outlived it.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let door = UnixListener::bind(socket)?;
        // The group is for a program that needs another user, to listen below port 1024.
        fs::set_permissions(socket, fs::Permissions::from_mode(0o660))?;
        Ok(Self {
            door,
            sockets: Vec::new(),
            owner: Owner::Nobody,
            patience,
        })
    }

    /// Waits for one thing to happen, and sees to it.
    fn turn(&mut self) -> io::Result<()> {
        let (knocks, speaks) = self.wait()?;
        if speaks {
            self.hear();
        }
        if knocks {
            let (stream, _) = self.door.accept()?;
            self.welcome(stream);
        }
        if let Owner::Gone(until) = self.owner
            && Instant::now() >= until
        {
            tracing::error!("the program did not come back: clients are refused from now on");
            self.sockets.clear();
            self.owner = Owner::Nobody;
        }
        Ok(())
    }

    /// Whether somebody new is at the door, and whether the owner says something.
    fn wait(&self) -> io::Result<(bool, bool)> {
        let mut all = vec![PollFd::new(&self.door, PollFlags::IN)];
        if let Owner::Runs(stream) = &self.owner {
            all.push(PollFd::new(stream, PollFlags::IN));
        }
        let limit = match self.owner {
            Owner::Gone(until) => Some(until.saturating_duration_since(Instant::now())),
            _ => None,
        };
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        rustix::io::retry_on_intr(|| poll(&mut all, limit.as_ref()))?;
        let came = |place: usize| all.get(place).is_some_and(|fd| !fd.revents().is_empty());
        Ok((came(0), came(1)))
    }

    /// A program that starts gets what is held. Whoever was there before is not heard any more.
    fn welcome(&mut self, stream: UnixStream) {
        let gave = stream
            .set_read_timeout(Some(MOMENT))
            .and_then(|()| stream.set_write_timeout(Some(MOMENT)))
            .and_then(|()| send(&stream, &borrowed(&self.sockets)));
        match gave {
            Ok(()) => self.owner = Owner::Runs(stream),
            Err(error) => tracing::warn!(%error, "a program came and went"),
        }
    }

    /// The owner gives what it listens on, in place of what it gave before; or it is gone.
    fn hear(&mut self) {
        let Owner::Runs(stream) = &self.owner else {
            return;
        };
        match receive(stream.as_fd()) {
            Ok(sockets) => {
                tracing::info!(sockets = sockets.len(), "holding what a program listens on");
                self.sockets = sockets;
            }
            Err(_) if self.sockets.is_empty() => self.owner = Owner::Nobody,
            Err(_) => {
                tracing::warn!(
                    patience = ?self.patience,
                    "the program is gone: its clients wait for the next one"
                );
                self.owner = Owner::Gone(Instant::now() + self.patience);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;
    use crate::{Listen, keeper::holder::Holder, listener};

    #[test]
    fn what_nobody_comes_back_for_is_let_go() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hold");
        let mut held = Held::at(&path, Duration::from_millis(50)).unwrap();
        let listen = [Listen::new(([127, 0, 0, 1], 0).into())];
        let bound = listener::bind_all(&listen, 1).unwrap();
        let address = bound.addresses[0];
        let program = UnixStream::connect(&path).unwrap();
        send(&program, &bound.all()).unwrap();
        while held.sockets.is_empty() {
            held.turn().unwrap();
        }
        drop((program, bound));
        assert!(TcpStream::connect(address).is_ok(), "it is held");
        while !held.sockets.is_empty() {
            held.turn().unwrap();
        }
        assert!(TcpStream::connect(address).is_err(), "it is let go");
    }

    #[test]
    fn a_socket_is_only_for_its_own_user_and_group_and_replaces_a_predecessors() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hold");
        drop(Held::at(&path, PATIENCE).unwrap());
        let _held = Held::at(&path, PATIENCE).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o660);
    }

    #[test]
    fn a_program_does_not_wait_for_a_holder_that_is_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let (holder, left) = Holder::find(&dir.path().join("hold")).unwrap();
        assert!(left.is_empty());
        holder.give(&[]);
    }
}
