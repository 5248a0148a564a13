//! Generated files: CRDs, policies, chart, reference pages.

fn main() {}
