//! Handles of sockets on their way from one process to another, over a Unix socket.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// More do not fit into one message.
const MOST: usize = 253;

/// Sends handles, none among them, with one byte, as a message needs one.
pub(super) fn send(to: impl AsFd, handles: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !handles.is_empty() && !control.push(SendAncillaryMessage::ScmRights(handles)) {
        return Err(io::Error::other("too many listeners to be kept"));
    }
    sendmsg(to, &[IoSlice::new(b"l")], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Waits for handles that were sent. An end without any is an error.
pub(super) fn receive(from: impl AsFd) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let message = rustix::io::retry_on_intr(|| {
        let bytes = &mut [IoSliceMut::new(&mut byte)];
        recvmsg(from.as_fd(), bytes, &mut control, flags)
    })?;
    if message.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut all = Vec::new();
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(handles) = part {
            all.extend(handles);
        }
    }
    Ok(all)
}

/// Borrows them all.
pub(super) fn borrowed(handles: &[OwnedFd]) -> Vec<BorrowedFd<'_>> {
    handles.iter().map(AsFd::as_fd).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::{Listen, Listeners, listener};

    #[test]
    fn listeners_come_out_as_they_went_in() {
        let (here, there) = UnixStream::pair().unwrap();
        let listen = [Listen::new(([127, 0, 0, 1], 0).into())];
        let bound = listener::bind_all(&listen, 2).unwrap();
        send(&here, &bound.all()).unwrap();
        let kept = receive(&there).unwrap();
        assert_eq!(kept.len(), 2);
        let listen = [Listen::new(bound.addresses[0])];
        let again = Listeners::again(kept, &listen, 2).unwrap();
        assert_eq!(again.addresses, bound.addresses);
        send(&here, &[]).unwrap();
        assert!(receive(&there).unwrap().is_empty());
    }
}
