//! Us and the rivals under one load, in one run.

fn main() {}
