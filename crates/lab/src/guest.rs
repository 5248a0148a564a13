//! A machine with a kernel, a system and a clock of its own, on the clients' network.
//!
//! Hosts of a lab share this machine's kernel, and Linux has no namespace for the time of
//! day. A guest is User Mode Linux, which is a kernel that runs as a program: it boots
//! Debian's systemd from a folder of the cache that it only reads, and what it changes is
//! gone with it. It needs no virtualisation of the machine, and is no host: no pods, no
//! faults, one per lab.
//!
//! It cannot touch this machine's clock: its time is a variable of its own kernel, and the
//! program that is this kernel has given up `CAP_SYS_TIME`, as has the time server, which
//! only tells what this machine's clock says.

pub(crate) mod registers;

use std::{
    fs,
    io::{self, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr},
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{ExitStatus, Output},
    time::Duration,
};

use crate::{
    Error, Host, Lab, Network, Unit,
    faults::shell,
    host::last_words,
    logs,
    parts::{self, Part},
    poll, programs,
    progress::Progress,
    supplies,
};

/// Beside the client's.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 3);

/// Where it takes scripts: systemd listens there, see `guest/lab.socket`.
const PORT: u16 = 514;

/// Systemd, dbus and one program of ours; what is not used is not taken from the machine.
const MEMORY: &str = "384M";

/// Eight seconds on two cores that others use, too.
const BOOT: Duration = Duration::from_mins(4);

/// For the next bytes of an answer.
const PATIENCE: Duration = Duration::from_mins(5);

/// Its cable's end in the router, its program, and where that says something.
const NAME: &str = "guest";

/// Makes cables that end in a program.
const TUN: &str = "/dev/net/tun";

const TIME_SERVER: &str = "chronyd";

/// A guest that runs. It ends when this is dropped, and with its lab.
#[derive(Debug)]
pub struct Guest {
    router: Host,
    folder: PathBuf,
}

impl Lab {
    /// Boots a machine whose clock is so far ahead of this one's, and which knows a time
    /// server that nobody there asks yet.
    pub async fn guest(&self, ahead: Duration, progress: &Progress) -> Result<Guest, Error> {
        let system = unpacked(Part::Guest, progress).await?;
        let server = unpacked(Part::Chrony, progress).await?;
        let task = progress.task("guest");
        let guest = Guest {
            router: self.router(),
            folder: self.layout().folder().join(NAME),
        };
        guest.prepare()?;
        guest.router.start(guest.time_server(&server)?)?;
        guest.router.start(guest.kernel(&system, ahead)?)?;
        poll(BOOT, async || guest.script("true").await)
            .await
            .map_err(|error| Error::Timeout {
                what: "the start of the guest".into(),
                allowed: BOOT.as_secs(),
                last: error.chain(),
            })?;
        task.done("running");
        Ok(guest)
    }
}

impl Guest {
    /// Makes its folders and plugs a cable in.
    fn prepare(&self) -> Result<(), Error> {
        if !Path::new(TUN).exists() {
            return Err(Error::Invalid(format!(
                "this machine lacks {TUN}, to which a guest is plugged: try `modprobe tun`"
            )));
        }
        for folder in ["files", "memory"] {
            let folder = self.folder.join(folder);
            fs::create_dir_all(&folder).map_err(Error::files("make", &folder))?;
        }
        let bridge = Network::Clients.bridge();
        // A bridge takes its address from its cables: without one of its own, everybody else
        // would lose it for seconds now, and when the cable is gone. Of the cable, whoever is
        // root may make use, without being allowed anything else in the network.
        let plug = format!(
            "set -- $(ip -brief link show {bridge})
             ip link set {bridge} address $3
             ip tuntap add {NAME} mode tap user root
             ip link set {NAME} master {bridge} up"
        );
        shell(&self.router, &plug)
    }

    /// The program that is its kernel.
    fn kernel(&self, system: &Path, ahead: Duration) -> Result<Unit, Error> {
        let gateway = Network::Clients.gateway();
        let memory = self.folder.join("memory").display().to_string();
        let files = self.folder.join("files");
        // Its memory is a file, which is never written to a disk. Of root's rights only
        // that to read all files is left.
        let script = "mount -t tmpfs -o mode=700,size=512m guest \"$0\"
exec setpriv --bounding-set=-all,+dac_read_search --inh-caps=-all --no-new-privs env TMPDIR=\"$0\" \"$@\"";
        let words = ["unshare", "--mount", "--", "sh", "-euc", script, &memory];
        let mut command: Vec<String> = words.map(str::to_owned).into();
        let too_many = registers::too_many();
        if too_many {
            let lab = programs::own_program()?.display().to_string();
            command.extend([lab, "older-registers".into(), "--".into()]);
        }
        command.push(system.join("usr/bin/linux.uml").display().to_string());
        command.extend([
            format!("mem={MEMORY}"),
            format!("umid={NAME}"),
            format!("uml_dir={memory}/"),
            // It ends, and does not start over, when it can't go on.
            "panic=1".into(),
            "noreboot".into(),
            "con=null".into(),
            "con0=null,fd:1".into(),
            "root=none".into(),
            "rootfstype=hostfs".into(),
            format!("rootflags={}", system.display()),
            "ro".into(),
            "init=/init".into(),
            // Without the last, it would lose what the machine sends in one piece.
            format!("vec0:transport=tap,ifname={NAME},depth=128,gro=1"),
            format!("LAB_FILES={}", files.display()),
            format!("LAB_ADDRESS={ADDRESS}"),
            format!("LAB_GATEWAY={gateway}"),
            format!("LAB_AHEAD={}", ahead.as_secs()),
        ]);
        if too_many {
            command.extend(registers::variables());
        }
        Ok(Unit {
            name: NAME.into(),
            command,
            restart: false,
            when: None,
        })
    }

    /// Chrony, as a server that never turns a clock, with its own libraries: it is not
    /// installed here.
    fn time_server(&self, server: &Path) -> Result<Unit, Error> {
        let configuration = self.folder.join("chrony.conf");
        let pid = self.folder.join("chronyd.pid").display().to_string();
        let text =
            format!("local stratum 10\nallow all\ncmdport 0\nbindcmdaddress /\npidfile {pid}\n");
        fs::write(&configuration, text).map_err(Error::files("write", &configuration))?;
        let at = |path: &str| server.join(path).display().to_string();
        let (loader, libraries, program) = (
            at("usr/lib64/ld-linux-x86-64.so.2"),
            at("usr/lib/x86_64-linux-gnu"),
            at("usr/sbin/chronyd"),
        );
        let words = [
            "setpriv",
            "--bounding-set=-sys_time",
            "--",
            &loader,
            "--library-path",
            &libraries,
            &program,
            "-x",
            "-d",
            "-u",
            "root",
            "-f",
            &configuration.display().to_string(),
        ];
        Ok(Unit {
            name: TIME_SERVER.into(),
            command: words.map(str::to_owned).into(),
            restart: true,
            when: None,
        })
    }

    /// Its address.
    pub fn address(&self) -> Ipv4Addr {
        ADDRESS
    }

    /// Gives it a file, and says where it is there.
    pub fn put(&self, file: &Path) -> Result<String, Error> {
        let name = file.file_name().ok_or_else(|| {
            Error::Invalid(format!("{} is no file to give to a guest", file.display()))
        })?;
        let to = self.folder.join("files").join(name);
        fs::copy(file, &to).map_err(Error::files("copy", file))?;
        Ok(format!("/lab/{}", name.display()))
    }

    /// Runs a script in its shell, as root, and returns all it said, however it ended.
    pub async fn exec(&self, script: &str) -> Result<Output, Error> {
        let (router, script) = (self.router.clone(), script.to_owned());
        let talk = tokio::task::spawn_blocking(move || converse(&router, &script));
        let said = talk.await.map_err(io::Error::other).flatten();
        said.map_err(|error| Error::Command {
            what: "sending a script to the guest".into(),
            status: error.to_string(),
            output: logs::tail(&self.router.log(NAME), 20),
        })
    }

    /// Runs a script that has to succeed, and returns its output.
    pub async fn script(&self, script: &str) -> Result<String, Error> {
        let output = self.exec(script).await?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(Error::Command {
            what: format!("`{script}` on the guest"),
            status: output.status.to_string(),
            output: last_words(&output),
        })
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // With the lab already gone there is nothing to end.
        if self.router.pid().is_none() {
            return;
        }
        for program in [NAME, TIME_SERVER] {
            let _never_started = self.router.stop(program);
        }
        let unplug = format!("ip link del {NAME}");
        if let Err(error) = shell(&self.router, &unplug) {
            eprintln!("cannot unplug the guest: {}", error.chain());
        }
    }
}

/// The folder of a part that is unpacked and not installed.
async fn unpacked(part: Part, progress: &Progress) -> Result<PathBuf, Error> {
    let (options, progress) = (supplies::options(None)?, progress.clone());
    let work = move || parts::ensure(part, &options, &progress);
    let programs = tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::Invalid(format!("gathering {part} was stopped: {error}")))??;
    let folder = programs.share().map(Path::to_path_buf);
    folder.ok_or_else(|| Error::Invalid(format!("{part} in the cache is empty: remove it there")))
}

fn converse(router: &Host, script: &str) -> io::Result<Output> {
    let mut stream = router.connect(SocketAddr::from((ADDRESS, PORT)))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(script.as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    understand(&answer)
        .ok_or_else(|| io::Error::other("it hung up before the script was at its end"))
}

/// Reads what `guest/shell.sh` sends. Nothing, if some of it is missing.
fn understand(answer: &[u8]) -> Option<Output> {
    let end = answer.iter().position(|byte| *byte == b'\n')?;
    let line = std::str::from_utf8(&answer[..end]).ok()?;
    let numbers: Vec<usize> = line
        .split(' ')
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    let &[code, out, err] = numbers.as_slice() else {
        return None;
    };
    let said = &answer[end + 1..];
    (said.len() == out + err).then(|| Output {
        status: ExitStatus::from_raw(i32::try_from(code).unwrap_or(1) << 8),
        stdout: said[..out].into(),
        stderr: said[out..].into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_code_and_two_texts() {
        let output = understand(b"3 5 4\nfine\nbad\n").unwrap();
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(output.stdout, b"fine\n");
        assert_eq!(output.stderr, b"bad\n");
    }

    #[test]
    fn an_answer_that_was_cut_off_is_none() {
        for answer in [&b""[..], b"0 5", b"0 5 0\nfin", b"0 5\nfine\n"] {
            assert!(understand(answer).is_none(), "{answer:?}");
        }
    }
}
