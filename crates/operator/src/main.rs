//! Controllers: observe, validate, plan, apply, report.

fn main() {}
