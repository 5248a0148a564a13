//! Bulk: downloads in a closed loop, as fast as proxy and ends allow.

use std::{
    io::{self, Read as _, Write as _},
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use rustix::net::RecvFlags;

use super::{Connection, Dialer, Mode, Window};
use crate::{protocol::Request, targets::Target};

/// Streams at a time.
const STREAMS: usize = 4;
/// Long enough to reach full speed, short enough to end a window on time.
const PIECE: [(Mode, usize); 2] = [(Mode::Raw, 32 << 20), (Mode::Tls, 4 << 20)];

/// Streams through one proxy.
#[derive(Debug)]
pub(crate) struct Bulk {
    piece: usize,
    streams: Vec<Connection>,
}

impl Bulk {
    /// Opens the streams.
    pub(crate) fn open(dialer: &Dialer, target: &Target, mode: Mode) -> io::Result<Self> {
        let piece = PIECE
            .iter()
            .find(|(of, _)| *of == mode)
            .map_or(1 << 20, |(_, size)| *size);
        let streams = (0..STREAMS)
            .map(|_| dialer.open(target, mode))
            .collect::<io::Result<_>>()?;
        Ok(Self { piece, streams })
    }

    /// Downloads whole pieces until the time is over; `done` is in GB.
    pub(crate) fn for_a_while(&mut self, length: Duration) -> Window {
        let (bytes, errors) = (AtomicUsize::new(0), AtomicU64::new(0));
        let begun = Instant::now();
        let piece = self.piece;
        thread::scope(|scope| {
            for stream in &mut self.streams {
                let (bytes, errors) = (&bytes, &errors);
                scope.spawn(move || {
                    while begun.elapsed() < length {
                        if download(stream, piece).is_err() {
                            errors.fetch_add(1, Ordering::Relaxed);
                            return;
                        }
                        bytes.fetch_add(piece, Ordering::Relaxed);
                    }
                });
            }
        });
        #[expect(clippy::cast_precision_loss, reason = "gigabytes in a window")]
        let done = bytes.into_inner() as f64 / 1e9;
        // A closed loop ends with its last piece and is never late.
        Window {
            done,
            wanted: None,
            errors: errors.into_inner(),
            length,
            took: begun.elapsed(),
        }
    }
}

fn download(stream: &mut Connection, size: usize) -> io::Result<()> {
    let request = Request::Download(size).encode();
    let mut left = size;
    match stream {
        Connection::Tls(stream) => {
            stream.write_all(&request)?;
            let mut buffer = vec![0; 64 * 1024];
            while left > 0 {
                let wanted = left.min(buffer.len());
                left -= some(stream.read(&mut buffer[..wanted])?)?;
            }
        }
        Connection::Raw(stream) => {
            stream.write_all(&request)?;
            // TRUNC throws the bytes away in the kernel: the sink costs next to nothing.
            let mut buffer = vec![0; 1 << 20];
            while left > 0 {
                let wanted = left.min(buffer.len());
                let (_, got) =
                    rustix::net::recv(&*stream, &mut buffer[..wanted], RecvFlags::TRUNC)?;
                left -= some(got)?;
            }
        }
    }
    Ok(())
}

fn some(count: usize) -> io::Result<usize> {
    if count == 0 {
        Err(io::ErrorKind::UnexpectedEof.into())
    } else {
        Ok(count)
    }
}
