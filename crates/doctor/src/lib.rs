//! Checks as data: what, why it matters, evidence, fix.
