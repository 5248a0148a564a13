//! Clients that mean harm, or behave as if: the others must not notice.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use super::{
    SERVICE,
    crowd::{self, endless_hello, reset},
    crowd_test::{Mode, Place},
    metric, page, wait_until,
};

const MODES: [Mode; 2] = [Mode::EndToEnd, Mode::Terminate];

#[test]
fn terminated_ten_thousand_half_open_clients_harm_nobody_and_are_closed() {
    let _alone = crowd::alone();
    let place = Place::new(Mode::Terminate, None);
    let hello = crowd::hello(&place.config, SERVICE);
    let mut slow = Vec::new();
    for number in 0..10_000 {
        // The limit of this machine may be lower than the attack.
        let Ok(mut stream) = TcpStream::connect(place.node.address) else {
            break;
        };
        // A byte more for each, so that all positions are tried.
        let _ = stream.write_all(&hello[..=number % (hello.len() - 1)]);
        slow.push(stream);
        if number % 2000 == 1999 {
            place.others_are_served();
        }
    }
    assert!(slow.len() > 500, "the attack took place");
    place.others_are_served();
    let memory = place.node.proxy.memory();
    assert!(memory < 150_000, "{memory} KiB");
    wait_until("all were closed", || place.live() == 0);
    drop(slow);
    place.others_are_served();
}

/// End to end there is no hello to wait for: who says nothing has a tunnel, for the API server to
/// close. It must be cheap.
#[test]
fn end_to_end_silent_clients_cost_little_and_harm_nobody() {
    let _alone = crowd::alone();
    let place = Place::new(Mode::EndToEnd, None);
    let mut silent = Vec::new();
    for number in 0..3000 {
        silent.push(crowd::connect(place.node.address));
        if number % 1000 == 999 {
            place.others_are_served();
        }
    }
    wait_until("all have their tunnel", || place.live() >= 3000);
    let memory = place.node.proxy.memory();
    assert!(memory < 150_000, "{memory} KiB");
    drop(silent);
    wait_until("all are gone", || place.live() == 0);
    place.others_are_served();
}

#[test]
fn hellos_without_end_cost_no_memory() {
    for mode in MODES {
        let place = Place::new(mode, None);
        let mut attackers = Vec::new();
        for _ in 0..50 {
            let mut stream = crowd::connect(place.node.address);
            endless_hello(&mut stream);
            attackers.push(stream);
        }
        place.others_are_served();
        let memory = place.node.proxy.memory();
        assert!(memory < 100_000, "{memory} KiB");
        if mode == Mode::Terminate {
            wait_until("all were cut off", || place.live() == 0);
        }
        drop(attackers);
        wait_until("all are gone", || place.live() == 0);
    }
}

#[test]
fn resets_at_every_byte_leave_nothing_behind() {
    for mode in MODES {
        let place = Place::new(mode, None);
        let hello = crowd::hello(&place.config, SERVICE);
        for length in 0..=hello.len() {
            let mut stream = crowd::connect(place.node.address);
            stream.write_all(&hello[..length]).unwrap();
            reset(stream);
        }
        place.others_are_served();
        wait_until("all are gone", || place.live() == 0);
    }
}

#[test]
fn out_of_descriptors_the_proxy_recovers_by_itself() {
    for mode in MODES {
        let place = Place::new(mode, Some(300));
        let mut first = place.connect();
        first.write_all(b"first").unwrap();
        first.flush().unwrap();
        first.read_exact(&mut [0; 5]).unwrap();
        let hello = crowd::hello(&place.config, SERVICE);
        let mut streams = Vec::new();
        for _ in 0..400 {
            let mut stream = crowd::connect(place.node.address);
            stream.write_all(&hello).unwrap();
            streams.push(stream);
        }
        let admin = place.node.admin;
        wait_until("it is noticed", || {
            metric(admin, "steward_tcp_proxy_accept_pauses_total") > 0
                || metric(admin, "steward_tcp_proxy_dial_failures_total") > 0
        });
        // The admin page has its reserve.
        assert!(page(admin, "/livez").contains("200"));
        drop(streams);
        wait_until("only the first is left", || place.live() == 1);
        place.others_are_served();
        first.write_all(b"still here").unwrap();
        first.flush().unwrap();
        first.read_exact(&mut [0; 10]).unwrap();
    }
}
