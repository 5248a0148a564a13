//! Delay between two hosts, without the kernel's network emulator: few kernels of
//! small machines have it, and every kernel has TUN.
//!
//! The router sends the packets between the two into a TUN device; socat hands
//! each to this program as a datagram; it waits and hands it back; the router
//! sends it on. Only traffic between networks is routed, so two workers, which
//! are on one network, cannot be slowed this way.

use std::{
    collections::VecDeque,
    fmt::Write as _,
    fs, io,
    os::unix::net::UnixDatagram,
    path::Path,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::{Fault, network::number, shell};
use crate::{Error, HostId, Lab, Unit, net};

/// Packets and when they are due, in order.
type Queue = (Mutex<VecDeque<(Instant, Vec<u8>)>>, Condvar);

/// The largest packet there can be.
const PACKET: usize = 1 << 16;

impl Lab {
    /// Delays every packet between two hosts by this much, each way.
    pub fn delay(&self, one: HostId, other: HostId, by: Duration) -> Result<Fault, Error> {
        for host in [one, other] {
            self.host(host)?;
        }
        if one.network() == other.network() {
            return Err(Error::Invalid(format!(
                "traffic between {one} and {other} cannot be delayed: they are on one network, and only what the router routes can be"
            )));
        }
        let number = number();
        let name = format!("delay{}", number % 1000);
        let router = self.router();
        let folder = self.layout().host(HostId::Router).folder().join(&name);
        fs::create_dir_all(&folder).map_err(Error::files("make", &folder))?;
        let mut relay = crate::lab::own_unit(self.layout(), "delay", &[]);
        relay.name.clone_from(&name);
        relay
            .command
            .extend([by.as_millis().to_string(), folder.display().to_string()]);
        let script = format!(
            // The kernel speaks on a new device at once, and socat ends when nobody hears it.
            "{} & for i in $(seq 500); do [ -S {folder}/there ] && break; sleep 0.02; done; exec socat TUN,tun-type=tun,tun-name={name},iff-no-pi,iff-up UNIX-SENDTO:{folder}/there,bind={folder}/here,unlink-early",
            relay.command.join(" "),
            folder = folder.display(),
        );
        let command = vec!["sh".into(), "-c".into(), script];
        router.start(Unit {
            name: name.clone(),
            command,
            restart: false,
            when: None,
        })?;
        let mut fault = Fault::new(&router, String::new());
        fault.stop = Some(name.clone());
        let (mut make, mut undo) = (wait_for_device(&name), String::new());
        for (from, to) in [(one, other), (other, one)] {
            let (mark, table) = (net::mark(from), 1000 + number);
            for address in net::addresses(to) {
                let rule = format!("fwmark {mark} to {address} lookup {table}");
                let _ = writeln!(make, "ip rule add {rule}");
                let _ = writeln!(undo, "ip rule del {rule}");
            }
            let _ = writeln!(make, "ip route replace default dev {name} table {table}");
        }
        fault.undo = undo;
        shell(&router, &make)?;
        Ok(fault)
    }
}

/// socat makes the device within milliseconds of its start.
fn wait_for_device(name: &str) -> String {
    format!(
        "for i in $(seq 200); do ip link show up dev {name} >/dev/null 2>&1 && break; sleep 0.05; done\n"
    )
}

/// Hands every datagram back after a while; runs on the router, for ever.
pub fn serve(by: Duration, folder: &Path) -> Result<(), Error> {
    let (there, here) = (folder.join("there"), folder.join("here"));
    let _ = fs::remove_file(&there);
    let socket = UnixDatagram::bind(&there).map_err(Error::files("listen on", &there))?;
    let queue = Arc::new(Queue::default());
    let back = socket.try_clone().map_err(Error::files("open", &there))?;
    let sender = Arc::clone(&queue);
    thread::spawn(move || send(&back, &here, &sender));
    let mut buffer = vec![0; PACKET];
    loop {
        let length = receive(&socket, &mut buffer).map_err(Error::files("read from", &there))?;
        let packet = (Instant::now() + by, buffer[..length].to_vec());
        queue
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(packet);
        queue.1.notify_one();
    }
}

fn receive(socket: &UnixDatagram, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match socket.recv(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

fn send(socket: &UnixDatagram, to: &Path, queue: &Queue) {
    loop {
        let mut waiting = queue.0.lock().unwrap_or_else(PoisonError::into_inner);
        while waiting.is_empty() {
            waiting = queue
                .1
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let Some((due, packet)) = waiting.pop_front() else {
            continue;
        };
        drop(waiting);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        // A full or closed socket loses the packet, as networks do.
        let _ = socket.send_to(&packet, to);
    }
}
