//! Whether a program that lies around is the version we want.
//!
//! It is asked, with the arguments that make it name its version, and has to
//! answer within a few seconds with exactly the wanted numbers: `1.36.30`,
//! `1.36.3-rc.1` and a distributor's `1.36.3-gke` are not `1.36.3`, while build
//! metadata (`1.36.3+k3s1`) does not change what a version is.

use std::{
    io::Read,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Longest a program may take to name its version.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// More than any program prints for its version; the rest is not read.
const ANSWER_BYTES: u64 = 16 * 1024;

/// Whether `program`, run with `arguments`, says it is `wanted`.
pub(crate) fn is(program: &Path, arguments: &[&str], wanted: &str) -> bool {
    ask(program, arguments).is_some_and(|answer| names(&answer, wanted))
}

/// What a program says when asked for its version, from either stream.
fn ask(program: &Path, arguments: &[&str]) -> Option<String> {
    let mut child = Command::new(program)
        .args(arguments)
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let stdout = child.stdout.take()?;
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        let _partial = stdout.take(ANSWER_BYTES).read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let deadline = Instant::now() + ANSWER_WITHIN;
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(10)),
            _ => {
                let _gone = child.kill();
                let _reaped = child.wait();
                return None;
            }
        }
    }
    reader.join().ok()
}

/// Whether a text names exactly this version.
fn names(text: &str, wanted: &str) -> bool {
    text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '"' | '(' | ')' | '/'))
        .any(|word| version_in(word) == Some(wanted))
}

/// The version a word is, or ends in (`CoreDNS-1.14.2`, `v1.36.3`, `v4.3.1+gabc`).
fn version_in(word: &str) -> Option<&str> {
    let start = word.find(|c: char| c.is_ascii_digit())?;
    let prefix = &word[..start];
    let begins = prefix.is_empty() || prefix.ends_with(['v', 'V', '-', ':', '=']);
    let rest = &word[start..];
    let version = rest.split('+').next().unwrap_or(rest);
    begins.then_some(version.trim_end_matches(['.', ':']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ways_programs_name_their_version_are_understood() {
        for (text, wanted) in [
            ("Kubernetes v1.36.3\n", "1.36.3"),
            (
                "Client Version: v1.36.3\nKustomize Version: v5.8.1\n",
                "1.36.3",
            ),
            ("etcd Version: 3.6.16\nGit SHA: none\n", "3.6.16"),
            ("CoreDNS-1.14.2\nlinux/amd64, go1.26.8, \n", "1.14.2"),
            ("v4.3.1+g1234567\n", "4.3.1"),
            ("proxy version v0.36.0\n", "0.36.0"),
            (
                "envoy  version: 4fc0/1.40.0/Clean/RELEASE/BoringSSL\n",
                "1.40.0",
            ),
            ("nats-server: v2.15.1\n", "2.15.1"),
            ("kine version v0.13.9 (module)\n", "0.13.9"),
        ] {
            assert!(names(text, wanted), "{text:?}");
        }
    }

    #[test]
    fn a_neighbouring_version_is_refused() {
        for text in [
            "Client Version: v1.32.4-dispatcher\n",
            "Kubernetes v1.36.30\n",
            "Kubernetes v1.36.3-rc.1\n",
            "Kubernetes v11.36.3\n",
            "go1.36.3\n",
            "",
        ] {
            assert!(!names(text, "1.36.3"), "{text:?}");
        }
    }

    #[test]
    fn a_program_that_is_not_there_or_says_nothing_is_not_the_version() {
        assert!(!is(
            Path::new("/nonexistent/kubectl"),
            &["version"],
            "1.36.3"
        ));
        assert!(!is(Path::new("/bin/true"), &[], "1.36.3"));
        assert!(is(Path::new("/bin/echo"), &["v1.36.3"], "1.36.3"));
    }
}
