//! The gateway's routes file: routes or a sentence, never a panic; and no host twice.

#![no_main]
// The gateway itself brings a Kubernetes client; its parser, and what that needs, is taken by path.
#[path = "../../crates/gateway/src/file.rs"]
#[allow(dead_code, reason = "the gateway reads files, this does not")]
mod file;
#[path = "../../crates/gateway/src/host.rs"]
#[allow(dead_code, reason = "the gateway looks hosts up, this does not")]
mod host;
#[path = "../../crates/gateway/src/spec.rs"]
mod spec;

use std::{collections::HashSet, path::Path};

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match file::parse(Path::new("routes.yaml"), text) {
        Ok(routes) => {
            let hosts: HashSet<String> = routes.iter().map(|(host, _)| host.to_string()).collect();
            assert_eq!(hosts.len(), routes.len(), "a host twice");
        }
        Err(error) => {
            let sentence = error.to_string();
            assert!(sentence.starts_with("routes.yaml: "), "{sentence}");
        }
    }
});
