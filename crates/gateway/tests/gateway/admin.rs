//! The admin pages of the real program: never starved, and the table for local clients only.

use std::{fs, io::Write, net::TcpStream, process::Command};

use crate::support::{Gateway, named_echo, route};

#[test]
fn slow_clients_of_the_admin_pages_stop_no_probe() {
    let gateway = Gateway::start(&format!("routes:\n{}", route("a.b", named_echo("x"))));
    let mut slow = Vec::new();
    for number in 0..200 {
        let mut stream = TcpStream::connect(gateway.admin).unwrap();
        // Some say nothing at all, some half of it, some never read what they asked for.
        let said: &[u8] = match number % 3 {
            0 => b"",
            1 => b"GET /routes HTTP/1.1\r\nHost: ",
            _ => b"GET /metrics HTTP/1.1\r\n\r\n",
        };
        stream.write_all(said).unwrap();
        slow.push(stream);
        if number % 10 == 0 {
            assert!(gateway.page("/healthz").starts_with("HTTP/1.1 200"));
        }
    }
    for path in ["/livez", "/healthz", "/readyz", "/metrics", "/routes"] {
        assert!(gateway.page(path).starts_with("HTTP/1.1 200"), "{path}");
    }
}

/// In a network of its own, with an address that is not loopback's. Takes root.
#[test]
fn the_table_is_shown_on_loopback_only() {
    let dir = tempfile::tempdir().unwrap();
    let routes = dir.path().join("routes.yaml");
    fs::write(
        &routes,
        format!("routes:\n{}", route("secret.example.com", named_echo("x"))),
    )
    .unwrap();
    let script = r#"
        ip link set lo up
        ip addr add 10.9.9.1/32 dev lo
        "$GATEWAY" --listen 127.0.0.1:8443 --admin '[::]:9090' --private-metrics --routes "$ROUTES" & gateway=$!
        trap 'kill $gateway' EXIT
        n=0; until curl -sf http://10.9.9.1:9090/readyz; do n=$((n+1)); [ $n -lt 600 ]; sleep 0.05; done
        get() { curl -s -w '%{http_code} ' "http://$1:9090$2" | tr '\n' ' '; echo; }
        echo; echo "far: $(get 10.9.9.1 /routes)"
        echo "near: $(get 127.0.0.1 /routes)"
        echo "six: $(get '[::1]' /routes)"
        echo "metrics: $(get 10.9.9.1 /metrics | grep -c 'steward_gateway_connections 0')"
        echo "alive: $(get 10.9.9.1 /healthz)"
    "#;
    let output = Command::new("timeout")
        .args(["60", "unshare", "--net", "sh", "-euc", script])
        .env("GATEWAY", env!("CARGO_BIN_EXE_steward-gateway"))
        .env("ROUTES", &routes)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = |key: &str| {
        let found = said.lines().find_map(|line| line.strip_prefix(key));
        found.unwrap_or_else(|| panic!("no {key} in {said}{errors}"))
    };
    let far = line("far: ");
    assert!(far.contains("loopback") && far.contains("403"), "{far}");
    assert!(!far.contains("secret"), "{far}");
    for local in ["near: ", "six: "] {
        assert!(line(local).contains("secret.example.com"), "{said}");
    }
    assert_eq!(line("metrics: "), "1");
    assert!(line("alive: ").contains("200"), "{said}");
}
