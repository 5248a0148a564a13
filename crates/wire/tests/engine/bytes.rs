//! Bytes there and back: whole, in order, ended in halves.

use std::{
    io::{Read, Write},
    net::Shutdown,
    sync::{Mutex, mpsc},
    thread,
    time::Duration,
};

use steward_wire::{Config, End};

use crate::support::{Mode, SIZES, echo, exchange, mirror, noise, server, start, until};

#[test]
fn bytes_arrive_whole_with_half_closes_in_both_orders() {
    for backend in [mirror(), echo()] {
        for pipes in [0, 4] {
            let config = Config {
                pipes,
                workers: 1,
                ..Config::default()
            };
            let setup = start(Mode::Plain, vec![backend], &config);
            for (seed, size) in (1..).zip(SIZES) {
                let sent = noise(size, seed);
                let received = exchange(setup.connect(), sent.clone(), &[]);
                assert!(received == sent, "{size} bytes, {pipes} pipes");
                assert_eq!(setup.end(), (End::Closed, size as u64, size as u64));
            }
            let spliced = setup.engine.counters().spliced;
            assert_eq!(
                spliced > 0,
                pipes > 0,
                "large streams are spliced if they may be"
            );
        }
    }
}

#[test]
fn many_connections_at_once_do_not_mix() {
    let setup = start(Mode::Plain, vec![echo()], &Config::default());
    thread::scope(|scope| {
        for seed in 1..40 {
            let stream = setup.connect();
            scope.spawn(move || {
                let sent = noise(200_000 + seed as usize * 1000, seed);
                assert!(exchange(stream, sent.clone(), &[]) == sent);
            });
        }
    });
    until("all have ended", || setup.engine.counters().live == 0);
}

#[test]
fn a_server_may_speak_first() {
    let address = server(|mut stream| stream.write_all(b"welcome").unwrap());
    let setup = start(Mode::Eager, vec![address], &Config::default());
    let mut words = String::new();
    setup.connect().read_to_string(&mut words).unwrap();
    assert_eq!(words, "welcome");
}

#[test]
fn a_reader_that_pauses_holds_the_writer_back_and_loses_nothing() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let backend = server(move |mut stream| {
        wait.lock().unwrap().recv().unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(&all.len().to_be_bytes()).unwrap();
    });
    let setup = start(Mode::Plain, vec![backend], &Config::default());
    let mut stream = setup.connect();
    stream.set_nonblocking(true).unwrap();
    let chunk = noise(100_000, 3);
    let mut sent = 0;
    let mut stuck = 0;
    // Blocked for good once nothing moves for a while.
    while stuck < 40 {
        if let Ok(count) = stream.write(&chunk) {
            sent += count;
            stuck = 0;
        } else {
            stuck += 1;
            thread::sleep(Duration::from_millis(5));
        }
    }
    go.send(()).unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut seen = [0; 8];
    stream.read_exact(&mut seen).unwrap();
    assert_eq!(usize::from_be_bytes(seen), sent);
}

#[test]
fn a_response_followed_by_a_reset_is_delivered() {
    let backend = server(|mut stream| {
        let mut first = [0];
        stream.read_exact(&mut first).unwrap();
        // Closed over unread bytes: the kernel resets the connection.
        stream.write_all(b"bye").unwrap();
    });
    let setup = start(Mode::Plain, vec![backend], &Config::default());
    let mut stream = setup.connect();
    stream.write_all(b"xyz").unwrap();
    let mut words = Vec::new();
    let _ = stream.read_to_end(&mut words);
    assert_eq!(words, b"bye");
}
