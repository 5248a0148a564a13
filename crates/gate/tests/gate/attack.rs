//! Clients that mean harm, or behave as if: the others must not notice.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use rustls::ClientConnection;

use super::{
    TENANT,
    crowd::{self, endless_hello, reset},
    crowd_test::Place,
    metric, page, wait_until,
};

#[test]
fn ten_thousand_half_open_clients_harm_nobody_and_are_closed() {
    let _alone = crowd::alone();
    let place = Place::new(None);
    let hellos = [&place.tunnel, &place.plain].map(|config| crowd::hello(config, TENANT));
    let mut slow = Vec::new();
    for number in 0..10_000 {
        // The limit of this machine may be lower than the attack.
        let Ok(mut stream) = TcpStream::connect(place.address) else {
            break;
        };
        // A byte more for each, so that all positions are tried.
        let hello = &hellos[number % 2];
        let _ = stream.write_all(&hello[..=number % (hello.len() - 1)]);
        slow.push(stream);
        if number % 2000 == 1999 {
            place.others_are_served();
        }
    }
    assert!(slow.len() > 500, "the attack took place");
    place.others_are_served();
    let memory = place.gate.memory();
    assert!(memory < 150_000, "{memory} KiB");
    wait_until("all were closed", || place.live() == 0);
    drop(slow);
    place.others_are_served();
}

/// What is no hello is the API server's to answer, so these are passed on; but not kept.
#[test]
fn hellos_without_end_cost_no_memory() {
    let place = Place::new(None);
    let mut attackers = Vec::new();
    for _ in 0..50 {
        let mut stream = crowd::connect(place.address);
        endless_hello(&mut stream);
        attackers.push(stream);
    }
    place.others_are_served();
    let memory = place.gate.memory();
    assert!(memory < 100_000, "{memory} KiB");
    drop(attackers);
    wait_until("all are gone", || place.live() == 0);
}

#[test]
fn resets_at_every_byte_leave_nothing_behind() {
    let place = Place::new(None);
    for config in [&place.tunnel, &place.plain] {
        let hello = crowd::hello(config, TENANT);
        for length in 0..=hello.len() {
            let mut stream = crowd::connect(place.address);
            stream.write_all(&hello[..length]).unwrap();
            reset(stream);
        }
    }
    // After the hello: at every byte of what a tunnel's client says next.
    for length in 0..200 {
        let mut stream = crowd::connect(place.address);
        let name = TENANT.try_into().unwrap();
        let mut tls = ClientConnection::new(place.tunnel.clone(), name).unwrap();
        tls.writer().write_all(b"words").unwrap();
        while tls.is_handshaking() {
            while tls.wants_write() && tls.is_handshaking() {
                tls.write_tls(&mut stream).unwrap();
            }
            tls.read_tls(&mut stream).unwrap();
            tls.process_new_packets().unwrap();
        }
        let mut last = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut last).unwrap();
        }
        stream.write_all(&last[..length.min(last.len())]).unwrap();
        reset(stream);
    }
    place.others_are_served();
    wait_until("all are gone", || place.live() == 0);
}

#[test]
fn out_of_descriptors_the_gate_recovers_by_itself() {
    let place = Place::new(Some(300));
    let hello = crowd::hello(&place.plain, TENANT);
    let mut streams = Vec::new();
    for _ in 0..400 {
        let mut stream = crowd::connect(place.address);
        stream.write_all(&hello).unwrap();
        streams.push(stream);
    }
    wait_until("it is noticed", || {
        metric(place.admin, "steward_gate_accept_pauses_total") > 0
            || metric(place.admin, "steward_gate_dial_failures_total") > 0
    });
    // The admin page has its reserve.
    assert!(page(place.admin, "/livez").contains("200"));
    let mut first = streams.remove(0);
    first.read_exact(&mut vec![0; hello.len()]).unwrap();
    drop(streams);
    wait_until("only the first is left", || place.live() == 1);
    place.others_are_served();
    first.write_all(b"still here").unwrap();
    first.read_exact(&mut [0; 10]).unwrap();
}
