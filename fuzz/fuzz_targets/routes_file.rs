//! The gateway's routes file: routes or a sentence, never a panic; and no host twice.

#![no_main]
// The gateway itself brings a Kubernetes client. Its parser is taken by path, and of what a route
// is, only the shape.
#[path = "../../crates/gateway/src/file.rs"]
#[allow(dead_code, reason = "the gateway reads files, this does not")]
mod file;
#[path = "../../crates/gateway/src/host.rs"]
#[allow(dead_code, reason = "the gateway looks hosts up, this does not")]
mod host;
mod route {
    //! The shape of a route, as in the gateway.

    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct RouteSpec {
        pub backends: Vec<std::net::SocketAddr>,
        pub send_proxy: Option<ProxyVersion>,
        pub allow: Vec<ipnet::IpNet>,
        pub max_connections: Option<u32>,
        pub max_handshakes_per_second: Option<u32>,
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ProxyVersion {
        V1,
        V2,
    }
}

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
