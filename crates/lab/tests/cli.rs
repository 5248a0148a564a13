//! Bad input gets a sentence, exit code 2, and leaves nothing half-made.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::{os::unix::fs::PermissionsExt, path::Path, process::Command};

const PROGRAM: &str = env!("CARGO_BIN_EXE_steward-lab");

fn says(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_made() {
    let cases: [(&[&str], &str); 8] = [
        (&["up", "--name", "Not/A Name"], "start with a letter"),
        (
            &["up", "--name", "refused", "--workers", "200"],
            "ask for at most 100",
        ),
        (
            &["up", "--name", "refused", "--kubernetes", "1.2.3"],
            "1.36.3",
        ),
        (
            &["up", "--name", "refused", "--bin-dir", "/nonexistent"],
            "/nonexistent",
        ),
        (
            &["exec", "--name", "refused", "nowhere", "--", "true"],
            "steward-lab status",
        ),
        (
            &["exec", "--name", "refused", "mgmt", "--", "true"],
            "make it with",
        ),
        (&["status", "--name", "refused"], "make it with"),
        (&["parts", "nonsense"], "nonsense"),
    ];
    for (words, expected) in cases {
        let (code, said) = says(Command::new(PROGRAM).args(words));
        assert_eq!(code, Some(2), "{words:?}: {said}");
        assert!(said.contains(expected), "{words:?}: {said}");
        assert!(
            !Path::new("/var/lib/steward-lab/refused").exists(),
            "{words:?}"
        );
    }
}

#[test]
fn without_root_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let copy = folder.path().join("steward-lab");
    std::fs::copy(PROGRAM, &copy).unwrap();
    for words in [
        &["up", "--name", "refused"][..],
        &["down", "--name", "refused"],
        &["status"],
    ] {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .arg(&copy);
        let (code, said) = says(command.args(words));
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("run it with sudo"), "{said}");
    }
}

#[test]
fn removing_a_lab_that_is_not_there_is_fine() {
    let (code, said) = says(Command::new(PROGRAM).args(["down", "--name", "never-was"]));
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn every_command_has_help_with_examples() {
    let commands = [
        "up",
        "status",
        "exec",
        "kubeconfig",
        "load",
        "logs",
        "down",
        "dns",
        "parts",
    ];
    for command in commands {
        let output = Command::new(PROGRAM)
            .args([command, "--help"])
            .output()
            .unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success() && help.contains("Example"),
            "{command}: {help}"
        );
    }
}
