//! Addresses that do not answer, or are not known yet.

use std::{
    io::{Read, Write},
    net::TcpListener,
};

use steward_wire::{Config, End};

use crate::support::{Mode, echo, exchange, local, noise, start, until};

#[test]
fn an_address_that_does_not_answer_is_followed_by_the_next() {
    let closed = TcpListener::bind(local()).unwrap().local_addr().unwrap();
    let setup = start(
        Mode::Plain,
        vec![closed, closed, echo()],
        &Config::default(),
    );
    let sent = noise(10, 1);
    assert_eq!(exchange(setup.connect(), sent.clone(), &[]), sent);
    assert_eq!(setup.engine.counters().dial_failures, 2);

    let setup = start(Mode::Plain, vec![closed], &Config::default());
    let mut stream = setup.connect();
    stream.write_all(b"x").unwrap();
    let _ = stream.read(&mut [0]);
    assert_eq!(setup.end().0, End::Refused("nobody_answers"));
}

#[test]
fn a_session_without_address_waits_for_its_waker() {
    let setup = start(Mode::Wait, vec![echo()], &Config::default());
    let mut stream = setup.connect();
    stream.write_all(b"hello").unwrap();
    until("the session waits", || {
        !setup.program.wakers.lock().unwrap().is_empty()
    });
    let waker = setup.program.wakers.lock().unwrap().remove(0);
    waker.wake();
    let mut back = [0; 5];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"hello");
    drop(stream);
    setup.end();
    waker.wake();
    let again = setup.connect();
    drop(again);
}
