//! Names that move, fail and come back, without a network.

use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;
use crate::inbox::{Inbox, Message};

/// A resolver whose answers come when the test gives them.
struct Scripted(Mutex<Receiver<io::Result<Vec<SocketAddr>>>>);

fn scripted() -> (Sender<io::Result<Vec<SocketAddr>>>, Scripted) {
    let (answers, asked) = channel();
    (answers, Scripted(Mutex::new(asked)))
}

impl Resolve for Scripted {
    fn resolve(&self, _: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        let asked = self.0.lock().unwrap();
        // The test is over when it hangs up.
        asked
            .recv()
            .unwrap_or_else(|_| Err(io::Error::other("over")))
    }

    fn answers(&self, _: SocketAddr) -> bool {
        true
    }
}

/// Fails at once.
struct Never;

impl Resolve for Never {
    fn resolve(&self, _: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        Err(io::Error::other("no such name"))
    }

    fn answers(&self, _: SocketAddr) -> bool {
        false
    }
}

fn addr(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn target(text: &str) -> Target {
    text.parse().unwrap()
}

fn no_waker() -> Waker {
    panic!("should not have to wait")
}

fn wait_for(upstream: &Upstream, resolution: &Resolution) {
    while upstream.resolution() != *resolution {
        thread::yield_now();
    }
}

fn all(upstream: &Upstream) -> Vec<SocketAddr> {
    upstream.addresses().to_vec()
}

#[test]
fn targets_are_read() {
    assert_eq!(
        target("T1.Example.com.:443").to_string(),
        "t1.example.com:443"
    );
    assert_eq!(target("192.0.2.1:6443").to_string(), "192.0.2.1:6443");
    assert_eq!(
        target("[2001:db8::1]:6443").to_string(),
        "[2001:db8::1]:6443"
    );
}

#[test]
fn targets_that_are_none_are_refused_with_a_sentence() {
    for (text, sentence) in [
        ("t1.example.com", "has no port"),
        ("2001:db8::1", "has no port"),
        ("t1:0", "not a port"),
        ("t1:http", "not a port"),
        ("t_1..x:1", "not a host name: it has an empty label"),
        ("[t1]:1", "not an IP address"),
    ] {
        let error = text.parse::<Target>().unwrap_err().to_string();
        assert!(error.contains(sentence), "{error}");
    }
    assert!(
        "t1".parse::<Alias>()
            .unwrap_err()
            .to_string()
            .contains("write NAME=IP")
    );
    assert!(
        "t1=t2"
            .parse::<Alias>()
            .unwrap_err()
            .to_string()
            .contains("not an IP address")
    );
    assert!("nowhere".parse::<Endpoint>().is_err());
}

#[test]
fn an_address_needs_no_resolver() {
    let upstream = Upstream::start(target("192.0.2.1:6443"), Never).unwrap();
    let mut attempt = Attempt::default();
    assert_eq!(
        upstream.next(&mut attempt, no_waker),
        Step::Connect(addr("192.0.2.1:6443"))
    );
    assert_eq!(upstream.next(&mut attempt, no_waker), Step::Exhausted);
}

#[test]
fn an_alias_takes_the_place_of_dns() {
    let aliases = [
        "t1.example.com=192.0.2.7".parse().unwrap(),
        "other=192.0.2.8".parse().unwrap(),
    ];
    let target = target("t1.example.com:443").with_aliases(&aliases);
    let upstream = Upstream::start(target, Never).unwrap();
    assert_eq!(all(&upstream), [addr("192.0.2.7:443")]);
    assert_eq!(upstream.resolution(), Resolution::Known);
}

#[test]
fn the_name_comes_first_then_pins_then_the_internal_endpoint() {
    let (answers, resolver) = scripted();
    let target = target("t1.example.com:443")
        .with_pinned(&["192.0.2.9".parse().unwrap(), "192.0.2.1".parse().unwrap()])
        .with_internal(Some("10.0.0.5:6443".parse().unwrap()));
    let upstream = Upstream::start(target, resolver).unwrap();
    answers
        .send(Ok(vec![addr("192.0.2.1:443"), addr("[2001:db8::1]:443")]))
        .unwrap();
    wait_for(&upstream, &Resolution::Known);
    let expected = [
        "192.0.2.1:443",
        "[2001:db8::1]:443",
        "192.0.2.9:443",
        "10.0.0.5:6443",
    ]
    .map(addr);
    assert_eq!(all(&upstream), expected);
    let mut attempt = Attempt::default();
    for address in expected {
        assert_eq!(
            upstream.next(&mut attempt, no_waker),
            Step::Connect(address)
        );
    }
    assert_eq!(upstream.next(&mut attempt, no_waker), Step::Exhausted);
}

#[test]
fn pins_work_without_dns() {
    let target = target("t1.example.com:443").with_pinned(&["192.0.2.9".parse().unwrap()]);
    let upstream = Upstream::start(target, Never).unwrap();
    wait_for(&upstream, &Resolution::Failed("no such name".to_owned()));
    let step = upstream.next(&mut Attempt::default(), no_waker);
    assert_eq!(step, Step::Connect(addr("192.0.2.9:443")));
}

#[test]
fn the_first_connection_waits_for_the_first_answer() {
    let (answers, resolver) = scripted();
    let upstream = Upstream::start(target("t1.example.com:443"), resolver).unwrap();
    let inbox = Arc::new(Inbox::new().unwrap());
    let mut attempt = Attempt::default();
    let step = upstream.next(&mut attempt, || Waker::new(Arc::clone(&inbox), 5));
    assert_eq!(step, Step::Wait);
    answers.send(Ok(vec![addr("192.0.2.1:443")])).unwrap();
    wait_for(&upstream, &Resolution::Known);
    let mut messages = Vec::new();
    while messages.is_empty() {
        messages = inbox.take();
    }
    assert_eq!(messages, [Message::Wake(5)]);
    assert_eq!(
        upstream.next(&mut attempt, no_waker),
        Step::Connect(addr("192.0.2.1:443"))
    );
}

#[test]
fn an_address_that_failed_is_tried_last_until_it_answers() {
    let (answers, resolver) = scripted();
    let upstream = Upstream::start(target("t1.example.com:443"), resolver).unwrap();
    let (one, two) = (addr("192.0.2.1:443"), addr("192.0.2.2:443"));
    answers.send(Ok(vec![one, two])).unwrap();
    wait_for(&upstream, &Resolution::Known);
    let mut attempt = Attempt::default();
    assert_eq!(upstream.next(&mut attempt, no_waker), Step::Connect(one));
    upstream.failed(one);
    assert_eq!(all(&upstream), [two, one]);
    // The connection at work keeps its own order.
    assert_eq!(upstream.next(&mut attempt, no_waker), Step::Connect(two));
    // A failure brings a new answer within a second or so.
    answers.send(Ok(vec![one, two])).unwrap();
    while all(&upstream) != [one, two] {
        thread::yield_now();
    }
}

#[test]
fn addresses_outlive_the_name() {
    let (answers, resolver) = scripted();
    let upstream = Upstream::start(target("t1.example.com:443"), resolver).unwrap();
    answers.send(Ok(vec![addr("192.0.2.1:443")])).unwrap();
    wait_for(&upstream, &Resolution::Known);
    upstream.failed(addr("192.0.2.1:443"));
    answers
        .send(Err(io::Error::other("server is gone")))
        .unwrap();
    wait_for(&upstream, &Resolution::Failed("server is gone".to_owned()));
    assert_eq!(all(&upstream), [addr("192.0.2.1:443")]);
}

#[test]
fn an_address_that_stays_silent_stays_last() {
    let pins = ["192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap()];
    let upstream = Upstream::start(target("t1.example.com:443").with_pinned(&pins), Never).unwrap();
    let (one, two) = (addr("192.0.2.1:443"), addr("192.0.2.2:443"));
    wait_for(&upstream, &Resolution::Failed("no such name".to_owned()));
    upstream.failed(one);
    let before = upstream.addresses();
    // The next resolution publishes a new list, with the same order.
    while Arc::ptr_eq(&before, &upstream.addresses()) {
        thread::yield_now();
    }
    assert_eq!(all(&upstream), [two, one]);
}
