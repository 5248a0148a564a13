//! The lab's name server: a program on the router that every host asks.
//!
//! It knows the lab's hosts, names and wildcards it was told, and nothing of the
//! world outside. It reads its zone anew when the file changes, and can be told
//! to fail.

mod message;
mod zone;

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket},
    path::Path,
    thread,
    time::Duration,
};

use self::zone::Watched;
pub use self::zone::{Mood, Zone};
use crate::{Error, HostId, Lab, LabName, Layout, init::write_atomically, lab::own_unit};

/// A client that connected and says nothing should not keep a thread.
const PATIENCE: Duration = Duration::from_secs(10);

/// Writes the first zone and starts the program.
pub(crate) fn start(lab: &Lab) -> Result<(), Error> {
    let layout = lab.layout();
    let mut zone = Zone::default();
    for host in lab.hosts() {
        zone.names
            .insert(format!("{}.lab", host.id()), host.id().address());
    }
    write(layout, &zone)?;
    let name = layout.name().as_str();
    lab.router()
        .start(own_unit(layout, "dns", &["serve", "--name", name]))
}

/// Changes the zone; the name server answers accordingly from the next question on.
pub fn change(lab: &Lab, change: impl FnOnce(&mut Zone)) -> Result<(), Error> {
    let mut zone = read(lab.layout())?;
    change(&mut zone);
    write(lab.layout(), &zone)
}

/// The zone as it is.
pub fn read(layout: &Layout) -> Result<Zone, Error> {
    zone::read(&layout.zone()).map_err(Error::files("read", layout.zone()))
}

fn write(layout: &Layout, zone: &Zone) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(zone).unwrap_or_default();
    write_atomically(&layout.zone(), &text)
}

/// Serves a lab's zone for ever; runs on the router.
pub fn serve(name: &LabName) -> Result<(), Error> {
    let path = Layout::new(name.clone()).zone();
    let at = (Ipv4Addr::UNSPECIFIED, 53);
    let udp = UdpSocket::bind(at).map_err(Error::files("listen on", "UDP port 53"))?;
    let tcp = TcpListener::bind(at).map_err(Error::files("listen on", "TCP port 53"))?;
    debug_assert_eq!(HostId::Router.address(), HostId::Mgmt.network().gateway());
    let streams = path.clone();
    thread::spawn(move || serve_tcp(&tcp, &streams));
    serve_udp(&udp, &path)
}

fn serve_udp(socket: &UdpSocket, path: &Path) -> ! {
    let mut zone = Watched::new(path);
    let mut buffer = [0; 4096];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else {
            continue;
        };
        if let Some(answer) = message::answer(&buffer[..length], zone.current()) {
            let _ = socket.send_to(&answer, from);
        }
    }
}

fn serve_tcp(listener: &TcpListener, path: &Path) {
    for stream in listener.incoming().flatten() {
        let mut zone = Watched::new(path);
        thread::spawn(move || while serve_stream(&stream, &mut zone).is_some() {});
    }
}

fn serve_stream(mut stream: &TcpStream, zone: &mut Watched) -> Option<()> {
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut length = [0; 2];
    stream.read_exact(&mut length).ok()?;
    let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut question).ok()?;
    let answer = message::answer(&question, zone.current())?;
    let length = u16::try_from(answer.len()).ok()?.to_be_bytes();
    stream
        .write_all(&[&length, answer.as_slice()].concat())
        .ok()
}
