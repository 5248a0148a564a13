//! The command against a real API server: what a person types, what comes back, and the
//! code it ends with.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod bad_input;
mod import;
mod install;
mod look;
mod scene;
