//! The tenant node's end of the tunnel.

fn main() {}
