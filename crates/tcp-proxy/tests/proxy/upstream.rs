//! Upstreams that are strangers, late, or elsewhere.

use std::{
    io::Write,
    net::{SocketAddr, TcpListener, TcpStream},
};

use super::{Node, Pki, TENANT, Tenant, gate, metric, page, wait_until};

#[test]
fn an_upstream_of_another_authority_or_name_is_refused() {
    let tenant = Tenant::new();
    let stranger = Pki::new();
    let ca = stranger.ca();
    let upstream = format!("{TENANT}:{}", tenant.gate().port());
    let alias = format!("{TENANT}=127.0.0.1");
    let foreign = Node::start(&[
        "--upstream",
        &upstream,
        "--host-alias",
        &alias,
        "--ca",
        ca.to_str().unwrap(),
    ]);
    foreign.wait_unready("not signed by the CA");
    assert!(!tenant.report(&foreign).contains("server="));

    let misnamed = tenant.node(&["--server-name", "t2.example.com"]);
    misnamed.wait_unready("another name");
    assert!(!tenant.report(&misnamed).contains("server="));
}

#[test]
fn a_server_without_a_gate_gets_none_of_the_pods_bytes() {
    let tenant = Tenant::new();
    let upstream = format!("{TENANT}:{}", tenant.apiserver.address.port());
    let alias = format!("{TENANT}=127.0.0.1");
    let ca = tenant.pki.ca();
    let node = Node::start(&[
        "--upstream",
        &upstream,
        "--host-alias",
        &alias,
        "--ca",
        ca.to_str().unwrap(),
    ]);
    node.wait_unready("no protocol in common");
    assert!(!tenant.report(&node).contains("server="));
}

#[test]
fn it_waits_for_an_upstream_that_is_not_there_yet() {
    let pki = Pki::new();
    let place = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let (upstream, alias) = (
        format!("{TENANT}:{}", place.port()),
        format!("{TENANT}=127.0.0.1"),
    );
    let ca = pki.ca();
    let node = Node::start(&[
        "--upstream",
        &upstream,
        "--host-alias",
        &alias,
        "--ca",
        ca.to_str().unwrap(),
    ]);
    node.wait_unready("does not answer");
    assert!(page(node.admin, "/livez").contains("200 OK"));
    let tenant = Tenant::at(pki, &place.to_string(), &["http/1.1"]);
    node.wait_ready();
    assert!(tenant.report(&node).contains("server=apiserver"));

    // The gate answers, the API server behind it does not.
    let Tenant {
        pki,
        gate: old,
        apiserver,
        ..
    } = tenant;
    drop((old, apiserver));
    node_sees_silence(&node, &pki, place);
    let log = node.proxy.log();
    assert_eq!(log.matches("API server reached").count(), 1, "{log}");
}

fn node_sees_silence(node: &Node, pki: &Pki, place: SocketAddr) {
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let _gate = gate(pki, &place.to_string(), nobody);
    // A connection that fails makes it look.
    wait_until("a failing connection is noticed", || {
        let _ = TcpStream::connect(node.address).and_then(|mut socket| socket.write_all(b"x"));
        let page = node.readiness();
        page.contains("503") && page.contains("not the API server behind it")
    });
}

#[test]
fn without_dns_pins_and_the_internal_endpoint_are_used() {
    let tenant = Tenant::new();
    let ca = tenant.pki.ca();
    let upstream = format!("no-such-name.invalid:{}", tenant.gate().port());
    let common = [
        "--upstream",
        &upstream,
        "--server-name",
        TENANT,
        "--ca",
        ca.to_str().unwrap(),
    ];
    let endpoint = tenant.gate().to_string();
    for flags in [["--pin", "127.0.0.1"], ["--internal-endpoint", &endpoint]] {
        let node = Node::start(&[&common[..], &flags].concat());
        node.wait_ready();
        assert!(tenant.report(&node).contains("client=jane"));
    }
    let lost = Node::start(&common);
    lost.wait_unready("does not resolve");
    assert_eq!(metric(lost.admin, "steward_tcp_proxy_upstream_up"), 0);
}

#[test]
fn the_next_address_is_tried_when_one_does_not_answer() {
    let tenant = Tenant::new();
    // Nothing listens on the first two.
    let (one, two) = (format!("{TENANT}=127.0.0.2"), format!("{TENANT}=127.0.0.3"));
    let ca = tenant.pki.ca();
    let upstream = format!("{TENANT}:{}", tenant.gate().port());
    let node = Node::start(&[
        "--upstream",
        &upstream,
        "--host-alias",
        &one,
        "--host-alias",
        &two,
        "--pin",
        "127.0.0.1",
        "--ca",
        ca.to_str().unwrap(),
    ]);
    assert!(tenant.report(&node).contains("client=jane"));
}
