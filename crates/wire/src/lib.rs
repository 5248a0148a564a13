//! The data plane's core: ClientHello, PROXY protocol, relay, TLS identity, dial, drain.
