//! The data plane's core: ClientHello, PROXY protocol, relay, TLS identity, dial, drain.

pub mod hello;
pub mod proxy_protocol;
