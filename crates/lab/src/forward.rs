//! A port on this machine's loopback that leads to an address inside a lab.
//!
//! It belongs to the process that asked for it and is gone with it. Threads, not
//! tasks: a client made in one test's runtime must not depend on another's.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    io,
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use crate::host::Host;

/// An open way into the lab; closed when dropped.
#[derive(Debug)]
pub struct Forward {
    local: SocketAddr,
    closed: Arc<AtomicBool>,
}

impl Forward {
    /// Opens a port that leads to `to` as seen from `host`.
    pub fn open(host: &Host, to: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let local = listener.local_addr()?;
        let closed = Arc::new(AtomicBool::new(false));
        let (host, flag) = (host.clone(), Arc::clone(&closed));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if flag.load(Ordering::Relaxed) {
                    return;
                }
                let host = host.clone();
                // A failed connection shows as one that closes at once.
                thread::spawn(move || relay(&host, to, stream));
            }
        });
        Ok(Self { local, closed })
    }

    /// A port that leads to `to` as seen from `host`, open until this process ends.
    /// The same one every time: clients may outlive every handle to a cluster.
    pub fn lasting(host: &Host, to: SocketAddr) -> io::Result<SocketAddr> {
        static OPEN: Mutex<BTreeMap<(PathBuf, SocketAddr), Forward>> = Mutex::new(BTreeMap::new());
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        match open.entry((host.path("/"), to)) {
            Entry::Occupied(entry) => Ok(entry.get().local),
            Entry::Vacant(entry) => Ok(entry.insert(Self::open(host, to)?).local),
        }
    }

    /// The port on loopback.
    pub fn local(&self) -> SocketAddr {
        self.local
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        // Wakes the listener, which then sees the flag.
        let _ = TcpStream::connect(self.local);
    }
}

fn relay(host: &Host, to: SocketAddr, near: TcpStream) -> io::Result<()> {
    let far = host.connect(to)?;
    near.set_nodelay(true)?;
    let (mut near_in, mut far_out) = (near.try_clone()?, far.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut near_in, &mut far_out);
        let _ = far_out.shutdown(Shutdown::Write);
    });
    let (mut far_in, mut near_out) = (far, near);
    let _ = io::copy(&mut far_in, &mut near_out);
    near_out.shutdown(Shutdown::Write)
}
