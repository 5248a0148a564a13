//! New connections: at a fixed rate, one after another, and many that stay.

use std::{
    io,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use super::{Connection, Dialer, Mode, WORKERS, Window, offer};
use crate::targets::Target;

/// Opens connections at a fixed rate; each says one frame and closes.
pub(crate) fn at_rate(dialer: &Dialer, target: &Target, rate: f64, length: Duration) -> Window {
    let mut workers = [(); WORKERS as usize];
    offer(&mut workers, rate, length, |()| {
        dialer.open(target, Mode::Tls).map(drop)
    })
}

/// Opens connections one after another; how long each took to its first byte.
pub(crate) fn one_by_one(
    count: usize,
    open: impl Fn() -> io::Result<Connection>,
) -> io::Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let begun = Instant::now();
        let connection = open()?;
        times.push(begun.elapsed());
        drop(connection);
    }
    Ok(times)
}

/// Opens connections as fast as a few threads can and keeps them.
pub(crate) fn keep(
    dialer: &Dialer,
    target: &Target,
    mode: Mode,
    count: usize,
) -> io::Result<Vec<Connection>> {
    let kept = Mutex::new(Vec::with_capacity(count));
    let threads = 8;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|number| {
                let kept = &kept;
                scope.spawn(move || {
                    let share = count / threads + usize::from(number < count % threads);
                    for _ in 0..share {
                        let connection = dialer.open(target, mode)?;
                        if let Ok(mut kept) = kept.lock() {
                            kept.push(connection);
                        }
                    }
                    io::Result::Ok(())
                })
            })
            .collect();
        for worker in workers {
            worker
                .join()
                .map_err(|_| io::Error::other("a worker of the load generator panicked"))??;
        }
        io::Result::Ok(())
    })?;
    kept.into_inner()
        .map_err(|_| io::Error::other("a worker of the load generator panicked"))
}
