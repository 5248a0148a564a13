//! Refusals, deadlines, descriptors and the drain.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    thread,
    time::Duration,
};

use steward_wire::{Config, End};

use crate::support::{Mode, PATIENCE, echo, noise, server, start, until};

#[test]
fn a_refused_client_reads_why_although_it_sent_more() {
    let setup = start(Mode::Refuse, vec![], &Config::default());
    let mut stream = setup.connect();
    stream.write_all(&noise(30_000, 1)).unwrap();
    let mut words = String::new();
    stream.read_to_string(&mut words).unwrap();
    assert_eq!(words, "no, thank you");
    drop(stream);
    assert_eq!(setup.end().0, End::Refused("test"));
}

/// A refused client that has read why and stays.
fn refused(setup: &crate::support::Setup) -> TcpStream {
    let mut stream = setup.connect();
    stream.write_all(b"x").unwrap();
    let mut words = [0; 13];
    stream.read_exact(&mut words).unwrap();
    assert_eq!(&words, b"no, thank you");
    stream
}

#[test]
fn only_so_many_refused_clients_are_waited_for_and_all_are_told() {
    let config = Config {
        workers: 1,
        lingering: 2,
        // Nobody is closed because of the time.
        linger_timeout: Duration::from_hours(1),
        ..Config::default()
    };
    let setup = start(Mode::Refuse, vec![], &config);
    let clients: Vec<TcpStream> = (0..5).map(|_| refused(&setup)).collect();
    for _ in 0..3 {
        assert_eq!(setup.end().0, End::Refused("test"));
    }
    let counters = setup.engine.counters();
    assert_eq!((counters.live, counters.lingers_cut), (2, 3));
    // One that goes leaves its place.
    drop(clients);
    until("the places are free", || setup.engine.counters().live == 0);
    let _next = refused(&setup);
    until("it is waited for", || setup.engine.counters().live == 1);
    assert_eq!(setup.engine.counters().lingers_cut, 3);
}

#[test]
fn a_refused_client_that_goes_on_sending_is_cut_off() {
    let config = Config {
        linger_timeout: Duration::from_hours(1),
        ..Config::default()
    };
    let setup = start(Mode::Refuse, vec![], &config);
    let mut stream = refused(&setup);
    let piece = noise(64 * 1024, 1);
    let taken = (0..128).take_while(|_| stream.write_all(&piece).is_ok());
    assert!(taken.count() < 128, "8 MiB were read of a refused client");
    assert_eq!(setup.end().0, End::Refused("test"));
    assert_eq!(setup.engine.counters().lingers_cut, 1);
}

#[test]
fn a_half_closed_connection_ends_when_its_other_half_says_nothing() {
    let config = Config {
        half_closed_timeout: Duration::from_millis(200),
        ..Config::default()
    };
    // Takes everything and never closes.
    let silent = server(|mut stream| {
        let _ = stream.read_to_end(&mut Vec::new());
        thread::park();
    });
    let setup = start(Mode::Plain, vec![silent], &config);
    let mut idle = setup.connect();
    idle.write_all(b"x").unwrap();
    let mut half = setup.connect();
    half.write_all(b"xyz").unwrap();
    half.shutdown(Shutdown::Write).unwrap();
    let (end, to_server, _) = setup.end();
    assert_eq!((end, to_server), (End::HalfClosedTimeout, 3));
    assert_eq!(half.read(&mut [0]).unwrap_or_default(), 0);
    // Silence alone ends nothing.
    until("the silent one lives", || setup.engine.counters().live == 1);
    drop(idle);
}

#[test]
fn a_client_that_never_finishes_its_first_bytes_is_closed() {
    let config = Config {
        hello_timeout: Duration::from_millis(100),
        ..Config::default()
    };
    let setup = start(Mode::Undecided, vec![], &config);
    let mut stream = setup.connect();
    stream.write_all(b"x").unwrap();
    assert_eq!(setup.end().0, End::HelloTimeout);
    let mut long = setup.connect();
    let _ = long.write_all(&noise(70_000, 1));
    let end = setup.end().0;
    assert!(
        matches!(end, End::HelloTooLong | End::HelloTimeout),
        "{end:?}"
    );
}

#[test]
fn the_oldest_unfinished_client_gives_way_when_descriptors_run_out() {
    let config = Config {
        max_descriptors: Some(16),
        workers: 1,
        ..Config::default()
    };
    let setup = start(Mode::Undecided, vec![], &config);
    let clients: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = setup.connect();
            stream.write_all(b"x").unwrap();
            stream
        })
        .collect();
    until("room was made", || setup.engine.counters().evicted >= 24);
    assert_eq!(setup.end().0, End::Evicted);
    drop(clients);
}

#[test]
fn accepting_pauses_without_descriptors_and_goes_on_by_itself() {
    let config = Config {
        max_descriptors: Some(16),
        workers: 1,
        ..Config::default()
    };
    let setup = start(Mode::Plain, vec![echo()], &config);
    let mut clients = Vec::new();
    for number in 0..8 {
        let mut stream = setup.connect();
        stream.write_all(&[number + 1]).unwrap();
        stream.read_exact(&mut [0]).unwrap();
        clients.push(stream);
    }
    // Waits in the kernel's queue: all sixteen descriptors are in use.
    let mut ninth = setup.connect();
    ninth.write_all(b"9").unwrap();
    until("accepting pauses", || {
        setup.engine.counters().accept_pauses > 0
    });
    drop(clients.pop());
    ninth.read_exact(&mut [0]).unwrap();
    for stream in &mut clients {
        stream.write_all(b"y").unwrap();
        stream.read_exact(&mut [0]).unwrap();
    }
}

#[test]
fn a_drain_lets_connections_finish_and_cuts_what_remains() {
    let setup = start(Mode::Plain, vec![echo()], &Config::default());
    let address = setup.engine.addresses()[0];
    let mut stream = setup.connect();
    stream.write_all(b"x").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    let engine = setup.engine;
    let draining = thread::spawn(move || engine.drain(PATIENCE));
    until("nobody listens", || TcpStream::connect(address).is_err());
    stream.write_all(b"y").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    drop(stream);
    assert_eq!(draining.join().unwrap().remaining, 0);

    let setup = start(Mode::Plain, vec![echo()], &Config::default());
    let mut stream = setup.connect();
    stream.write_all(b"x").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    assert_eq!(setup.engine.drain(Duration::from_millis(50)).remaining, 1);
    assert_eq!(setup.ends.recv_timeout(PATIENCE).unwrap().0, End::Cut);
}
