//! Connections made from a host on behalf of someone who is not on it.
//!
//! A socket in the file system can be reached from every network namespace, a
//! TCP port cannot: that is how a test on the machine talks to an API server
//! inside the lab, and sees the network as that host sees it.

use std::{
    io,
    net::{Shutdown, SocketAddr, TcpStream},
    os::unix::net::UnixStream,
    thread,
    time::Duration,
};

use super::orders::{Answer, write_line};

/// As long as TCP itself would try on a network that loses much.
const PATIENCE: Duration = Duration::from_secs(15);

pub(super) fn serve(mut near: UnixStream, to: SocketAddr) -> io::Result<()> {
    let far = match TcpStream::connect_timeout(&to, PATIENCE) {
        Ok(far) => far,
        Err(error) => return write_line(&mut near, &Answer::Failed(error.to_string())),
    };
    far.set_nodelay(true)?;
    write_line(&mut near, &Answer::Done)?;
    let (mut near_in, mut far_out) = (near.try_clone()?, far.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut near_in, &mut far_out);
        let _ = far_out.shutdown(Shutdown::Write);
    });
    let (mut far_in, mut near_out) = (far, near);
    let _ = io::copy(&mut far_in, &mut near_out);
    near_out.shutdown(Shutdown::Write)
}
