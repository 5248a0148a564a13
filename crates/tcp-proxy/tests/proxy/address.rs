//! `--address` in a network namespace of its own, which takes root.

use std::process::Command;

use super::{PROXY, Pki};

/// Waits for a condition, with a limit.
const UNTIL: &str = r#"
until_true() { n=0; until eval "$1"; do n=$((n+1)); [ $n -lt 600 ] || { echo "waited too long: $1"; exit 1; }; sleep 0.05; done; }
has() { ip -o addr show dev lo | grep -qw "$1"; }
ip link set lo up
start() { "$PROXY" --address 240.0.0.1 --address fd00:240::1 --listen 240.0.0.1:6443 --upstream t1.example.com:443 --pin 127.0.0.1 --ca "$CA" "$@" & }
"#;

fn in_namespace(script: &str) -> String {
    let pki = Pki::new();
    let output = Command::new("timeout")
        .args([
            "60",
            "unshare",
            "--net",
            "sh",
            "-euc",
            &format!("{UNTIL}{script}"),
        ])
        .env("PROXY", PROXY)
        .env("CA", pki.ca())
        .output()
        .unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn an_address_is_there_while_the_proxy_is() {
    in_namespace(
        r#"
        start --admin 127.0.0.1:7481; proxy=$!
        until_true "has 240.0.0.1/32 && has fd00:240::1/128"
        kill $proxy; wait $proxy
        ! has 240.0.0.1/32
        ! has fd00:240::1/128
        "#,
    );
}

#[test]
fn an_address_of_somebody_else_stays() {
    in_namespace(
        r#"
        ip addr add 240.0.0.1/32 dev lo
        start --admin 127.0.0.1:7481; proxy=$!
        until_true "has fd00:240::1/128"
        kill $proxy; wait $proxy
        has 240.0.0.1/32
        ! has fd00:240::1/128
        "#,
    );
}

#[test]
fn a_successor_keeps_the_address_when_its_predecessor_takes_it_away() {
    let said = in_namespace(
        r#"
        start --admin 127.0.0.1:7481; old=$!
        until_true "has 240.0.0.1/32"
        start --admin 127.0.0.1:7482; new=$!
        until_true "ss -Hltn 'sport = :7482' | grep -q 7482"
        kill $old; wait $old
        until_true "has 240.0.0.1/32 && has fd00:240::1/128"
        ip addr del 240.0.0.1/32 dev lo
        until_true "has 240.0.0.1/32"
        kill $new; wait $new
        ! has 240.0.0.1/32
        ! has fd00:240::1/128
        "#,
    );
    assert!(said.contains("address taken off lo"), "{said}");
}

#[test]
fn one_that_died_leaves_its_address_to_the_next_in_its_place() {
    let said = in_namespace(
        r#"
        start --admin 127.0.0.1:7481 --restart-in-place; keeper=$!
        until_true "ss -Hltn 'sport = :7481' | grep -q 7481"
        first=$(pgrep -P $keeper)
        kill -KILL $first
        until_true "pgrep -P $keeper | grep -qvx $first"
        until_true "ss -Hltn 'sport = :7481' | grep -q 7481"
        has 240.0.0.1/32
        kill $keeper; wait $keeper
        ! has 240.0.0.1/32
        ! has fd00:240::1/128
        "#,
    );
    assert!(
        said.contains("clients wait while it is started again"),
        "{said}"
    );
}

#[test]
fn one_whose_container_was_killed_leaves_its_address_to_the_next() {
    in_namespace(
        r#"
        dir=$(mktemp -d); trap 'rm -r $dir' EXIT
        "$PROXY" hold $dir/hold & holder=$!
        until_true "[ -S $dir/hold ]"
        start --admin 127.0.0.1:7481 --restart-in-place --holder $dir/hold; keeper=$!
        until_true "ss -Hltnp 'sport = :6443' | grep -q pid=$holder,"
        kill -KILL $keeper
        until_true "! ss -Hltn 'sport = :7481' | grep -q 7481"
        ss -Hltn 'sport = :6443' | grep -q 240.0.0.1
        start --admin 127.0.0.1:7481 --restart-in-place --holder $dir/hold; keeper=$!
        until_true "ss -Hltn 'sport = :7481' | grep -q 7481"
        has 240.0.0.1/32
        kill $keeper; wait $keeper
        ! has 240.0.0.1/32
        ! has fd00:240::1/128
        kill $holder; wait $holder
        "#,
    );
}
