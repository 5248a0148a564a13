//! The steward command.

fn main() {}
