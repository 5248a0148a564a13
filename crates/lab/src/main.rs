//! The program `steward-lab`.

fn main() {}
