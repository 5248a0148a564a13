//! The API server's doorman.

fn main() {}
