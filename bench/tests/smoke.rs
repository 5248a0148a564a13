//! The harness runs: every test, a handful of operations each, HAProxy alone.
//! No number is checked; a machine under load passes as well as an idle one.

use std::process::Command;

/// Whether a program can be started at all.
fn installed(program: &str) -> bool {
    Command::new(program).arg("-v").output().is_ok()
}

#[test]
fn every_test_runs_against_haproxy_and_is_reported() {
    if !installed("haproxy") {
        eprintln!("skipped: haproxy is not installed");
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_steward-bench"))
        .args(["--smoke", "--targets", "haproxy", "--out"])
        .arg(out.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{complained}");
    for headline in [
        "CPU per TLS 1.3 connection",
        "System calls",
        "Memory",
        "One new route",
        "Goals",
    ] {
        assert!(
            said.contains(headline),
            "{headline} is missing in\n{said}\n{complained}"
        );
    }
    assert!(!said.contains("operations failed"), "{said}");
    let page = std::fs::read_to_string(out.path().join("RESULTS.md")).unwrap();
    assert!(page.contains("| haproxy-tls |"), "{page}");
    assert!(
        std::fs::read_to_string(out.path().join("results.svg"))
            .unwrap()
            .contains("haproxy-again")
    );
}

#[test]
fn a_run_without_any_proxy_says_what_to_install() {
    let output = Command::new(env!("CARGO_BIN_EXE_steward-bench"))
        .args(["--smoke", "--targets", "nobody"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(
        complained.contains("no proxy could be started"),
        "{complained}"
    );
}
