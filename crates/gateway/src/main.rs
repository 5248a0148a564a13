//! The SNI passthrough front door.

fn main() {}
